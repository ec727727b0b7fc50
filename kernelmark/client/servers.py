"""The servers that this user is signed in to: names, addresses and tokens, in a file that nobody else can read.

Client commands and organizers' commands use it. Trusted. A token belongs to one exact origin, and is sent to no other.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from tempfile import NamedTemporaryFile
from urllib.parse import urlsplit

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError, field_validator

from harness.errors import HarnessError, UsageError, nearest
from harness.files import outside
from harness.shared.document import DocumentError, parse_toml
from kernelmark.client.connection import Connection, shown
from kernelmark.service.origin import origin_of

FILE_NAME = "servers.toml"
_SECRET_CHARACTERS = 200
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class KnownServer(BaseModel):
    """A server that the user is signed in to."""

    model_config = ConfigDict(frozen=True, extra="ignore")  # a later version may have written more

    origin: str
    token: str
    account: str
    ends: AwareDatetime
    """When the token ends."""
    ca: Path | None = None
    """A file of certificates that are trusted for it in place of the usual ones."""

    @field_validator("origin")
    @classmethod
    def _is_an_origin(cls, value: str) -> str:
        return origin_of(value)

    def connection(self) -> Connection:
        """A connection with its token."""
        return Connection(self.origin, self.token, ca=self.ca, tolerant=True)


def file() -> Path:
    """Where servers are kept: `kernelmark/servers.toml` in the user's folder for configuration."""
    return Path(folder(sys.platform, os.environ, str(Path.home()))) / FILE_NAME


def folder(platform: str, environment: Mapping[str, str], home: str) -> PurePath:
    """The user's folder for the configuration of kernelmark on a platform, as `sys.platform` names it."""
    if platform == "win32":
        roaming = environment.get("APPDATA")
        return (PureWindowsPath(roaming) if roaming else PureWindowsPath(home, "AppData", "Roaming")) / "kernelmark"
    if platform == "darwin":
        return PurePosixPath(home, "Library", "Application Support", "kernelmark")
    given = PurePosixPath(environment.get("XDG_CONFIG_HOME", ""))
    return (given if given.is_absolute() else PurePosixPath(home, ".config")) / "kernelmark"


def known() -> dict[str, KnownServer]:
    """The servers that the user is signed in to, by the names that the user calls them by.

    Raises:
        UsageError: the file cannot be read, or is not one of servers.
    """
    path = file()
    try:
        _keep_private(path)
        table = parse_toml(outside.read(path, outside.TEXT_BYTES, follow=True))
        return {name: KnownServer.model_validate(entry) for name, entry in table.items()}
    except FileNotFoundError:
        return {}
    except (OSError, DocumentError, ValidationError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error).splitlines()[0]
        raise UsageError(
            str(path), f"cannot be read ({why})", "remove it, and sign in again: `kernelmark login`"
        ) from None


def find(given: str) -> tuple[str, KnownServer]:
    """The name and the server of a name or an address.

    Raises:
        UsageError: the user is not signed in to it.
    """
    servers = known()
    if given in servers:
        return given, servers[given]
    if "://" not in given:
        remedy = nearest(given, servers, "" if servers else "`kernelmark login ADDRESS` signs in")
        raise UsageError(f"server {shown(given)}", "no server of this name", remedy)
    origin = origin_given(given)
    found = at(origin, servers)
    if found is None:
        raise UsageError(f"server {origin}", "you are not signed in there", f"`kernelmark login {origin}` signs in")
    return found


def at(origin: str, servers: Mapping[str, KnownServer]) -> tuple[str, KnownServer] | None:
    """The name and the server with exactly this origin; None if the user is not signed in to it.

    Raises:
        UsageError: the user has several accounts there.
    """
    found = [(name, server) for name, server in servers.items() if server.origin == origin]
    if len(found) > 1:
        names = ", ".join(name for name, _ in found)
        raise UsageError(f"server {origin}", "you have several accounts there", f"name one: {names}")
    return found[0] if found else None


def connection(given: str) -> Connection:
    """A connection to a server by its name or address, with the user's token for it.

    Raises:
        UsageError: the user is not signed in to it.
    """
    return find(given)[1].connection()


def chosen(given: str | None, project: str | None) -> Connection:
    """A connection to the server that a command means: the one it names, else the project's, else the only one.

    Args:
        given: a name or an address; None: the command names none.
        project: the origin that the project's settings name.

    Raises:
        UsageError: the user is not signed in to it, or it is not clear which one is meant.
    """
    servers = known()
    if given is None and project is None and len(servers) != 1:
        if not servers:
            raise UsageError("server", "you are signed in to none", "`kernelmark login ADDRESS` signs in")
        raise UsageError("server", "you are signed in to several", f"name one: {', '.join(servers)}")
    return connection(given or project or next(iter(servers)))


def reading(given: str) -> Connection:
    """A connection that only reads what is public: with the user's token if there is one, else as nobody.

    Raises:
        UsageError: it is neither the name of a server nor an address.
    """
    if "://" in given and at(origin_given(given), known()) is None:
        return Connection(given, tolerant=True)
    return connection(given)


def refuse_unusable(name: str, origin: str) -> None:
    """Refuse what `keep` would refuse, before a token is made that could not be kept.

    Raises:
        UsageError: the name is not valid, or is another server's.
        HarnessError: nothing can be written.
    """
    servers = known()
    _refuse_name(name, origin, servers)
    _write(servers)


def keep(name: str, server: KnownServer) -> None:
    """Add a server, or replace the one of this name. One may have several accounts on a server, by several names.

    Raises:
        UsageError, HarnessError: as for `refuse_unusable`.
    """
    servers = known()
    _refuse_name(name, server.origin, servers)
    _write({**servers, name: server})


def forget(name: str) -> None:
    """Remove a server and its token.

    Raises:
        HarnessError: it cannot be written.
    """
    _write({other: server for other, server in known().items() if other != name})


def name_for(origin: str) -> str:
    """A name for a server: the first part of its host's, with the port of a server on this machine."""
    parts = urlsplit(origin)
    host = parts.hostname or "server"
    first = "local" if host in ("127.0.0.1", "::1", "localhost") else host.split(".")[0]
    name = re.sub(r"[^A-Za-z0-9_-]", "-", first).strip("-_") or "server"
    return f"{name}-{parts.port}" if parts.port else name


def origin_given(address: str) -> str:
    """The origin of an address that was typed.

    Raises:
        UsageError: it is not an address of a server.
    """
    try:
        return origin_of(address)
    except ValueError as error:
        raise UsageError(f"server {shown(address)}", "is not a server's address", str(error)) from None


def origin_of_link(link: str) -> tuple[str, str | None]:
    """The origin of a server's address or of an invitation's link, and the secret of the latter.

    Raises:
        UsageError: it is neither.
    """
    address, _, secret = link.partition("#")
    if not secret and not address.endswith("/join"):
        return origin_given(address), None
    if not secret or len(secret) > _SECRET_CHARACTERS or not secret.isascii() or not secret.isprintable():
        raise UsageError("link", "is not that of an invitation", "give the whole link, in quotes")
    return origin_given(address.removesuffix("/join")), secret


def _refuse_name(name: str, origin: str, servers: Mapping[str, KnownServer]) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(f"--as {shown(name)}", "is not valid", "use up to 64 letters, digits, '_' and '-'")
    if name in servers and servers[name].origin != origin:
        what = f"is the name of {servers[name].origin}"
        raise UsageError(f"--as {name}", what, f"give another name, or `kernelmark logout {name}` first")


def _keep_private(path: Path) -> None:
    """Take away what others may do with the file; on Windows, the folder's own rules hold."""
    if os.name == "posix" and path.stat().st_mode & 0o077:
        path.chmod(0o600)


def _write(servers: Mapping[str, KnownServer]) -> None:
    """Replace the file at once, so that no reader sees half of it."""
    path = file()
    lines = [line for name, server in sorted(servers.items()) for line in _lines(name, server)]
    text = "# Tokens of kernelmark. Show nobody this file.\n" + "".join(lines)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as new:  # with mode 0600
            new.write(text)
        Path(new.name).replace(path)
    except OSError as error:
        raise HarnessError(f"{path} cannot be written ({error.strerror})") from None


def _lines(name: str, server: KnownServer) -> list[str]:
    """A table of TOML, of which a text of JSON is a text, too."""
    fields = {key: value for key, value in server if value is not None}
    texts = {key: value.isoformat() if isinstance(value, datetime) else str(value) for key, value in fields.items()}
    return [f"\n[{name}]\n", *(f"{key} = {json.dumps(text, ensure_ascii=False)}\n" for key, text in texts.items())]
