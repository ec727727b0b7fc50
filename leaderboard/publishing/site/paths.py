"""Where each page is in the site's folder. Names in the ledger are hostile; the paths made from them are safe.

Every link is relative, so the site works from a local disk and under any URL. Trusted; pure.
"""

from __future__ import annotations

import hashlib
import re

FRONT, AUTHORS, DEVICES, METHOD = "index.html", "authors.html", "devices.html", "method.html"
FEED = "feed.xml"
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def problem(slug: str) -> str:
    return f"problems/{component(slug)}.html"


def run(digits: str) -> str:
    return f"runs/{component(digits)}.html"


def profile(digits: str) -> str:
    return f"profiles/{component(digits)}.html"


def profile_part(digits: str, kind: str, name: str) -> str:
    """A file next to a profile's page: a flame graph of stacks, or a text."""
    return f"profiles/{component(digits)}/{component(f'{kind} {name}')}.{'svg' if kind == 'stacks' else 'txt'}"


def comparison(one: str, other: str) -> str:
    return f"compare/{component(one)}-{component(other)}.html"


def author(name: str) -> str:
    return f"authors/{component(name)}.html"


def document(page: str) -> str:
    """The path of a page's JSON."""
    return page.removesuffix(".html") + ".json"


def root(page: str) -> str:
    """The relative path from a page to the site's root: empty, or `../`."""
    return "../" * page.count("/")


def component(name: str) -> str:
    """A name as one component of a path: itself if it is short and plain, otherwise its plain characters and a hash.

    Capitals are not plain, since some file systems ignore case.
    """
    if _PLAIN.fullmatch(name):
        return name
    plain = re.sub(r"[^a-z0-9_-]+", "-", name.lower())[:40].strip("-_") or "x"
    return f"{plain}.{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
