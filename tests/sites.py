"""A small project to build sites of: ledgers, an archive and problems, for the tests of the site."""

from __future__ import annotations

import contextlib
import json
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.submission import Submission
from harness.verdict import BadElement, Mismatch, OutputCheck, Roofline, Verdict
from harness.verdict.roofline import Calibration
from leaderboard.publishing.site.build import build
from leaderboard.publishing.site.folder import Written
from leaderboard.publishing.site.inputs import SiteInputs
from leaderboard.publishing.site.statement import Shapes, StatedArgument, Statement
from leaderboard.record.archive import archive
from leaderboard.record.current import Current
from leaderboard.record.index import Index
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.profile import StoredProfile, archive_profile
from leaderboard.record.teams import NO_TEAMS
from leaderboard.standings.visibility import Rule
from tests.verdicts import EPOCH, accepted, failed, sha256

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SOURCE = 'import triton\n\n\ndef softmax(x, y):\n    """Rows."""\n    y.copy_(x.softmax(1))  # {author}\n'


class SiteProject:
    """Ledgers in `root/results`, sources in `root/archive`, organizers' kernels in `root/reference`.

    The site goes to `root/site`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.out = root / "site"
        self.now = NOW
        self.protocol = 1
        self.url = ""
        self.teams = NO_TEAMS
        self.index = Index(root / "index.sqlite")
        self.called: dict[str, str] = {}  # the title and how to submit, if they are set
        self.problems: dict[str, str] = {}  # that are not as their statements say
        self.statements = [statement("softmax"), statement("gelu")]

    def add(self, verdict: Verdict, source: str | None = None) -> Verdict:
        """Append a verdict, and archive a source for it; the verdict gets that source's hash."""
        identity = verdict.submission
        text = SOURCE.replace("{author}", repr(identity.author)) if source is None else source
        found = Submission(name=identity.name, author=identity.author, language=identity.language, source=text.encode())
        identity = identity.model_copy(update={"sha256": found.sha256, "size_bytes": len(found.source)})
        verdict = verdict.model_copy(update={"submission": identity})
        with contextlib.suppress(HarnessError):  # it refuses hostile authors, whom a ledger may name all the same
            archive(self.root / "archive", verdict.problem.slug, found)
        JsonlLedger(self.root / "results" / f"{verdict.problem.slug}.jsonl").append(verdict)
        return verdict

    def kernel(self, slug: str, name: str, source: str) -> str:
        """Write an organizers' kernel; returns its hash."""
        file = self.root / "reference" / slug / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
        return Submission.read(file, "baseline").sha256

    def profile(self, verdict: Verdict, **sections: Any) -> Path:
        """Keep a profile with a run; sections as in `StoredProfile`."""
        identity = verdict.submission
        profile = StoredProfile(run=verdict.run, sha256=identity.sha256, case="2048 square", **sections)
        return archive_profile(self.root / "archive", verdict.problem.slug, identity.author, profile)

    def build(self) -> Written:
        return build(self.material(), self.out, self.root / "site.cache")

    def material(self) -> SiteInputs:
        return SiteInputs(
            ledgers=tuple(sorted((self.root / "results").glob("*.jsonl"))),
            archive=self.root / "archive",
            archive_name="leaderboard/archive",
            now=self.now,
            current=Current(
                problems={**{known.slug: known.sha256 for known in self.statements}, **self.problems},
                protocol=self.protocol,
            ),
            statements=tuple(self.statements),
            calibrations=(CALIBRATION,),
            reference=self.root / "reference",
            url=self.url,
            teams=self.teams,
            index=self.index,
            **self.called,
        )

    def html(self, path: str) -> str:
        return (self.out / path).read_text(encoding="utf-8")

    def text(self, path: str) -> str:
        return text(self.html(path))

    def json(self, path: str) -> Any:
        return json.loads((self.out / path).read_bytes())

    def files(self) -> dict[str, tuple[int, bytes]]:
        """Every file with the time of its last change and its bytes."""
        return {
            str(path.relative_to(self.out)): (path.stat().st_mtime_ns, path.read_bytes())
            for path in sorted(self.out.rglob("*"))
            if path.is_file()
        }


def statement(slug: str, **changes: Any) -> Statement:
    """A problem that fits the verdicts of `tests.verdicts`."""
    text = f"# {slug}\n\nWhat is **asked**.\n\n| argument | shape |\n|---|---:|\n| `x` | `[rows, cols]` |\n"
    argument = StatedArgument(name="x", role="input", shape="[2048, 2048]", dtype="float32")
    shapes = Shapes(
        case="2048 square", devices=("cuda",), params={"rows": 2048}, tensors=(argument,), minimum_bytes=8,
        minimum_flops=5,
    )  # fmt: skip
    made = Statement(
        slug=slug, title=slug.capitalize(), sha256=sha256(f"{slug} 1"), text=text, entry=slug, arguments=(argument,),
        shapes=(shapes,), tests=4, reference="def reference(x):\n    return x.softmax(1)\n",
        rule=Rule(problem=slug, visibility="public"),
    )  # fmt: skip
    return made.model_copy(update=changes)


CALIBRATION = Calibration(
    device_name="NVIDIA H200", torch="2.11.0", created_at=datetime(2026, 1, 1, tzinfo=UTC), cache_bytes=62_914_560,
    copy_bytes_per_s=4_287_894_112_515, read_bytes_per_s=4_336_885_832_762,
    flops_per_s={"float32": 51_053_374_963_790}, memory_spread=0.001, arithmetic_spread=0.1,
)  # fmt: skip


def run_of(author: str, score_ns: int, run: str, **changes: Any) -> Verdict:
    """An accepted run whose id is one digit sixteen times over."""
    return accepted(author=author, score_ns=score_ns, run=run * 16, **changes)


MEMORY = Roofline(share=0.5, limit="memory")


def filled(root: Path) -> SiteProject:
    """Four authors on two problems; `ada` held the record before `bob`, and `eve` failed."""
    made = SiteProject(root)
    made.add(run_of("ada", 60_000, "a", created_at=EPOCH, speedups={"eager": 1.2}, roofline=MEMORY))
    made.add(run_of("bob", 50_000, "b", created_at=EPOCH + timedelta(days=1), speedups={"eager": 1.5}, roofline=MEMORY))
    made.add(run_of("cyd", 50_100, "c", created_at=EPOCH + timedelta(days=2), speedups={"eager": 1.4}, roofline=MEMORY))
    made.add(run_of("ada", 55_000, "d", created_at=EPOCH + timedelta(days=3), roofline=MEMORY))
    made.add(run_of("ada", 70_000, "e", created_at=EPOCH, problem="gelu", device_name="NVIDIA L4"))
    made.add(wrong(author="eve", run="f" * 16))
    made.build()
    return made


def wrong(**changes: Any) -> Verdict:
    """A wrong answer with its report."""
    verdict = failed(message="2 of 9 wrong", **changes)
    first = (BadElement(index=(0, 2), got="nan", expected="0.25", error="nan"),)
    mismatch = Mismatch(
        output="y", shape=(3, 3), dtype="float32", wrong=2, total=9, nan_got=2, first=first, hints=("never written",)
    )
    output = OutputCheck(output="y", dtype="float32", correct=False, mismatch=mismatch)
    tests = (verdict.tests[0], verdict.tests[1].model_copy(update={"outputs": (output,)}))
    return verdict.model_copy(update={"tests": tests, "traceback": "SECRET LINE", "log": "SECRET LOG"})


class Links(HTMLParser):
    """Every address that a page names, and every attribute that could run code."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.ids: set[str] = set()
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in {"href", "src", "action", "data", "srcset"}:
                self.found.append(value or "")
            if name == "id":
                self.ids.add(value or "")
            if name.startswith("on") or name == "style":
                self.handlers.append(name)


def pages(project: SiteProject) -> list[Path]:
    return sorted(project.out.rglob("*.html"))


def text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))
