"""The settings. Each value comes from the first of: flag, environment, `kernelmark.toml`, default.

The command line and `kernelmark.Project` call `Settings.load`. Trusted. The project's root is the directory of the
nearest `kernelmark.toml`, in the working directory or above it, else the working directory; paths are relative to it.
An unknown key is always an error, so that no typo is silently replaced by a default.
"""

from __future__ import annotations

import getpass
import os
import re
import reprlib
import subprocess
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from harness.errors import SettingsError, misplaced, nearest
from harness.files import outside
from harness.files.outside import real
from harness.kinds import DeviceKind, Effort, SandboxChoice
from harness.marks import MarksRule, SpeedupPoints
from harness.shared.document import DocumentError, parse_json, parse_toml
from harness.shared.foreign import FORMS, ForeignForm
from harness.submission import AUTHOR
from kernelmark.project.phases import Announcement, DailyLimits, Phase, open_at, refuse_disorder
from kernelmark.project.serving import ServerSettings
from leaderboard.record.teams import NO_TEAMS, Teams

FILE_NAME = "kernelmark.toml"
PREFIX = "KERNELMARK_"
TOKEN = "KERNELMARK_TOKEN"  # of a server's worker; not a setting, but read by its command
DEBUG = "KERNELMARK_DEBUG"  # prints tracebacks of our own failures; not a setting, but read by the command line

_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~%/@:+-]*)?")  # without query and fragment
_LONGEST = {"title": 100, "how_to_submit": 400}  # characters; the site cuts longer texts

DeviceChoice = Literal["auto", DeviceKind]
PathSetting = Literal["results", "archive", "board", "problems", "reference", "devices", "submissions"]


class Settings(BaseModel):
    """Every setting, resolved; made by `load`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    root: Path = Path()
    author: str | None = None
    device: DeviceChoice = "auto"
    sandbox: SandboxChoice = "auto"
    effort: Effort = "default"
    baselines: tuple[str, ...] = ("auto",)
    """Names of kernels in `reference/<slug>/` to alternate with, "auto" (`eager` on a GPU, none on a CPU) or "none"."""
    resident: bool | None = None
    """Whether `submit`, `check` and `bench` use and leave a resident worker, where the sandbox allows it.

    None: on a CPU only.
    """
    image: str = "kernelmark-runner:latest"
    docker_binds: tuple[Path, ...] = ()
    docker_python: str = "python3"
    results: Path = Path("leaderboard/results")
    archive: Path = Path("leaderboard/archive")
    board: Path = Path("leaderboard/BOARD.md")
    problems: Path = Path("problems")
    reference: Path = Path("reference")
    devices: Path = Path("leaderboard/devices")
    submissions: Path = Path("submissions")
    site_url: str | None = None
    """The address of the published site, ending in a slash: previews of links need absolute addresses."""
    title: str | None = None
    """The name of the course or competition, in one line, for the site and the board."""
    how_to_submit: str | None = None
    """The site's line about submitting, in place of the command."""
    private_cases: Path | None = None
    """A folder outside the project, whose `<slug>.toml` files hold private cases; only for organizers' machines."""
    gpu_mode_checkout: Path | None = None
    """A checkout of gpu-mode's reference-kernels outside the project, in which imported problems find their files."""
    kernelbench_checkout: Path | None = None
    """The same of KernelBench."""
    cache_bytes: Annotated[int, Field(ge=0)] = 2 << 30
    """The most that `kernelmark cache` keeps of what was compiled; 0: nothing."""
    organizer: bool = False
    """Whether commands print results that a frozen board does not show yet; they are never published."""
    teams: Teams = NO_TEAMS
    limits: DailyLimits = DailyLimits()
    server: ServerSettings = ServerSettings()
    selection: Annotated[int, Field(ge=1, le=100)] | None = None
    """How many sources each author, or team, may select on a problem to count at the end; None: the best counts."""
    phases: tuple[Phase, ...] = ()
    announcements: tuple[Announcement, ...] = ()
    marks: MarksRule | None = None
    """The rule for points in a course, unless a problem has its own."""

    @field_validator("docker_binds", mode="before")
    @classmethod
    def _colons_separate_paths(cls, value: object) -> object:
        return tuple(part for part in value.split(os.pathsep) if part) if isinstance(value, str) else value

    @field_validator("baselines", mode="before")
    @classmethod
    def _commas_separate_names(cls, value: object) -> object:
        names = value.split(",") if isinstance(value, str) else value
        if not isinstance(names, list | tuple):
            return names
        return () if list(names) == ["none"] else tuple(str(name).strip() for name in names)

    @field_validator("teams", "limits", "server", "phases", "announcements", "marks", mode="before")
    @classmethod
    def _tables_are_json_in_the_environment(cls, value: object) -> object:
        try:
            return parse_json(value) if isinstance(value, str) else value
        except DocumentError as error:
            raise ValueError(f"give it as JSON ({error})") from None

    @field_validator("phases")
    @classmethod
    def _phases_follow_each_other(cls, value: tuple[Phase, ...]) -> tuple[Phase, ...]:
        refuse_disorder(value)
        return value

    @field_validator("docker_binds")
    @classmethod
    def _binds_are_absolute(cls, value: tuple[Path, ...]) -> tuple[Path, ...]:
        for path in value:
            if not path.is_absolute():
                raise ValueError(f"{str(path)!r} is not an absolute path")
        return value

    @field_validator("site_url")
    @classmethod
    def _site_is_on_the_web(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if not _URL.fullmatch(value):
            raise ValueError("give the address of a folder, as `https://example.org/board/`")
        return value if value.endswith("/") else f"{value}/"

    @field_validator("title", "how_to_submit")
    @classmethod
    def _one_line(cls, value: str | None, info: ValidationInfo) -> str | None:
        longest = _LONGEST[info.field_name or ""]
        if value is not None and (not value.strip() or not value.isprintable() or len(value) > longest):
            raise ValueError(f"give one line of text, of at most {longest} characters")
        return value

    def phase(self, now: datetime | None = None) -> Phase | None:
        """The phase that is open at a moment, by default now, or the last one; None if there are none."""
        return open_at(self.phases, now or datetime.now(UTC))

    def locate(self, place: PathSetting) -> Path:
        """The absolute path of a file or directory of the project."""
        path: Path = getattr(self, place)
        return self.root / path

    @property
    def checkouts(self) -> dict[ForeignForm, Path]:
        """The absolute paths of the checkouts in the settings."""
        named = {form: getattr(self, foreign.setting) for form, foreign in FORMS.items()}
        return {form: real(self.root / path.expanduser()) for form, path in named.items() if path is not None}

    def author_of(self, file: Path) -> str:
        """The author of a file: by its folder in `submissions/<problem>/<author>/`, else that of the settings."""
        folder, path = real(self.locate("submissions")), real(file)
        parts = path.relative_to(folder).parts if path.is_relative_to(folder) else ()
        return parts[1] if len(parts) > 2 and AUTHOR.fullmatch(parts[1]) else self.author_or_default()

    def author_or_default(self) -> str:
        """The author in the settings, else a name from git's `user.name`, else from the login name."""
        return default_author(self.root) if self.author is None else self.author

    @classmethod
    def load(cls, start: Path | None = None, /, **flags: Any) -> Settings:
        """Resolve every setting of the project that contains `start` (default: the working directory).

        `flags` override all other sources, except for those that are None.

        Raises:
            SettingsError: a key or variable is unknown, or a value is invalid; the message says where it was set.
        """
        try:
            start = real(start or Path.cwd())
        except FileNotFoundError:
            raise SettingsError("the working directory", "does not exist any more", "change to another") from None
        file = find_file(start)
        table = _read(file) if file else {}
        _refuse_unknown_variables(os.environ)
        variables = {key: value for key in KEYS if (value := os.environ.get(PREFIX + key.upper()))}
        chosen = _without_none(flags)
        try:
            return cls(**{"root": file.parent if file else start, **table, **variables, **chosen})
        except ValidationError as error:
            raise _explained(error, chosen, file) from error

    def overridden(self, **flags: Any) -> Settings:
        """These settings with some replaced by flags, except for flags that are None.

        Raises:
            SettingsError: a value is not valid.
        """
        chosen = _without_none(flags)
        try:
            return type(self)(**{**dict(self), **chosen})
        except ValidationError as error:
            raise _explained(error, chosen, None) from error


class ReadSettings:
    """The settings of a project, read again by each call; while they are not valid, by a mistake just made, as before.

    Attributes:
        fault: why those of before count; None if the file is valid.
    """

    fault: SettingsError | None = None

    def __init__(self, start: Path, **flags: object) -> None:
        self._start, self._flags = start, flags
        self._last: Settings | None = None

    def __call__(self) -> Settings:
        """
        Raises:
            SettingsError: they have never been valid.
        """
        try:
            self._last, self.fault = Settings.load(self._start, **self._flags), None
        except SettingsError as error:
            self.fault = error
            if self._last is None:
                raise
        return self._last


# The models of tables, by the setting and their depth in it.
_TABLES: dict[tuple[str, int], type[BaseModel]] = {
    ("limits", 1): DailyLimits,
    ("server", 1): ServerSettings,
    ("phases", 2): Phase,
    ("phases", 3): DailyLimits,
    ("announcements", 2): Announcement,
    ("marks", 1): MarksRule,
    ("marks", 3): SpeedupPoints,
}
_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = 200
_SHAPES = {"dict_type": "give a table", "model_type": "give a table", "tuple_type": "give a list"}
KEYS = tuple(key for key in Settings.model_fields if key != "root")


def find_file(start: Path) -> Path | None:
    """The nearest `kernelmark.toml` in `start` or above it, even if it cannot be read (a folder, a broken link)."""
    return next((d / FILE_NAME for d in (start, *start.parents) if os.path.lexists(d / FILE_NAME)), None)


def default_author(folder: Path) -> str:
    """An author's name from git's configuration in this folder, or else from the login."""
    return name_from(_git_user(folder)) or name_from(_login()) or "anonymous"


def name_from(text: str) -> str:
    """The text reduced to a valid author's name; may be empty."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9._-]+", "-", ascii_text).strip("-._")[:64]


def _without_none(flags: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in flags.items() if value is not None}


def _read(file: Path) -> dict[str, Any]:
    try:
        table = parse_toml(outside.read(file, outside.TEXT_BYTES, follow=True))
    except (OSError, DocumentError) as error:
        why = error.strerror if isinstance(error, OSError) else f"it {error}"
        raise SettingsError(str(file), f"cannot be read as TOML ({why})") from error
    for key in table:
        if key not in KEYS:
            raise SettingsError(str(file), f"unknown key `{key}`", nearest(key, KEYS))
    return table


def _refuse_unknown_variables(environment: Mapping[str, str]) -> None:
    known = [PREFIX + key.upper() for key in KEYS] + [DEBUG, TOKEN]
    for name in environment:
        if name.upper().startswith(PREFIX) and name not in known:
            raise SettingsError("environment", f"unknown variable `{name}`", nearest(name.upper(), known))


def _explained(error: ValidationError, flags: Mapping[str, Any], file: Path | None) -> SettingsError:
    """The error with the place where the invalid value was set; pydantic knows only the key."""
    first = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")  # it may explain a missing key
    key, *inner = map(str, first["loc"])
    variable = PREFIX + key.upper()
    if key in flags:
        where = key  # of a command's option, or of an argument in Python
    else:
        where = variable if os.environ.get(variable) else f"{file}: key `{'.'.join((key, *inner))}`"
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        own = _TABLES[key, len(inner)].model_fields
        remedy = misplaced(inner[-1], first["input"]) if inner[-1] in KEYS else nearest(inner[-1], own)
        return SettingsError(where, "unknown key", remedy)
    value = _SHOWN.repr(first["input"])
    if first["type"] in _SHAPES:
        return SettingsError(where, f"{value} is not valid", _SHAPES[first["type"]])
    if isinstance(first["input"], Mapping | list):  # a whole table, or several: its message says what is wrong in it
        return SettingsError(where, *message.split("; ", 1))
    return SettingsError(where, f"{value} is not valid", message)


def _git_user(folder: Path) -> str:
    command = ["git", "config", "user.name"]
    try:
        answer = subprocess.run(command, cwd=folder, capture_output=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.decode(errors="replace").strip()


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no entry in the user database, as in many containers
        return ""
