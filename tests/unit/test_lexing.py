"""The quicker lexers give the tokens that Pygments gives, also for what is no program."""

import random
from pathlib import Path

import pytest
from pygments.lexers import get_lexer_by_name

from harness.languages import LANGUAGES
from leaderboard.publishing.site.lexing import quickened

ROOT = Path(__file__).resolve().parents[2]
_ODD = "\"'\\({[\n#rbRfuLT%é€ſKı\x00\t 0.e_@:/*<"


@pytest.mark.parametrize("suffix", sorted(LANGUAGES))
def test_the_tokens_are_those_of_pygments(suffix: str) -> None:
    name, draw = LANGUAGES[suffix].lexer, random.Random(1)
    plain, quick = get_lexer_by_name(name), quickened(get_lexer_by_name(name))
    sources = [file.read_text() for file in sorted(ROOT.glob(f"reference/*/*.{suffix}"))]
    sources += [file.read_text() for file in sorted(ROOT.glob(f"problems/*/start/kernel.{suffix}"))]
    assert sources
    for source in sources:
        start = draw.randrange(len(source))
        garbled = [*source[start : start + 500]]
        for _ in range(20):
            garbled[draw.randrange(len(garbled))] = draw.choice(_ODD)
        for text in (source, "".join(garbled)):
            assert list(quick.get_tokens_unprocessed(text)) == list(plain.get_tokens_unprocessed(text))
