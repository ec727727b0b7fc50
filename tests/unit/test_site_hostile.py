"""Whatever a ledger holds is only text on the site: hostile names, messages, sources and logs."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.verdict import BadElement, Doubt, Mismatch, OutputCheck, Roofline, Telemetry
from leaderboard.publishing.site import markup, paths
from leaderboard.publishing.site.charts.plot import Note, PlotMark, Series, linear, plot
from tests.sites import SiteProject
from tests.verdicts import REPLAYED, accepted, failed, kernel

ATOM = "{http://www.w3.org/2005/Atom}"
EVIL = "MARK"
HOSTILE = [
    f"<script>{EVIL}()</script>",
    f'"><img src=x onerror={EVIL}()>',
    f"' onmouseover='{EVIL}()",
    f"]]><script>{EVIL}</script>",
    f"</title></textarea></code></pre><b>{EVIL}",
    f"{{{{ {EVIL} }}}}{{% raw %}}",
    f"&lt;b&gt;{EVIL}&#60;",
    f"{EVIL}\u202egnp.exe\u2066\u200f",
    f"{EVIL}\x00\x1b[31m\r\n\x7f\u2028",
    f"javascript:{EVIL}",
    f"../../{EVIL}/..",
    f"{EVIL} %2e%2e%2f?q#x",
    EVIL + "x" * 5000,
    f"{EVIL} \ufeff 中文 🙂 עברית",
]


class Tags(HTMLParser):
    """The skeleton of a page: its tags and the names of their attributes, and the text of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.skeleton: list[tuple[str, tuple[str, ...]]] = []
        self.text: list[str] = []
        self.links: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.skeleton.append((tag, tuple(name for name, _ in attrs)))
        self.links += [value for name, value in attrs if value and name in {"href", "src"}]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def hostile(project: SiteProject, name: str) -> None:
    """A project in which everything that a participant can name has this name."""
    doubt = Doubt(code=name, text=name)
    first, second, slow = (
        accepted(
            author=author,
            name=name,
            score_ns=score_ns,
            run=run * 16,
            device_name=name,
            speedups={name: 1.5},
            log=name,
            roofline=Roofline(share=0.5, limit="memory"),
        )
        for author, score_ns, run in ((name, 50_000, "a"), ("bob", 60_000, "b"), ("bob", 40_000, "c"))
    )
    found = []
    for verdict in (first, second, slow):
        throttled = tuple(
            r.model_copy(update={"telemetry": Telemetry(sm_mhz=1000 + i, throttle=(name,))})
            for i, r in enumerate(verdict.benchmarks[0].rounds)
        )
        benchmark = verdict.benchmarks[0].model_copy(
            update={"name": name, "params": {name: name}, "rounds": throttled, "doubts": (doubt,)}
        )
        environment = verdict.environment.model_copy(update={"driver": name, "torch": name, "image_digest": name})
        test = verdict.tests[0].model_copy(update={"name": name, "params": {name: name}})
        found.append(
            verdict.model_copy(
                update={
                    "benchmarks": (benchmark,),
                    "environment": environment,
                    "tests": (test,),
                    "doubts": (doubt,),
                    "traceback": name,
                }
            )
        )
    replayed = accepted(
        author="cyd", run="e" * 16, modes=REPLAYED, protocol=4, device_name=name, speedups={name: 1.5}
    )  # fmt: skip
    cases = [b.model_copy(update={"name": name, "kernels": (kernel(name),)}) for b in replayed.benchmarks]
    for verdict in (*found, replayed.model_copy(update={"benchmarks": tuple(cases)})):
        added = project.add(verdict, f"# {name}\ndef f():\n    '''{name}'''\n")
        if added.submission.author in {"bob", "cyd"}:
            frame = re.sub(r"[;\n]", " ", name)
            project.profile(
                added,
                stacks={f"{name[:100]}, µs": f"{frame} 1\n", "µs": f"a;{frame} 3\n"},
                rows={name[:100]: ((name[:300], "b"), (name[:300], "c"))},
                tables={name[:100]: name},
                files={name[:100]: name, "long": name * (400_000 // len(name))},
                missing=(name[:300],),
            )
    bad = failed(author=name, name=name, message=name, run="d" * 16)
    element = BadElement(index=(0,), got=name, expected=name, error=name)
    mismatch = Mismatch(output=name, shape=(3,), dtype=name, wrong=1, total=3, first=(element,), hints=(name,))
    wrong = bad.tests[1].model_copy(
        update={"name": name, "outputs": (OutputCheck(output=name, dtype=name, correct=False, mismatch=mismatch),)}
    )
    project.add(bad.model_copy(update={"tests": (bad.tests[0], wrong)}))


@pytest.fixture(scope="module")
def tame(tmp_path_factory: pytest.TempPathFactory) -> SiteProject:
    project = SiteProject(tmp_path_factory.mktemp("tame"))
    hostile(project, f"{EVIL} {EVIL}")  # which the archive refuses too, so that the pages are alike
    project.build()
    return project


def pages(project: SiteProject) -> list[Path]:
    return sorted(project.out.rglob("*.html"), key=lambda path: (path.parent.name, path.name == "bob.html", path.name))


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_name_changes_no_tag(name: str, tame: SiteProject, tmp_path: Path, site: SiteProject) -> None:
    hostile(site, name)
    site.build()
    for good, bad in zip(pages(tame), pages(site), strict=True):
        one, other = Tags(good.read_text()), Tags(bad.read_text())
        in_source = ("span", ("class",)), ("span", ("class", "data-n"))  # as the source has other tokens and lines
        assert [t for t in other.skeleton if t not in in_source] == [t for t in one.skeleton if t not in in_source], bad
        shown = "".join(other.text)
        assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and c not in "\n\t"]
        assert not [link for link in other.links if ":" in link]
    assert not list(tmp_path.parent.glob(f"*{EVIL}*"))
    written = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*")}
    assert written <= {"site", "site.cache", "results", "archive", "index.sqlite", ".gitignore"}


def test_the_feed_stays_well_formed(site: SiteProject) -> None:
    for number, name in enumerate(HOSTILE):
        site.add(accepted(author="bob", score_ns=50_000, run=f"1{number:015x}", device_name=name))
        site.add(accepted(author=name, score_ns=40_000, run=f"2{number:015x}", device_name=name))
    site.build()
    text = site.html("feed.xml")
    entries = ElementTree.fromstring(text).findall(f"{ATOM}entry")
    assert len(entries) == len(HOSTILE)
    assert all(EVIL in (entry.findtext(f"{ATOM}author/{ATOM}name") or "") for entry in entries)
    assert "<script" not in text
    told = {ATOM + name for name in ("title", "id", "updated", "link", "author", "summary")}
    assert all({child.tag for child in entry} == told for entry in entries)


def test_a_hostile_name_can_be_read_in_full(site: SiteProject) -> None:
    name = '<b>"quoted" & \u202ereversed</b>'
    site.add(accepted(author=name, run="a" * 16))
    site.build()
    page = site.html("problems/softmax.html")
    assert "&lt;b&gt;&#34;quoted&#34; &amp; \\u202ereversed&lt;/b&gt;" in page
    document = json.loads((site.out / "problems/softmax.json").read_bytes())
    assert document["boards"][0]["rows"][0]["author"] == name, "data are data"


def test_a_very_long_name_does_not_make_a_page_large(site: SiteProject) -> None:
    hostile(site, "x" * 50_000)
    site.build()
    assert max(path.stat().st_size for path in pages(site)) < 300_000


@pytest.mark.full
def test_a_very_long_source_ends_early_and_is_whole_in_the_json(site: SiteProject) -> None:
    source = "".join(f"value_{i} = {i}  # <{i}>\n" for i in range(30_000))
    site.add(accepted(run="a" * 16), source)
    site.add(accepted(run="b" * 16, author="bob", score_ns=60_000), source[:-100] + "\n" + "y = 1\n" * 40_000)
    site.build()
    assert max(path.stat().st_size for path in pages(site)) < 300_000
    assert "the whole source is in" in site.html(f"runs/{'a' * 16}.html")
    assert site.json(f"runs/{'a' * 16}.json")["source"] == source


@given(st.text(max_size=80))
@settings(max_examples=200, deadline=None)
def test_a_name_is_one_component_of_a_path(name: str) -> None:
    component = paths.component(name)
    assert re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,70}", component)
    assert ".." not in component


@given(st.sets(st.text(max_size=8), min_size=2, max_size=8))
@settings(max_examples=200, deadline=None)
def test_two_names_have_two_places_also_where_capitals_do_not_count(names: set[str]) -> None:
    assert len({paths.component(name).lower() for name in names}) == len(names)


@given(st.text(max_size=200), st.sampled_from(["py", "cu", "cpp"]))
@settings(max_examples=300, deadline=None)
def test_a_highlighted_source_is_its_text(source: str, language: str) -> None:
    shown, whole = markup.source(source, language)
    assert whole
    found = Tags(str(shown))
    assert {tag for tag, _ in found.skeleton} <= {"span"}
    plain = re.sub(r"<[^>]*>", "", str(shown))
    assert html.unescape(plain).split() == str(html.unescape(str(markup.lines(source)))).rstrip("\n").split()


@given(st.text(max_size=60))
@settings(max_examples=100, deadline=None)
def test_a_plot_is_svg_whatever_its_names_are(name: str) -> None:
    axis = linear([0.0, 1.0], lambda value, _: name, name)
    marks = [PlotMark((0.0, 1.0), name, name, "x.html", start=start) for start in (None, 0.5)]
    drawn = plot(name, axis, axis, [Series("main", [(0.0, 1.0)], dots=True)], marks, [Note((1.0, 1.0), name)])
    root = ElementTree.fromstring(str(drawn))
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags <= {"svg", "title", "g", "path", "text", "a", "circle"}
    assert not [a for element in root.iter() for a in element.attrib if a.startswith("on") or a in {"style", "id"}]
