"""The board: what it says, and that no name can say anything else. A CommonMark parser reads it back."""

from __future__ import annotations

import html
import os
import re
import stat
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from harness.errors import HarnessError
from harness.verdict import Ratio, Verdict
from leaderboard.publishing.markdown import board, escape, spliced, write_board
from leaderboard.standings.ranking import Table
from leaderboard.text.units import duration, interval, ratio
from tests import verdicts
from tests.ranked import rank
from tests.verdicts import REPLAYED, accepted, chained

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
CELL = re.compile(r"<td(?: style=\"text-align:\w+\")?>(.*?)</td>", re.DOTALL)


def tables(*verdicts: Verdict) -> list[Table]:
    return rank(chained(*verdicts))


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (7, "7 ns"),
        (999, "999 ns"),
        (1000, "1.00 µs"),
        (1063, "1.06 µs"),
        (9_994, "9.99 µs"),
        (9_996, "10.0 µs"),
        (57_312, "57.3 µs"),
        (99_960, "100 µs"),
        (999_499, "999 µs"),
        (999_500, "1.00 ms"),
        (1_534_000, "1.53 ms"),
        (59_300_000_000, "59.3 s"),
        (4_000_000_000_000, "4000 s"),
    ],
)
def test_a_duration_has_three_digits_in_the_unit_that_suits_it(ns, text):
    assert duration(ns) == text


@pytest.mark.parametrize(
    ("median_low_high", "text"),
    [
        ((57_312, 57_104, 57_598), "57.3 µs [57.1, 57.6]"),
        ((57_312, 57_301, 57_322), "57.31 µs [57.30, 57.32]"),
        ((57_312, 57_311, 57_313), "57.312 µs [57.311, 57.313]"),
        ((57_312, 57_312, 57_312), "57.3 µs [57.3, 57.3]"),
        ((812, 810, 815), "812 ns [810, 815]"),
        ((999_600, 998_000, 1_010_000), "1.00 ms [1.00, 1.01]"),
        ((1_000_000, 940_000, 1_200_000), "1.00 ms [0.94, 1.20]"),
        ((834_000, 555_000, 4_223_000), "834 µs [555 µs, 4.22 ms]"),
        ((4_250_000, 890_000, 8_210_000), "4.25 ms [890 µs, 8.21 ms]"),
        ((4_250_000, 1_890_000, 8_210_000), "4.25 ms [1.89, 8.21]"),
    ],
)
def test_an_interval_stands_in_the_unit_of_its_median_unless_its_ends_are_far_apart(median_low_high, text):
    assert interval(verdicts.interval(*median_low_high)) == text


@pytest.mark.parametrize(
    ("low_median_high", "text"),
    [
        ((1.588, 1.593, 1.598), "1.593 [1.588, 1.598]"),
        ((0.945, 0.947, 0.949), "0.947 [0.945, 0.949]"),
        ((0.1232, 0.1234, 0.1236), "0.1234 [0.1232, 0.1236]"),
        ((0.0001, 0.0002, 0.0003), "0.00020 [0.00010, 0.00030]"),
        ((0.0000169, 0.0055, 0.1137), "0.0055 [0.0000, 0.1137]"),
        ((0.292, 0.493, 1.298), "0.493 [0.292, 1.298]"),
        ((9.9, 9.9996, 10.1), "10.00 [9.90, 10.10]"),
        ((99.1, 99.994, 100.2), "99.99 [99.10, 100.20]"),
        ((99.1, 99.996, 100.2), "100.0 [99.1, 100.2]"),
        ((1200, 1234, 1300), "1234.0 [1200.0, 1300.0]"),
    ],
)
def test_a_ratio_tells_the_ends_of_its_interval_apart(low_median_high, text):
    low, median, high = low_median_high
    assert ratio(Ratio(median=median, low=low, high=high, confidence=0.95)) == text


@given(ns=st.integers(1, 10**13))
def test_a_duration_is_right_to_half_a_percent(ns):
    number, unit = duration(ns).split(" ")
    assert float(number) * {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit] == pytest.approx(ns, rel=0.0051)
    assert len(number.replace(".", "").lstrip("0")) <= 3 or unit == "s"


def test_the_whole_board():
    old = accepted(author="ada", problem_version="1", score_ns=57_312, low_ns=57_104, high_ns=57_598, run="a" * 16)
    slow = accepted(author="bob", score_ns=1_534_000, low_ns=1_500_000, high_ns=1_600_000, run="b" * 16)
    laptop = accepted(
        author="eve",
        device_kind="cpu",
        device_name="Some CPU",
        sandbox="process",
        interpreted=True,
        modes=("calls",),
        score_ns=812,
        run="c" * 16,
    )
    problem = old.problem.sha256[:12]
    kernels = {verdict.submission.author: verdict.submission.sha256[:12] for verdict in (old, slow, laptop)}
    head = [
        "",
        "| rank | author | submission | language | time per call | cases | mode | sandbox | date (UTC) | kernel | "
        "run |",
        "|---:|:---|:---|:---|---:|---:|:---|:---|:---|:---|:---|",
    ]
    assert board(tables(old, slow, laptop)).splitlines()[4:] == [
        "## [softmax](boards/softmax.md)",
        "",
        f"### NVIDIA H200 · plain calls · protocol 1 · problem {problem}",
        *head,
        "| 1 | ada | kernel.py | py | 57.3 µs [57.1, 57.6] | 4 | calls | docker | 2026-01-01 "
        f"| {kernels['ada']} | {'a' * 16} |",
        "| 2 | bob | kernel.py | py | 1.53 ms [1.50, 1.60] | 4 | calls | docker | 2026-01-01 "
        f"| {kernels['bob']} | {'b' * 16} |",
        "",
        f"### Some CPU · protocol 1 · problem {problem} · not isolated · Triton interpreter: not a measure of speed",
        *head,
        "| 1 | eve | kernel.py | py | 812 ns [808, 816] | 1 | calls | process | 2026-01-01 "
        f"| {kernels['eve']} | {'c' * 16} |",
    ]


def test_speedups_have_columns_where_some_row_has_one():
    lines = board(tables(accepted(author="ada", speedups={"eager": 1.593}), accepted(author="bob"))).splitlines()
    head, rule, ada, bob = (line for line in lines if line.startswith("|"))
    assert "| time per call | × eager | cases |" in head
    assert rule.split("|")[6] == "---:", "right-aligned, as all numbers are"
    assert rule.count("|") == head.count("|")
    assert "| 1.593 [1.585, 1.601] | 4 |" in ada
    assert "|  | 4 |" in bob


NASTY = "## [x](boards/x.md)\n| Set aside\n"


def test_a_section_written_anew_gives_the_board_that_is_written_whole():
    made = {slug: tables(accepted(problem=slug, name=NASTY)) for slug in ("gelu", "matmul", "matmul_fp8", "softmax")}
    every = [table for slug in sorted(made) for table in made[slug]]
    for slug in made:
        newer = tables(accepted(problem=slug, author="bob"), accepted(problem=slug))
        expected = board([table for other in sorted(made) for table in (newer if other == slug else made[other])])
        assert spliced(board(every), slug, newer) == expected
        without = [table for table in every if table.key.problem != slug]
        assert spliced(board(without), slug, made[slug]) == board(every), "a problem's first section finds its place"
        assert spliced(board(every), slug, []) == board(without)
    assert spliced(board(made["gelu"]), "gelu", []) == board([])
    named = board(made["gelu"], "GPU *101*")
    assert named == board(made["gelu"]).replace("# Leaderboard\n", "# GPU \\*101\\*\n")
    assert spliced(named, "gelu", made["gelu"], "GPU *101*") == named
    assert spliced(named, "gelu", made["gelu"]) is None, "another title"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# Leaderboard", "# Scores"),
        ("| 1 |", "<<<<<<< HEAD\n| 1 |"),
        ("A time is", "A time was"),
        ("boards/softmax.md", "elsewhere.md"),
        ("### ", "#### "),
    ],
)
def test_a_board_that_is_not_ours_line_by_line_is_written_whole(old, new):
    text = board(tables(accepted()))
    assert old in text
    assert spliced(text.replace(old, new), "gelu", tables(accepted(problem="gelu"))) is None
    assert spliced("", "softmax", []) is None


def test_an_empty_board_says_so():
    assert board([]) == "# Leaderboard\n\nNo submission has been accepted yet.\n"


HOSTILE = [
    "a|b.py", "<script>alert(1)</script>.py", "&lt;b&gt;.py", "`code`.py", "[click](https://example.com).py",
    "![image](x).py", "<https://example.com>.py", "**bold** _it_ ~~gone~~.py", "\\| back\\slash\\", "# heading",
    "- item", "| --- |", "&#124;", '" onmouseover="x',
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_rendered_as_its_characters(name):
    rendered = PARSER.render(board(tables(accepted(name=name))))
    cells = CELL.findall(rendered)
    assert len(cells) == 11
    assert cells[2] == html.escape(name)
    heading = PARSER.render(board(tables(accepted(device_name=name))))
    assert f"<h3>{html.escape(name)} · plain calls · protocol 1" in heading


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_of_a_baseline_is_rendered_as_its_characters(name):
    rendered = PARSER.render(board(tables(accepted(speedups={name: 1.5}), accepted(author="bob"))))
    heads = re.findall(r"<th(?: style=\"text-align:\w+\")?>(.*?)</th>", rendered, re.DOTALL)
    assert heads[5] == f"× {html.escape(name)}"
    assert len(heads) == 12
    assert len(CELL.findall(rendered)) == 24


VISIBLE = st.characters(exclude_categories=["C", "Z"], include_characters=" |<>&`[]()*_~\\#!\"'")


@given(name=st.text(VISIBLE, min_size=1, max_size=30).map(str.strip).filter(bool))
def test_any_visible_name_is_rendered_as_its_characters(name):
    rendered = PARSER.render(f"| name | run |\n|:---|---:|\n| {escape(name)} | 7 |\n")
    assert CELL.findall(rendered) == [html.escape(name, quote=True).replace("&#x27;", "'"), "7"]


@given(name=st.text(max_size=30))
def test_no_name_holds_a_character_that_cannot_be_seen_or_ends_a_line(name):
    escaped = escape(name)
    assert len(escaped.splitlines()) <= 1
    assert all(character.isprintable() or character.isspace() for character in escaped)
    assert "|" not in escaped
    assert "<" not in escaped


@pytest.mark.parametrize(
    ("name", "rendered"),
    [("a\nb", r"a\x0ab"), ("a\x1b[2J", r"a\x1b[2J"), ("a\u202egnp.py", r"a\u202egnp.py"), ("\udc80", r"\udc80")],
)
def test_an_invisible_character_comes_out_as_its_code(name, rendered):
    assert PARSER.renderInline(escape(name)) == rendered


def test_a_bare_address_is_no_link_to_github():
    assert escape("www.example.com") == r"www\.example.com"
    assert escape("https://example.com") == r"https\:\/\/example.com"


def test_the_board_is_replaced_in_one_step(tmp_path):
    path = tmp_path / "public" / "BOARD.md"
    write_board(path, board(tables(accepted(author="ada"))))
    with path.open() as reader:
        write_board(path, board(tables(accepted(author="bob"))))
        assert "| ada |" in reader.read(), "who had the old one open reads it to its end"
    assert "| bob |" in path.read_text()
    assert [entry.name for entry in path.parent.iterdir()] == ["BOARD.md"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_board_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "BOARD.md"
    path.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HarnessError, match=r"BOARD\.md: the board cannot be written \(No space left on device\)"):
        write_board(path, board([]))
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("BOARD.md", "old")]


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_the_ends_of_the_calendar_have_a_date(moment):
    verdict = accepted(created_at=datetime.fromisoformat(moment))
    assert f"{int(moment[:4])}{moment[4:10]}" in board(tables(verdict))


def test_tables_of_several_timings_stand_under_headings_of_their_own():
    sealed = accepted(protocol=4, modes=("graphs",), timing="sealed")
    made = tables(sealed, accepted(author="bob", modes=REPLAYED, protocol=4), accepted(author="cyd"))
    text = board(made)
    problem = made[0].key.problem_sha256[:12]
    assert [line for line in text.splitlines() if line.startswith("### ")] == [
        f"### NVIDIA H200 · replayed · protocol 4 · problem {problem}",
        f"### NVIDIA H200 · sealed rounds · protocol 4 · problem {problem}",
        f"### NVIDIA H200 · plain calls · protocol 1 · problem {problem}",
    ]
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| 1 |")]
    assert [(row[1], row[6]) for row in rows] == [("bob", "replayed"), ("ada", "graphs"), ("cyd", "calls")]
    assert spliced(text, "softmax", made) == text, "an append finds its section again"
