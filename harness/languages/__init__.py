"""The languages in which a submission may be written, with one module for each.

Judge, runner and board use this table, which imports nothing large. A new language needs a module and a line here.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.languages import cpp, cuda, python
from harness.languages.language import Language

LANGUAGES: Mapping[str, Language] = {module.LANGUAGE.suffix: module.LANGUAGE for module in (python, cuda, cpp)}
"""By suffix of the file, without the dot."""


def known(form: str = ".{}") -> str:
    """The suffixes, for a message: `.py, .cu or .cpp`."""
    *most, last = (form.format(suffix) for suffix in LANGUAGES)
    return f"{', '.join(most)} or {last}"


__all__ = ["LANGUAGES", "Language", "known"]
