"""Renders the files that kernelmark writes for people: first submissions, new problems, new projects. Trusted.

Each file has a template in `templates/` that looks like it. Nothing is escaped: they are source code and documents.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, /, **context: Any) -> str:
    """The text of a template with these values."""
    return _environment().get_template(template).render(**context)


def unrendered(template: str) -> str:
    """The source of a template."""
    return (_TEMPLATES / template).read_text("utf-8")


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
