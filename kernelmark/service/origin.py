"""The addresses of servers. Settings, clients and servers read them by this one rule."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_HOST = re.compile(r"[a-z0-9._:-]+")  # other letters look like these: punycode shows them
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def is_loopback(origin: str) -> bool:
    """Whether an origin is on this machine."""
    return urlsplit(origin).hostname in _LOOPBACK


def origin_of(url: str) -> str:
    """The origin of a server's address: scheme, host and port, without a slash at the end.

    Raises:
        ValueError: it is not such an address, or is http and not on this machine.
    """
    parts = urlsplit(url)
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        raise ValueError("its port is not a number from 1 to 65535") from None
    host = parts.hostname or ""
    if (
        parts.scheme not in ("http", "https")
        or not _HOST.fullmatch(host)
        or parts.path not in ("", "/")
        or parts.query
        or parts.fragment
    ):
        raise ValueError("give an address such as https://bench.example.org, without a path")
    if parts.username or parts.password:
        raise ValueError("give the address without a user's name")
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise ValueError("http is for this machine only; use https")
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"
