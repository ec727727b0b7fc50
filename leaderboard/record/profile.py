"""The profile of a recorded run: `<run>.profile.json` in the archive, next to the sources of its author.

`submit --profile` writes it, `kernelmark verify` checks it, and the site shows it where it shows the run's source. The
ledger does not mention it, so it changes neither a line nor a rank. Its sections are of a few kinds and have any names:
a new part of a profile needs no change here. Trusted code over hostile text: all of it comes from the submission, and
the file may come with a stranger's pull request. A profile that is read has this shape and at most `MAX_BYTES`; the
pages that show it escape it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints, ValidationError, field_validator
from pydantic_core import to_json

from harness.errors import HarnessError
from harness.files import outside
from harness.profiling.stacks import parse
from harness.verdict import RUN_ID, FrozenModel, Sha256, SubmissionId
from leaderboard.record.archive import folder
from leaderboard.record.durable import write_whole
from leaderboard.text.visible import visible

MAX_BYTES = 2 << 20
SUFFIX = ".profile.json"
_NOTE_BYTES = 900  # more than a line about a part that was cut has, its name in escapes
_REMEDY = "restore or remove that file"

MEMORY_DEVICES = ("GPU", "CPU")  # on which PyTorch's memory is recorded

Name = Annotated[str, StringConstraints(min_length=1, max_length=120)]
Line = Annotated[str, StringConstraints(max_length=400)]
Cell = Annotated[str, StringConstraints(max_length=400)]
TableRows = tuple[tuple[Cell, ...], ...]


class StoredProfile(FrozenModel):
    """Where the time of one case of a run goes, as its own process reported it; section names are shown as titles."""

    model_config = ConfigDict(strict=True)

    schema_version: Literal[1] = 1
    run: Annotated[str, StringConstraints(pattern=RUN_ID)]
    sha256: Sha256 = Field(description="of the source, as in the verdict")
    case: Name
    stacks: dict[Name, str] = Field(
        default={}, max_length=16, description="collapsed, by what they measure and its unit, as `CPU time, µs`"
    )
    rows: dict[Name, TableRows] = Field(
        default={}, max_length=32, description="small tables; the first row is the head"
    )
    tables: dict[Name, str] = Field(default={}, max_length=32, description="tables as plain text")
    files: dict[Name, str] = Field(default={}, max_length=512, description="texts by their file name, as of code")
    missing: tuple[Line, ...] = Field(default=(), max_length=1200, description="what is not here, and why")

    @field_validator("stacks")
    @classmethod
    def _stacks_can_be_drawn(cls, value: dict[str, str]) -> dict[str, str]:
        for collapsed in value.values():
            parse(collapsed.encode())
        return value

    @field_validator("rows")
    @classmethod
    def _rows_have_equal_length(cls, value: dict[str, TableRows]) -> dict[str, TableRows]:
        for name, rows in value.items():
            if not rows or not 0 < len(rows[0]) <= 40 or any(len(row) != len(rows[0]) for row in rows):
                raise ValueError(f"the rows of {name!r} do not have equally many cells, 1 to 40")
        return value


SectionContent = str | TableRows
_KINDS = ("stacks", "rows", "tables", "files")


def archive_profile(root: Path, slug: str, author: str, profile: StoredProfile) -> Path:
    """Store a profile, which must be `fitted`, and return its path.

    Raises:
        HarnessError: the slug or the author is not a valid path component, the run has a profile, or the file cannot be
            written.
    """
    path = location(root, slug, author, profile.run)
    try:
        write_whole(path, _encoded(profile), replace=False)
    except OSError as error:
        raise HarnessError(f"{path}: the profile cannot be written ({error.strerror})") from error
    return path


def location(root: Path, slug: str, author: str, run: str) -> Path:
    """The path of a run's profile, whether or not it exists.

    Raises:
        HarnessError: the slug or the author is not a valid path component.
    """
    return folder(root, slug, author) / profile_name(run)


def profile_name(run: str) -> str:
    """The name of a run's profile in its author's folder of the archive."""
    return f"{run}{SUFFIX}"


def stored_profile(root: Path, slug: str, submission: SubmissionId, run: str) -> StoredProfile | None:
    """Read a run's profile; None if it has none.

    Raises:
        HarnessError: it cannot be read, or is not the profile of this run of this source.
    """
    try:
        path = location(root, slug, submission.author, run)
    except HarnessError:  # nothing can be archived there
        return None
    try:
        content = outside.read(path, MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HarnessError(f"{path}: the profile cannot be read ({error.strerror})", _REMEDY) from error
    try:
        profile = StoredProfile.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = visible(".".join(str(part) for part in first["loc"])[:120]) or "the file"
        raise HarnessError(f"{path} is not a profile ({where}: {visible(first['msg'])})", _REMEDY) from None
    if (profile.run, profile.sha256) != (run, submission.sha256):
        raise HarnessError(f"{path} is the profile of another run or source", _REMEDY)
    return profile


def memory_file(device: str) -> str:
    """The name, among the `files`, of the memory that PyTorch held on a device over time."""
    return f"memory-{device}.csv"


def fitted(profile: StoredProfile, limit: int = MAX_BYTES) -> StoredProfile:
    """The profile in at most `limit` bytes: its longest part is halved until the whole fits, and `missing` says so.

    So long code is cut first; stacks and small tables stay whole unless they are longer than the code.
    """
    parts: dict[tuple[str, str], SectionContent] = {
        (kind, name): part for kind in _KINDS for name, part in getattr(profile, kind).items()
    }
    whole = {key: len(to_json(part)) for key, part in parts.items()}
    sizes, excess, cut = dict(whole), len(_encoded(profile)) - limit, set[tuple[str, str]]()
    while excess > 0 and any(parts.values()):
        key = max(sizes, key=sizes.__getitem__)
        if key not in cut:
            cut.add(key)
            excess += _NOTE_BYTES
        parts[key] = _half(parts[key])
        excess -= sizes[key] - len(to_json(parts[key]))
        sizes[key] = len(to_json(parts[key]))
    if not cut:
        return profile
    kept = {kind: {name: part for (of, name), part in parts.items() if of == kind and part} for kind in _KINDS}
    cuts = (f"{key[1]}: {sizes[key]:,} of {whole[key]:,} bytes are kept" for key in whole if key in cut)
    return profile.model_copy(update={**kept, "missing": (*profile.missing, *cuts)})


def _half(part: SectionContent) -> SectionContent:
    """The first half of a text, in whole lines if it has several, or of rows."""
    half = part[: len(part) // 2]
    return half[: half.rfind("\n") + 1] or half if isinstance(half, str) else half


def _encoded(profile: StoredProfile) -> bytes:
    return profile.model_dump_json().encode() + b"\n"
