"""Reads the submissions that `kernelmark similar` compares, and makes a page of similar files.

Trusted code over untrusted sources: they are searched as text, and escaped in the page.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from harness.errors import UsageError
from harness.submission import Submission
from kernelmark.course.kernel import Wanted
from kernelmark.course.submissions import problem_of, submissions_in
from kernelmark.project.settings import Settings
from kernelmark.text.terminal import counted, say
from leaderboard.record.similar import SHINGLE, GradedFile, Pair, placed, sequences, shingles

_STYLE = """body{font:15px system-ui;margin:1.5rem} h2{font-size:1.1rem;margin:2rem 0 .3rem}
.two{display:grid;grid-template-columns:1fr 1fr;gap:1rem}
pre{overflow:auto;border:1px solid #ccc;padding:.5rem;margin:0}
mark{background:#ffe08a;color:inherit} i{font-style:normal;opacity:.5}
@media(prefers-color-scheme:dark){body{background:#111;color:#ddd} mark{background:#6b5200}}"""
_SAFE = "default-src 'none'; style-src 'unsafe-inline'"


def handed_in(settings: Settings, problem: str, place: Path, *, earlier: bool = False) -> dict[GradedFile, Submission]:
    """Read the kernels in a folder or an archive. A note on stderr says how many submissions have none.

    With `earlier` they are from an earlier course, and are not compared with each other.

    Raises:
        UsageError: the place or the problem cannot be read.
    """
    loaded = problem_of(settings, problem, place, datetime.now(UTC))
    wanted = Wanted(loaded.entry, loaded.submission.file if loaded.submission else "")
    found, without = dict[GradedFile, Submission](), 0
    for submitted in submissions_in(place, settings.teams, wanted):
        try:
            submission = submitted.submission()
        except UsageError:
            without += 1
            continue
        name = GradedFile(author=submitted.author, run="", name=submitted.path, earlier=place.name if earlier else "")
        found[name] = submission
    if without:
        say(f"kernelmark: note: {place}: {counted(without, 'submission')} without a kernel to compare")
    return found


def people(pairs: Sequence[Pair]) -> Iterator[str]:
    """A line for each group of more than two people."""
    for group in sorted({pair.group for pair in pairs}):
        files = [file for pair in pairs if pair.group == group for file in (pair.one, pair.other)]
        names = sorted({f"{file.author} ({file.earlier})" if file.earlier else file.author for file in files})
        if len(names) > 2:
            yield f"group {group}: {', '.join(names)}"


def page(
    title: str, pairs: Sequence[Pair], submissions: Mapping[GradedFile, Submission], base: Sequence[Submission]
) -> str:
    """An HTML page with the files of each pair in two columns. Common code is highlighted, starting code is pale."""
    known = {shingle for start in base for shingle in shingles(start)}
    parts = [f"<h1>{html.escape(title)}</h1><p>Similarity proves nothing. Names, texts and comments do not count.</p>"]
    for pair in pairs:
        one, other = submissions[pair.one], submissions[pair.other]
        common = shingles(one) & shingles(other)
        head = f"{pair.similarity:.2f}: {pair.one} and {pair.other} (group {pair.group})"
        columns = "".join(f"<pre>{_marked(file, common - known, known)}</pre>" for file in (one, other))
        parts.append(f'<h2>{html.escape(head)}</h2><div class="two">{columns}</div>')
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_SAFE}">'
    return (
        f"<!doctype html>{head}<title>{html.escape(title)}</title><style>{_STYLE}</style>\n" + "\n".join(parts) + "\n"
    )


def _marked(submission: Submission, common: set[tuple[str, ...]], known: set[tuple[str, ...]]) -> str:
    """The files of a submission in HTML. Tokens in `common` sequences are highlighted, those in `known` ones pale."""
    files = []
    for name, content in submission.files:
        source = content.decode("utf-8", "replace")
        found = placed(source, submission.language)
        tags = [""] * len(found)
        for tag, wanted in (("i", known), ("mark", common)):
            for start, sequence in enumerate(sequences([text for text, _ in found])):
                if sequence in wanted:
                    tags[start : start + SHINGLE] = [tag] * len(tags[start : start + SHINGLE])
        written, at = [f"<b>{html.escape(name)}</b>\n"], 0
        for (_, (begin, end)), tag in zip(found, tags, strict=True):
            text = html.escape(source[begin:end])
            written += [html.escape(source[at:begin]), f"<{tag}>{text}</{tag}>" if tag else text]
            at = end
        text = "".join([*written, html.escape(source[at:])])
        files.append(re.sub(r"</(mark|i)>(\s*)<\1>", r"\2", text))
    return "\n\n".join(files)
