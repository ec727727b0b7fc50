"""Names a submission's file as its author does, in messages, tracebacks and logs: the sandbox has `submission.py`.

The terminal uses it. Records keep the text as it came, since several authors can share one. Trusted code over hostile
text: the name is made visible here, the rest where it is shown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from leaderboard.text.visible import visible

if TYPE_CHECKING:
    from harness.verdict import Check

C = TypeVar("C", bound="Check")


def with_own_name(result: C) -> C:
    """The same result, with the author's file name in its texts."""
    own = visible(result.submission.name)
    ours = re.compile(rf"(?<![\w.-])submission\.{result.submission.language}\b")

    def named(text: str) -> str:
        return ours.sub(lambda _: own, text)

    tests = tuple(test.model_copy(update={"message": named(test.message)}) for test in result.tests)
    texts = {"message": named(result.message), "log": named(result.log), "traceback": named(result.traceback)}
    return result.model_copy(update={"tests": tests, **texts})
