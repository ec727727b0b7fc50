"""Reports an unforeseen failure in one line, and keeps its traceback for a bug report.

Whatever grades several submissions calls it, so that one failure does not end the others; and the command line, before
it ends. Trusted; standard library only.
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from contextlib import suppress


def unexpected(error: Exception) -> str:
    """An unexpected error in one line; its traceback is saved to a file."""
    text = "".join(traceback.format_exception(error))
    if os.environ.get("KERNELMARK_DEBUG"):
        with suppress(BrokenPipeError):  # the reader is gone; the work goes on
            print(text.rstrip("\n"), file=sys.stderr, flush=True)
        where = "the traceback is above"
    else:
        try:
            descriptor, name = tempfile.mkstemp(prefix="kernelmark-", suffix=".txt")
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            where = f"traceback in {name}"
        except OSError as unwritten:
            where = f"its traceback cannot be written ({unwritten.strerror}); KERNELMARK_DEBUG=1 prints it"
    return " ".join(f"unexpected {type(error).__name__}: {error}; {where}".split())
