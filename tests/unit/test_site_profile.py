"""The page of a run's profile, and the profiles in a comparison: what they show, where, and how large they may be."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from leaderboard.publishing.site.charts import memory
from leaderboard.record.profile import MEMORY_DEVICES, StoredProfile, fitted, memory_file
from leaderboard.standings.visibility import Rule
from tests.sites import NOW, Links, SiteProject, run_of, statement, text
from tests.unit.test_site_hostile import Tags
from tests.verdicts import REPLAYED, accepted, kernel

A, B = "a" * 16, "b" * 16
STACKS = "submission.py(3): twice;aten::add 70\nsubmission.py(3): twice;aten::copy_ 30\n"
RESOURCES = (("kernel", "registers"), ("doubling", "168"))
LONG = "".join(f"/*{k:04}*/ IMAD <R{k}>, R1\n" for k in range(3000))


def sections(**changes: Any) -> dict[str, Any]:
    return {
        "stacks": {"CPU time, µs": STACKS},
        "rows": {"Resources": RESOURCES},
        "tables": {"By operator": "aten::add  <70 %>"},
        "files": {"0-doubling.ptx": ".target sm_90", "0-doubling.sass": LONG},
        **changes,
    }


@pytest.fixture
def project(tmp_path: Path) -> SiteProject:
    made = SiteProject(tmp_path)
    made.profile(made.add(run_of("ada", 50_000, "a")), **sections(missing=("trace 0: <too> large",)))
    made.profile(
        made.add(run_of("bob", 60_000, "b")),
        **sections(stacks={"CPU time, µs": "other 5\n", "device time, µs": "only_b 5\n"}),
    )
    made.add(run_of("cyd", 70_000, "c"))
    made.build()
    return made


def test_the_page_shows_every_part_and_says_whose_word_it_is(project: SiteProject) -> None:
    page = project.html(f"profiles/{A}.html")
    page_text = text(page)
    for part in (
        "Everything here was recorded in the submission's own sandboxes after the grading, and could have been faked.",
        "By operator As a file aten::add &lt;70 %&gt;",
        "0-doubling.ptx As a file .target sm_90",
        "kernel registers doubling 168",
        "trace 0: &lt;too&gt; large",
        "CPU time: 100 µs",
        "submission.py(3): twice",
    ):
        assert part in page_text
    assert f'href="../profiles/{A}.html"' in project.html(f"runs/{A}.html")
    assert 'id="profile"' not in project.html(f"runs/{'c' * 16}.html")
    document = project.json(f"profiles/{A}.json")
    assert document["profile"]["files"]["0-doubling.sass"] == LONG, "data are complete"


def test_long_parts_are_files_next_to_the_page(project: SiteProject) -> None:
    page = project.html(f"profiles/{A}.html")
    beside = {link for link in Links(page).found if link.startswith(f"../profiles/{A}/")}
    [svg] = [link for link in beside if link.endswith(".svg")]
    texts = [project.html(link[3:]) for link in beside - {svg}]
    assert LONG in texts
    assert ".target sm_90" in texts, "what is on the page can be opened, too"
    assert "IMAD" not in page
    root = ElementTree.fromstring(project.html(svg[3:]))
    titles = [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert "aten::add\n70 µs, 70 %" in titles


def test_no_tag_violates_the_content_security_policy(project: SiteProject) -> None:
    for path in (f"profiles/{A}.html", f"compare/{A}-{B}.html"):
        tags = Tags(project.html(path)).skeleton
        assert "style" not in {tag for tag, _ in tags}
        assert [attributes for tag, attributes in tags if tag == "script"] == [("src", "defer")] * 2


def test_a_comparison_has_both_side_by_side(project: SiteProject) -> None:
    page = project.html(f"compare/{A}-{B}.html")
    page_text = text(page[page.index('id="profiles"') :])
    order = [
        "CPU time, µs",
        "twice",
        "A: profile of",
        "other",
        "B: profile of",
        "device time, µs",
        "only_b",
        "Resources",
    ]
    places = [page_text.index(each) for each in order]
    assert places == sorted(places)
    assert page_text.count("doubling 168") == 2
    assert 'id="profiles"' in project.html(f"compare/{A}-{'c' * 16}.html"), "one has a profile"
    alone = SiteProject(project.root / "alone")
    for author, run in (("ada", "a"), ("bob", "b")):
        alone.add(run_of(author, 50_000 if run == "a" else 60_000, run))
    alone.build()
    assert 'id="profiles"' not in alone.html(f"compare/{A}-{B}.html")


def test_the_kernels_that_the_judge_measured_stand_on_top(site: SiteProject) -> None:
    replayed = accepted(author="ada", run=A, modes=REPLAYED, protocol=4)
    measured = [b.model_copy(update={"kernels": (kernel(f"of {b.name}"),)}) for b in replayed.benchmarks]
    site.profile(site.add(replayed.model_copy(update={"benchmarks": tuple(measured)})), **sections())
    site.build()
    page_text = site.text(f"profiles/{A}.html")
    assert "of 2048 square" in page_text
    assert "Except for the kernels of a call, everything here" in page_text
    assert [b.name for b in measured if f"of {b.name}" in page_text] == ["2048 square"], "those of its case"


@pytest.mark.full
@pytest.mark.parametrize("letter", ["x", '"', "\u202e", "é"], ids=["plain", "quotes", "invisible", "not ASCII"])
def test_no_profile_makes_a_page_large(letter: str, site: SiteProject) -> None:
    names = [f"{k:03}".ljust(120, letter) for k in range(512)]
    frames = "".join(f"f{k % 90};{letter * 200}{k} {k + 1}\n" for k in range(2000))
    large = {
        "stacks": dict.fromkeys(names[:16], frames),
        "rows": dict.fromkeys(names[:32], ((letter * 400,) * 20,) * 20),
        "tables": dict.fromkeys(names[:32], f"{letter * 100}\n" * 90),
        "files": {
            **{memory_file(memory_device): TIMELINE for memory_device in MEMORY_DEVICES},
            **dict.fromkeys(names[2:], letter * 300),
        },
        "missing": (letter * 400,) * 500,
    }
    for author, run in (("ada", "a"), ("bob", "b")):
        verdict = site.add(run_of(author, 50_000 if run == "a" else 60_000, run))
        whole = StoredProfile(run=verdict.run, sha256=verdict.submission.sha256, case="x" * 120, **large)
        cut = fitted(whole)
        site.profile(verdict, **{kind: getattr(cut, kind) for kind in large})
    site.build()
    sizes = {str(path.relative_to(site.out)): path.stat().st_size for path in site.out.rglob("*.html")}
    assert f"profiles/{A}.html" in sizes
    assert max(sizes.values()) < 300_000, sizes


TIMELINE = "us,bytes\n" + "".join(f"{at}.0,{(at % 50) << 20}\n" for at in range(2000))


@pytest.mark.parametrize(
    ("nbytes", "shown"), [(1023, "1,023 B"), (1 << 28, "256 MiB"), (1_048_100_000, "1,000 MiB"), (-(1 << 30), "-1 GiB")]
)
def test_memory_is_shown_without_exponents(nbytes: int, shown: str) -> None:
    assert memory.amount(nbytes) == shown


@pytest.mark.parametrize(
    ("content", "title"),
    [
        (TIMELINE, "49 MiB at most"),
        ("us,bytes\n9.0,0\n0.0,1536\n", "1.5 KiB at most"),
        ("us,bytes\n0.0,-5\n", "-5 B at most"),
        (TIMELINE + "2000.0,99999999999\n", "49 MiB at most"),  # more lines than a timeline has
        ("us,bytes\n", ""),
        ("", ""),
        ("us,bytes\n0.0,1\n1.0,inf\n", ""),
        ("us,bytes\n0.0,1e300\n", ""),
        ("us,bytes\n0.0,٣\n", ""),
        ("us,bytes\n<svg/onload=x>,1\n", ""),
    ],
)
def test_memory_over_time_is_drawn_if_it_can_be_read(content: str, title: str, site: SiteProject) -> None:
    site.profile(site.add(run_of("ada", 50_000, "a")), **sections(files={"memory-GPU.csv": content}))
    site.build()
    page = site.html(f"profiles/{A}.html")
    drawn = re.findall(r"<title>Memory that PyTorch held on the GPU, as reported: ([^<]*)</title>", page)
    assert drawn == ([title] if title else [])
    assert ("as the sandbox reported it" in text(page)) == bool(title)
    assert len(page) < 40_000


def test_a_timeline_is_read_as_it_was_written() -> None:
    points = [(0.0, 4096), (12.3, -8), (4_000_000.5, 1 << 40)]
    assert memory.read(memory.written(points)) == points


def test_a_profile_comes_with_the_source_and_goes_with_it(project: SiteProject) -> None:
    rule = Rule(problem="softmax", visibility="after_deadline", deadline=NOW)
    project.statements = [statement("softmax", rule=rule), statement("gelu")]
    project.build()
    assert not [path for path in project.files() if path.startswith("profiles/")]
    assert 'id="profile"' not in project.html(f"runs/{A}.html")
    assert "twice" not in project.html(f"compare/{A}-{B}.html")
    assert "import triton" not in project.text(f"runs/{A}.html")
    project.now = NOW + timedelta(seconds=1)
    project.build()
    assert f"profiles/{A}.html" in project.files()
    assert "import triton" in project.text(f"runs/{A}.html"), "the moment alone brings the source, too"


def test_without_its_source_a_profile_is_not_shown(project: SiteProject) -> None:
    [source] = [path for path in (project.root / "archive/softmax/ada").iterdir() if path.suffix == ".py"]
    source.write_text("# another\n")
    project.build()
    assert {re.split("[/.]", path)[1] for path in project.files() if path.startswith("profiles/")} == {B}


def test_one_new_profile_touches_only_pages_that_show_it(project: SiteProject) -> None:
    before = project.files()
    assert project.build().written == 0
    path = project.root / "archive/softmax/ada" / f"{A}.profile.json"
    path.write_bytes(path.read_bytes().replace(b".target sm_90", b".target sm_100"))
    project.build()
    after = project.files()
    touched = sorted(name for name in after if after[name] != before.get(name))
    assert [name.partition("-ptx")[0] for name in touched] == [
        f"profiles/{A}.html",
        f"profiles/{A}.json",
        f"profiles/{A}/files-0-doubling",
    ]
    path.unlink()
    project.build()
    assert not [name for name in project.files() if name.startswith(f"profiles/{A}")]
