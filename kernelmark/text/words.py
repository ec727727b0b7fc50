"""The meaning of the words in results: outcomes, doubts and terms. For `kernelmark explain` and docs/cli.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from typing_extensions import TypedDict

from harness.errors import HarnessError, UsageError, nearest
from harness.verdict import DoubtCode, Outcome
from kernelmark.text.terminal import Line, labelled

TermKind = Literal["outcome", "doubt", "term"]


class Word(TypedDict):
    """A word and its meaning; the other texts may be empty."""

    word: str
    kind: TermKind
    meaning: str
    when: str
    """The condition for a doubt."""
    for_author: str
    """Advice for the author of a kernel."""
    for_grader: str
    """Advice for the person who grades."""


_OUTCOMES: Mapping[Outcome, tuple[str, str]] = {
    Outcome.ACCEPTED: ("every test and every timed call is right, and there is a score", ""),
    Outcome.WRONG_ANSWER: (
        "an output is not what it should be, in a test or in a timed call",
        "look at the wrong elements in the report; with `benchmark NAME:` the kernel is right in the tests and wrong "
        "when called many times: look for state kept between calls, races, missing synchronization",
    ),
    Outcome.COMPILE_ERROR: (
        "the file does not parse or compile, or has no function or symbol with the entry's name",
        "look at the first error line; the whole log is below it",
    ),
    Outcome.RUNTIME_ERROR: (
        "an exception, a signal, a limit, or a write to an input or beyond the end of an output",
        "look at your lines of the traceback; in Triton, at a `tl.store` without `mask=`",
    ),
    Outcome.MEMORY_LIMIT: ("it needs more memory of the host or of the device than the problem allows", ""),
    Outcome.TIMEOUT: (
        "a deadline has passed; the message says which, and during what",
        "look for an endless loop, a deadlock, or slow work",
    ),
    Outcome.REJECTED: (
        "a time below the device's roofline; memory written around the outputs, or after all calls of a round were "
        "done; an input made writable; a broken protocol",
        "in an honest kernel, look for work that is not joined to the given stream",
    ),
    Outcome.UNSUPPORTED: (
        "neither right nor wrong: on a CPU, Triton's interpreter cannot run it, or is too slow, or it needs a GPU",
        "grade it on a GPU",
    ),
    Outcome.INCOMPLETE: ("`check --only` ran some of the tests, and these passed", "run `check` without `--only`"),
}
_WITHOUT_OUTCOME = {
    "usage": (
        UsageError.exit_code,
        "nothing was graded, because of the file, the problem or an option; or a `.cu` was given without a GPU, or a "
        "`.cpp` with `--device cuda`",
    ),
    "our fault": (
        HarnessError.exit_code,
        "the grading failed, twice, and not because of the submission; nothing is recorded",
    ),
}
_TERMS = {
    "arena": "memory that judge and runner share",
    "baseline": "an organizers' kernel whose calls alternate with the submission's: it gives the speedup",
    "block": "two replayed calls or two rounds of the submission, around those of its baselines",
    "board": "the ranking of one problem; what must not be compared is in separate tables",
    "case": "one set of sizes of a problem: a test or a benchmark",
    "claim": "what the runner reports once it has the submission, which could be forged",
    "doubt": "a reason to trust a result less, shown with it; it changes no number",
    "effort": "how long a grading measures: `--quick`, the default, `--thorough`, `screen`",
    "grading": "building, testing and timing a submission",
    "hidden test": "a test whose failure is reported without its sizes",
    "interpreted": "run by Triton's interpreter on a CPU, which shows nothing about speed",
    "judge": "the trusted process: it draws inputs, compares outputs and takes times",
    "launcher": "a sandboxed process that launches a submission's recorded kernels for timing",
    "ledger": "the append-only file of all verdicts on one problem, in `leaderboard/results/`",
    "outcome": "how a grading ended",
    "overhead": "what a round costs besides its calls",
    "plain calls": "calls that the submission's own code makes in the runner",
    "poison": "random bytes in outputs before a call",
    "pooling": "combining all gradings of one source by one author into one time",
    "protocol": "the version of the timing method; times of different protocols are not compared",
    "recording": "one call captured as data (code, launches, parameters, memory)",
    "red zone": "random bytes around outputs, which nothing may write",
    "replayed calls": "recorded calls that a launcher repeats",
    "roofline": "the least time that a device needs for a case, by its calibration",
    "round": "plain calls that are timed together by the judge's clock",
    "run": "one recorded grading, named by an id of 16 hexadecimal digits",
    "runner": "the sandboxed process that holds the submission",
    "set aside": "recorded but not ranked, as late or disqualified runs are; the board lists them after its rows",
    "slug": "the short name of a problem: the name of its folder",
    "stale": "of a row: graded with an earlier problem, protocol or software; `kernelmark regrade` grades it again",
    "table": "a part of a board: results that may be compared, of one device and one way of timing",
    "truth": "the expected outputs: the reference in float64, or an imported problem's reference",
    "verdict": "the result of a grading",
}


def words() -> Iterator[Word]:
    """All words: outcomes by exit status, doubts, and terms in alphabetical order."""
    statuses = [(outcome.exit_code, outcome.value, *texts) for outcome, texts in _OUTCOMES.items()]
    statuses += [(status, name, meaning, "") for name, (status, meaning) in _WITHOUT_OUTCOME.items()]
    for status, name, meaning, advice in sorted(statuses):
        yield _word(name, "outcome", f"{meaning} (exit status {status})", for_author=advice)
    for code in DoubtCode:
        yield _word(code.value, "doubt", code.meaning, code.when, code.for_author, code.for_grader)
    yield _word(
        "few_rounds",
        "doubt",
        "Too few rounds were measured for an interval of 95 %.",
        when="printed, and not in the JSON, which has `confidence`: it is below 90 %",
        for_author="grade without `--quick`, or with `--thorough`",
    )
    for term, meaning in _TERMS.items():
        yield _word(term, "term", meaning)


def find(name: str) -> Word:
    """Look up a word. Case, `_`, `-` and spaces make no difference: `wrong answer`, `Wrong_Answer`.

    Raises:
        UsageError: there is no such word; the message names the nearest.
    """
    known = {word["word"].replace("_", " "): word for word in words()}
    wanted = " ".join(name.casefold().replace("_", " ").replace("-", " ").split())
    if wanted not in known:
        remedy = nearest(wanted, known, "`kernelmark explain` lists all words")
        raise UsageError(f"{name:.100}", "is not explained here", remedy)
    return known[wanted]


def lines(word: Word) -> Iterator[str]:
    """A word with its meaning and advice, for a terminal."""
    yield Line(f"{word['word']} ({word['kind']}): {word['meaning']}", "bold", styled=len(word["word"]), hang=2)
    for label, text in _advice(word):
        yield labelled(label, text)


def markdown(kind: TermKind) -> Iterator[str]:
    """All words of a kind, as the items of a list in Markdown."""
    for word in words():
        if word["kind"] == kind:
            name = word["word"] if kind == "term" else f"`{word['word']}`"
            rest = "".join(f" *{label.capitalize()}*: {text}." for label, text in _advice(word))
            yield f"- **{name}**: {word['meaning'].removesuffix('.')}{'.' if rest else ''}{rest}"


def _word(word: str, kind: TermKind, meaning: str, when: str = "", for_author: str = "", for_grader: str = "") -> Word:
    return Word(word=word, kind=kind, meaning=meaning, when=when, for_author=for_author, for_grader=for_grader)


def _advice(word: Word) -> Iterator[tuple[str, str]]:
    for label, text in (("when", word["when"]), ("what to do", word["for_author"]), ("organizers", word["for_grader"])):
        if text:
            yield label, text
