"""Reads collapsed stacks into a tree of frames, and writes a tree as collapsed stacks.

A line of the format is `outermost;...;innermost COUNT`. Brendan Gregg's flame graph tools read it, and torch.profiler's
`export_stacks` writes it. Trusted; the bytes come from a sandbox and are hostile, so their number, lengths and depth
are bounded, and names are made printable.

The runner writes one line for each distinct stack: the operator or kernel is the innermost frame, and the count is its
own time in whole microseconds. In names the runner replaces `;`, tabs and line breaks by spaces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from harness.wire.checks import printable

MAX_BYTES = 32 << 20
MAX_LINES = 200_000
MAX_FRAMES = 100_000  # in the tree, after equal stacks were added up
MAX_DEPTH = 256  # frames of one stack; trees are walked recursively
MAX_NAME = 256  # characters
MAX_TOTAL = 10**15 - 1  # of all counts; in microseconds 31 years

ROOT = "all"  # the frame above the outermost ones
DEEPER = "(deeper frames)"  # stands for what a stack of more than `MAX_DEPTH` frames has beyond
UNNAMED = "(no name)"

Stack = Sequence[str]  # the names of frames, outermost first


class StacksError(ValueError):
    """The stacks cannot be read; the message is one line that is safe to print on a terminal."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A function at one call site. `value` includes the functions that it called: its `children`, largest first."""

    name: str
    value: int
    children: tuple[Frame, ...] = ()

    def __post_init__(self) -> None:
        if self.own < 0:
            raise ValueError(f"a frame of {self.value}, less than its children have together")

    @property
    def own(self) -> int:
        """The value of the frame without its children."""
        return self.value - sum(child.value for child in self.children)


def parse(text: bytes) -> Frame:
    """Read collapsed stacks: a frame called `ROOT` whose children are the outermost frames.

    Bytes that are not UTF-8 and characters that cannot be printed become visible escapes.

    Raises:
        StacksError: a line has no count, or a limit is exceeded. Whatever the bytes, no other exception is raised.
    """
    if len(text) > MAX_BYTES:
        raise StacksError(f"stacks: {len(text):,} bytes; at most {MAX_BYTES:,} are read")
    if text.count(b"\n") > MAX_LINES:
        raise StacksError(f"stacks: more than {MAX_LINES:,} lines")
    totals: Counter[bytes] = Counter()  # torch's own export repeats a stack for each event
    for number, line in enumerate(text.split(b"\n"), 1):
        if line:
            stack, space, count = line.rpartition(b" ")
            digits = len(str(MAX_TOTAL))
            if not (space and count.isdigit() and len(count) <= digits):
                raise StacksError(f"stacks: line {number} does not end in a space and a count of 1 to {digits} digits")
            totals[stack] += int(count)
    # A split beyond `MAX_DEPTH` shows that there is more.
    decoded = ((stack.decode("utf-8", "surrogateescape"), total) for stack, total in totals.items())
    return tree((stack.split(";", MAX_DEPTH), total) for stack, total in decoded)


def tree(stacks: Iterable[tuple[Stack, int]]) -> Frame:
    """Add up stacks: a frame called `ROOT` whose children are the outermost frames; stacks of 0 are left out.

    Raises:
        StacksError: a value is negative, the sum of the values exceeds `MAX_TOTAL`, or there are too many frames.
    """
    root, total, frames = _FrameTotals(), 0, 0
    known: dict[str, str] = {}
    for stack, value in stacks:
        total += value
        if value < 0 or total > MAX_TOTAL:
            raise StacksError(f"stacks: a negative count, or more than {MAX_TOTAL:,} in all")
        if value == 0:
            continue
        node = root
        for name in _bounded(stack, known):
            child = node.children.get(name)
            if child is None:
                frames += 1
                if frames > MAX_FRAMES:
                    raise StacksError(f"stacks: more than {MAX_FRAMES:,} different frames")
                child = node.children[name] = _FrameTotals()
            node = child
        node.own += value
    return _frozen(ROOT, root)


def stacks_of(root: Frame) -> Iterator[tuple[Stack, int]]:
    """The stacks of a tree, without its root: one for each frame with a value of its own, with its callers."""
    remaining: list[tuple[tuple[str, ...], Frame]] = [((child.name,), child) for child in reversed(root.children)]
    while remaining:
        stack, frame = remaining.pop()
        if frame.own:
            yield stack, frame.own
        remaining += [((*stack, child.name), child) for child in reversed(frame.children)]


def collapse(stacks: Iterable[tuple[Stack, int]]) -> str:
    """Write stacks as text that `parse` reads; the text of a tree is `collapse(stacks_of(tree))`."""
    return "".join(f"{';'.join(map(frame_name, stack))} {value}\n" for stack, value in stacks)


def frame_name(text: str) -> str:
    """Normalize a name: one printable line of 1 to `MAX_NAME` characters, without `;`, which separates frames."""
    shown = printable(text[: MAX_NAME + 1]).replace("\n", "\\n").replace("\t", "\\t").replace(";", "_")
    if len(shown) > MAX_NAME:
        shown = shown[: MAX_NAME - 1] + "…"
    return shown or UNNAMED


@dataclass(slots=True)
class _FrameTotals:
    """A frame while stacks are added up."""

    own: int = 0
    children: dict[str, _FrameTotals] = field(default_factory=dict)


def _frozen(name: str, node: _FrameTotals) -> Frame:
    children = [_frozen(name, child) for name, child in node.children.items()]
    children.sort(key=lambda child: (-child.value, child.name))
    return Frame(name, node.own + sum(child.value for child in children), tuple(children))


def _bounded(stack: Stack, known: dict[str, str]) -> list[str]:
    """Normalize the names of a stack and limit its depth. `known` caches names, since most stacks share them."""
    names = []
    for name in stack[:MAX_DEPTH]:
        if name not in known:
            known[name] = frame_name(name)
        names.append(known[name])
    if len(stack) > MAX_DEPTH:
        names[-1] = DEEPER
    return names or [UNNAMED]
