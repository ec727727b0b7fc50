"""Collapsed stacks are added up to a tree and written back, and no bytes do anything else than be read or refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.profiling import stacks
from harness.profiling.stacks import DEEPER, ROOT, UNNAMED, Frame, StacksError, collapse, parse, stacks_of, tree

# Names of every kind: the separators of the format, what is invisible, lone surrogates, and ordinary ones that collide.
NAMES = st.text(st.sampled_from("ab; \n\t\r\x00\x85\u2028\u202e\ud800\ufffe\\…é中") | st.characters(), max_size=6)
STACKS = st.lists(
    st.tuples(st.lists(NAMES | st.sampled_from(["f", "g"]), max_size=5), st.integers(0, 10**12)), max_size=20
)


def chain(root: Frame) -> list[str]:
    """The names from the outermost frame to the innermost, in a tree of one stack."""
    names = []
    while root.children:
        (root,) = root.children
        names.append(root.name)
    return names


def test_equal_stacks_are_added_up_and_the_largest_callee_comes_first() -> None:
    root = parse(b"main;load 5\nmain;run 10\nmain 1\n\nmain;run;mm 30\nmain;run 2\nidle 4\nnever 0")
    main = Frame("main", 48, (Frame("run", 42, (Frame("mm", 30),)), Frame("load", 5)))
    assert root == Frame(ROOT, 52, (main, Frame("idle", 4)))
    assert [main.own, main.children[0].own, root.own] == [1, 12, 0]
    assert collapse(stacks_of(root)) == "main 1\nmain;run 12\nmain;run;mm 30\nmain;load 5\nidle 4\n"


def test_no_lines_are_an_empty_tree() -> None:
    assert parse(b"") == parse(b"\n\n") == Frame(ROOT, 0)
    assert collapse(stacks_of(Frame(ROOT, 0))) == ""


@pytest.mark.parametrize(
    ("stack", "names"),
    [
        (b"a b;c d ", ["a b", "c d "]),
        (b"caf\xc3\xa9;\xff;\xc3", ["café", r"\udcff", r"\udcc3"]),
        (b"\x1b[31mred;nul\x00;tab\t;cr\r", [r"\x1b[31mred", r"nul\x00", r"tab\t", r"cr\r"]),
        ("\u202eevil;\u200fm;\ufeff".encode(), [r"\u202eevil", r"\u200fm", r"\ufeff"]),
        ("one\u2028two;\x85;\u00a0".encode(), [r"one\u2028two", r"\x85", r"\xa0"]),
        (b"", [UNNAMED]),
        (b"a;;b", ["a", UNNAMED, "b"]),
        (b"1 2 3", ["1 2 3"]),
        (b"n" * 256, ["n" * 256]),
        (b"n" * 257, ["n" * 255 + "…"]),
        (b"\x00" * 100, [(r"\x00" * 64)[:255] + "…"]),
        (b";".join([b"f"] * 256), ["f"] * 256),
        (b";".join([b"f"] * 257), ["f"] * 255 + [DEEPER]),
        (b";" * 100_000, [UNNAMED] * 255 + [DEEPER]),
    ],
)
def test_names_become_printable_and_bounded(stack: bytes, names: list[str]) -> None:
    assert chain(parse(stack + b" 7\n")) == names


@pytest.mark.parametrize(
    "line",
    [
        *(b"a;b", b"a;b ", b"12", b"a;b\t12", b"a -1", b"a +1", b"a 1.5", b"a 1e3", b"a NaN", b"a inf", b"a 1_000"),
        *(b"a 12\r", "a ٣".encode(), "a 1\u2028".encode(), b"a 1000000000000000", b"a " + b"9" * 5000, b"\x00\xff"),
    ],
)
def test_a_line_without_a_count_is_refused_and_named(line: bytes) -> None:
    with pytest.raises(StacksError) as refused:
        parse(b"fine 1\n" + line + b"\nfine 1\n")
    assert str(refused.value) == "stacks: line 2 does not end in a space and a count of 1 to 15 digits"


def test_what_is_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for bound, value in {"MAX_BYTES": 60, "MAX_LINES": 6, "MAX_FRAMES": 4}.items():
        monkeypatch.setattr(stacks, bound, value)
    most = 10**15 - 1
    assert parse(b"f;f;f;f 1\n" + b"f" * 48 + b" 0").value == 1
    assert parse(b"a 1\n" * 6).value == 6
    assert parse(b"a;b 1\nc;d 2\n").value == 3
    assert parse(b"a %d\nb 1\n" % (most - 1)).value == most
    for text, message in {
        b"f" * 59 + b" 1": "stacks: 61 bytes; at most 60 are read",
        b"a 1\n" * 7: "stacks: more than 6 lines",
        b"\n" * 7: "stacks: more than 6 lines",
        b"a;b 1\nc;d;e 2\n": "stacks: more than 4 different frames",
        b"a %d\nb 1\n" % most: "stacks: a negative count, or more than 999,999,999,999,999 in all",
    }.items():
        with pytest.raises(StacksError, match=re.escape(message)):
            parse(text)


def test_a_tree_has_no_negative_value_and_no_frame_less_than_its_callees() -> None:
    with pytest.raises(StacksError, match="negative"):
        tree([(["a"], 5), (["b"], -1)])
    with pytest.raises(ValueError, match="a frame of 2, less than its children"):
        Frame("a", 2, (Frame("b", 1), Frame("c", 2)))


@given(STACKS)
@example([([], 1), ([""], 2), (["a;b"], 3), (["a", "b"], 4), (["x"] * 300, 5), (["\udcff" * 300], 6)])
def test_a_tree_is_the_same_after_it_was_written_and_read(pairs: list[tuple[list[str], int]]) -> None:
    root = tree(pairs)
    assert root.value == sum(value for _, value in pairs)
    assert tree(stacks_of(root)) == root
    assert parse(collapse(stacks_of(root)).encode()) == root
    assert parse(collapse(pairs).encode()) == root, "stacks need not be added up before they are written"


@given(st.binary(max_size=80) | st.lists(st.sampled_from([b"a", b";", b" ", b"\n", b"7", b"\xf0"])).map(b"".join))
@settings(max_examples=300)
def test_any_bytes_are_read_or_refused_in_one_printable_line(text: bytes) -> None:
    try:
        said = [name for stack, _ in stacks_of(parse(text)) for name in stack]
    except StacksError as refused:
        said = [str(refused)]
    assert all(text.isprintable() and ";" not in text for text in said)
