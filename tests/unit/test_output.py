"""What is kept of what a submission prints."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from harness.judge.session.output import PrintedOutput


@pytest.fixture
def output() -> Iterator[PrintedOutput]:
    made = PrintedOutput(1 << 20)
    yield made
    made.close()


def test_what_is_printed_has_the_label_of_the_test_that_ran(output: PrintedOutput) -> None:
    for label, printed in (("", b"imported\n"), ("test one", b"1"), ("test silent", b""), ("test two", b"2\n2\n")):
        if label:
            output.begin(label)
        os.write(output._write, printed)  # which is read only when the next one begins
    output.drain()
    assert output.text() == "imported\n[test one]\n1\n[test two]\n2\n2\n"


def test_of_much_output_head_and_tail_are_kept_and_nothing_after_it_is_discarded(output: PrintedOutput) -> None:
    os.write(output._write, b"first" + b"." * 20_000 + b"last")
    output.discard()
    os.write(output._write, b"secret")
    output.drain()
    text = output.text()
    assert text.startswith("first...")
    assert text.endswith("...last")
    assert "\n[... 3,625 bytes ...]\n" in text
