"""The site: what its pages say, and that they agree with the ranking."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import jsonschema
import pytest

from harness.verdict import Doubt, Outcome, ReplayedCalls, Roofline, Telemetry
from leaderboard.publishing.site import book
from leaderboard.publishing.site.charts.plot import logarithmic
from leaderboard.publishing.site.charts.trace import over_time, sensors
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.moderation import Moderation
from leaderboard.record.pooling import NO_RANK
from leaderboard.record.teams import NO_TEAMS, Teams
from leaderboard.standings.visibility import Rule
from leaderboard.text.plural import counted
from leaderboard.text.units import duration
from tests.sites import MEMORY, NOW, Links, SiteProject, filled, pages, run_of, statement, text, wrong
from tests.verdicts import EPOCH, REPLAYED, accepted, failed, interval, kernel, replayed_benchmark

ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture
def project(tmp_path: Path) -> SiteProject:
    return filled(tmp_path)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> SiteProject:
    """The same, for tests that only look at its site."""
    return filled(tmp_path_factory.mktemp("built"))


def test_every_link_is_relative_and_leads_somewhere(built: SiteProject) -> None:
    assert len(pages(built)) > 15
    for page in pages(built):
        links = Links(page.read_text())
        assert links.handlers == [], page
        for link in links.found:
            file, _, anchor = unquote(link).partition("#")
            assert not re.match(r"[a-z]+:|/", link), f"{page}: {link}"
            target = (page.parent / file).resolve() if file else page
            assert target.is_file(), f"{page}: {link}"
            assert built.out in target.parents
            assert not anchor or anchor in Links(target.read_text()).ids, f"{page}: {link}"


def test_every_page_can_be_reached_from_the_front(built: SiteProject) -> None:
    seen, todo = set[Path](), [built.out / "index.html"]
    while todo:
        page = todo.pop()
        if page not in seen:
            seen.add(page)
            links = (unquote(link).partition("#")[0] for link in Links(page.read_text()).found)
            todo += [(page.parent / link).resolve() for link in links if link.endswith(".html")]
    assert sorted(seen) == pages(built)


def test_a_board_has_speedups_roofline_baselines_and_dates(built: SiteProject) -> None:
    html = built.html("problems/softmax.html")
    page_text = text(html)
    assert "× eager" in page_text
    assert "50.0 µs" in page_text
    assert "[49.8, 50.2]" in page_text
    assert "50 %" in page_text
    assert "2026-01-02" in page_text
    board = built.json("problems/softmax.json")["boards"][0]
    (baseline,) = board["baselines"]
    assert (baseline["submission"], baseline["score"]["median_ns"], baseline["run"]) == ("eager", 75_000, "b" * 16)
    assert "rank" not in baseline
    (ada,) = (row for row in board["rows"] if row["author"] == "ada")
    assert (ada["run"], ada["gradings"], ada["score"]["median_ns"]) == ("d" * 16, 2, 57_446)
    assert "2 gradings pooled" in page_text
    assert [(s["author"], s["run"], s["score_ns"]) for s in board["records"]] == [
        ("ada", "a" * 16, 57_446),
        ("bob", "b" * 16, 50_000),
    ]
    titles = re.findall(r"<svg[^>]*><title>([^<]*)", html)
    assert titles[0].startswith("Record over time: from 57.4 µs to 50.0 µs in 2 steps")
    assert titles[1].startswith("Roofline of NVIDIA H200: 12 cases")
    assert sum("2048 square: time per call" in title and "from zero" in title for title in titles) == 1


def test_a_problem_shows_its_tags_on_the_front_and_on_its_page(site: SiteProject) -> None:
    site.statements = [statement("softmax", tags=("reduction", "for beginners"))]
    site.build()
    assert "Softmax reduction, for beginners" in site.text("index.html")
    assert "reduction, for beginners" in site.text("problems/softmax.html")
    assert site.json("index.json")["problems"][0]["tags"] == ["reduction", "for beginners"]


def test_a_team_has_a_page_and_each_member_too(site: SiteProject) -> None:
    site.add(run_of("ada", 60_000, "a", created_at=EPOCH, roofline=MEMORY))
    site.add(run_of("bob", 50_000, "b", created_at=EPOCH + timedelta(days=1), roofline=MEMORY))
    site.add(run_of("eve", 70_000, "c", created_at=EPOCH))
    site.add(wrong(author="ada", run="f" * 16))
    site.build()
    alone = site.files()
    site.teams = Teams({"quickfix": ("ada", "bob", "cyd")})
    site.build()
    front = site.json("index.json")
    assert [each["author"] for each in front["overall"]] == ["quickfix"]
    assert front["records"][0]["step"]["team"]["name"] == "quickfix"
    board = site.json("problems/softmax.json")["boards"][0]
    assert [(row["rank"], row["author"], "team" in row) for row in board["rows"]] == [
        (1, "bob", True),
        (2, "eve", False),
    ]
    assert "quickfix ( bob )" in site.text("problems/softmax.html")
    team, ada, bob = (site.json(f"authors/{name}.json") for name in ("quickfix", "ada", "bob"))
    assert (
        [place["row"]["run"] for place in team["places"]]
        == ["b" * 16]
        == [place["row"]["run"] for place in bob["places"]]
    )
    assert ada["places"] == []
    assert team["attempts"][0]["outcomes"] == {"accepted": 2, "wrong_answer": 1}
    assert ada["attempts"][0]["outcomes"] == {"accepted": 1, "wrong_answer": 1}
    assert "team of ada , bob , cyd" in site.text("authors/quickfix.html")
    assert "in the team quickfix" in site.text("authors/ada.html")
    assert "None of these runs is on a board." in site.text("authors/ada.html"), "one was accepted"
    assert "quickfix team of ada, bob, cyd" in site.text("authors.html")
    site.teams = NO_TEAMS
    site.build()
    assert {path: content for path, (_, content) in site.files().items()} == {
        path: content for path, (_, content) in alone.items()
    }


def test_the_statement_is_markdown_without_html(site: SiteProject) -> None:
    evil = (
        "# T\n\n<script>x</script> **bold** ![i](https://e.com/i.png) [a](javascript:x) [b](../x.py) [c](https://e.com)"
        "\n\n    indented code\n"
    )
    site.statements = [statement("softmax", text=evil)]
    site.build()
    html = site.html("problems/softmax.html")
    assert "<strong>bold</strong>" in html
    assert re.search(r'<pre tabindex="0"><code>indented', html), "what scrolls is reached by the keyboard"
    assert "&lt;script&gt;x&lt;/script&gt;" in html
    assert "<img" not in html
    links = Links(html).found
    assert "https://e.com" in links
    assert not [link for link in links if "javascript" in link or link.endswith(".py")]


def test_records_and_newest_runs_keep_their_pages(project: SiteProject, monkeypatch: pytest.MonkeyPatch) -> None:
    def kept() -> set[str]:
        project.build()
        return {path.stem[0] for path in (project.out / "runs").glob("*.html")}

    for day, run in enumerate("345678"):
        project.add(run_of("bob", 58_000, run, created_at=EPOCH + timedelta(days=9 + day)), "another")
    assert kept() == {*"abcde", *"45678"}, "a was the record, e stands on another board, 3 is neither that nor new"
    monkeypatch.setattr(book, "_ACCEPTED_OF_ALL", 4)
    project.add(wrong(author="eve", run="9" * 16))
    assert kept() == {*"abcde", *"78"}, "c, d and 8 are their authors' newest, and 7 is the newest of the others"


def test_an_author_sees_every_accepted_run_and_its_successor(project: SiteProject) -> None:
    again = project.add(run_of("ada", 56_000, "5", created_at=EPOCH + timedelta(days=4)))
    project.build()
    runs = {each["run"][0]: each for each in project.json("authors/ada.json")["accepted"]}
    assert "".join(runs) == "5dea", "newest first"
    assert {run: (each["counts"], each["row"][0], each.get("rank"), each["of"]) for run, each in runs.items()} == {
        "5": ("itself", "5", 3, 3),
        "d": ("newer_grading", "5", 3, 3),
        "e": ("itself", "e", 1, 1),
        "a": ("newer_grading", "5", 3, 3),
    }
    project.add(run_of("ada", 90_000, "6", created_at=EPOCH + timedelta(days=5)), "another")
    project.build()
    table = text(project.html("authors/ada.html").split('id="accepted"')[1].split("</table>")[0])
    assert "All of them, newest first." in table
    assert f"90.0 µs [89.5, 90.5] {again.run} counts instead 2026-01-06 {'6' * 16}" in table
    assert f"graded again as {again.run}" in table
    assert f"Another run counts on the board instead: {again.run}" in project.text(f"runs/{'6' * 16}.html")
    assert f"The same source was graded again: {again.run}" in project.text(f"runs/{'d' * 16}.html")
    project.add(run_of("bob", 80_000, "7", created_at=EPOCH + timedelta(days=6), low_ns=40_000, high_ns=90_000), "new")
    project.add(wrong(author="bob", run="8" * 16))
    ledger = JsonlLedger(project.root / "results" / "softmax.jsonl")
    ledger.moderate(Moderation(run="6" * 16, action="disqualify", actor="org", reason="why", created_at=EPOCH))
    project.build()
    assert not (project.out / "runs" / f"{'6' * 16}.html").exists(), "what was set aside has no page"
    assert "4 of 5: the newest" in project.text("authors/ada.html")
    assert f"{'b' * 16} counts instead" in project.text("authors/bob.html")


@pytest.mark.parametrize(
    ("author", "score", "source", "is_one"),
    [
        pytest.param("bob", (48_000, 47_000, 49_700), "new", True, id="new, and its interval below"),
        pytest.param("bob", (48_000, 47_000, 49_800), "new", False, id="new, and not told apart"),
        pytest.param("bob", (48_000, 47_000, 49_700), "ada's", False, id="the same bytes by somebody else"),
        pytest.param("ada", (48_000, 47_000, 49_700), "ada's", False, id="the same bytes graded again"),
        pytest.param("bob", (30_000, 20_000, 40_000), "new", False, id="too wide to rank"),
        pytest.param("bob", (50_000, 49_800, 50_200), "new", False, id="the same time again"),
    ],
)
def test_a_record_is_a_new_source_with_an_interval_below_the_last(
    site: SiteProject, author: str, score: tuple[int, int, int], source: str, is_one: bool
) -> None:
    site.add(run_of("ada", 50_000, "a", low_ns=49_800, high_ns=50_200), "ada's")
    median, low, high = score
    later = EPOCH + timedelta(days=1)
    site.add(run_of(author, median, "b", low_ns=low, high_ns=high, created_at=later), source)
    site.build()
    front = site.json("index.json")
    assert [record["step"]["run"] for record in front["records"]] == (["b" * 16] if is_one else [])
    records = site.json("problems/softmax.json")["boards"][0]["records"]
    assert [step["run"] for step in records] == ["a" * 16, *(["b" * 16] if is_one else [])]


@pytest.mark.parametrize(("score_ns", "is_one"), [(49_000, False), (47_000, True)])
def test_a_faster_card_alone_is_no_record(site: SiteProject, score_ns: int, is_one: bool) -> None:
    site.add(run_of("ada", 50_000, "a"))
    site.add(run_of("bob", score_ns, "b", created_at=EPOCH + timedelta(days=1), card="another"))
    site.build()
    assert len(site.json("index.json")["records"]) == is_one


def test_a_lucky_grading_is_no_record_once_more_is_known(site: SiteProject) -> None:
    site.add(run_of("ada", 50_000, "a"), "ada's")
    site.add(run_of("bob", 45_000, "b", created_at=EPOCH + timedelta(days=1)), "bob's")
    site.build()
    assert len(site.json("index.json")["records"]) == 1
    site.add(run_of("bob", 51_000, "c", created_at=EPOCH + timedelta(days=2)), "bob's")
    site.build()
    assert site.json("index.json")["records"] == []


def test_a_run_shows_its_evidence(site: SiteProject) -> None:
    verdict = run_of("ada", 50_000, "a", speedups={"eager": 1.5}, roofline=MEMORY)
    benchmark = verdict.benchmarks[0].model_copy(update={"doubts": (Doubt(code="drift", text="it moved by +3 %"),)})
    warm = tuple(
        r.model_copy(update={"telemetry": Telemetry(sm_mhz=1980 - i, temperature_c=40 + i)})
        for i, r in enumerate(benchmark.rounds)
    )
    benchmark = benchmark.model_copy(update={"rounds": warm})
    site.add(verdict.model_copy(update={"benchmarks": (benchmark, *verdict.benchmarks[1:])}))
    site.build()
    html = site.html(f"runs/{'a' * 16}.html")
    page_text = text(html)
    for expected in (
        "2048 square : it moved by +3 %",
        "The device warmed up",
        "600 µs ± 7.20 µs",
        "by the judge's clock, less the overhead",
        "torch 2.11.0",
        "700 W",
        "submit softmax leaderboard/archive/softmax/ada/",
        "--baseline eager --no-record",
        "import triton",
    ):
        assert expected in page_text, expected
    titles = re.findall(r"<svg[^>]*><title>([^<]*)", html)
    assert any(title.startswith("32 rounds of 4 cases in their order: time per call by the judge") for title in titles)
    assert "Single calls" not in page_text
    assert any(title.startswith("temperature: 40 to 47 °C over 32 rounds") for title in titles)


def test_a_replayed_run_shows_its_evidence_and_kernels(site: SiteProject) -> None:
    mangled = "_ZN7cutlass13device_kernelIN4" + "x" * 3000 + "EEEvNT_6ParamsE"
    kernels = (
        kernel("<b>x</b>", grid=(132, 2, 1), cluster=(2, 1, 1), registers=168, local_bytes=1_024, launches=12),
        kernel(mangled, time_ns=None),
    )
    verdict = run_of("ada", 57_300, "a", modes=REPLAYED, protocol=4, speedups={"eager": 1.5}, roofline=MEMORY)
    case = replayed_benchmark(0, interval(57_300), kernels=kernels, speedups={"eager": 1.5})
    site.add(verdict.model_copy(update={"benchmarks": (case, *verdict.benchmarks[1:])}))
    site.build()
    html = site.html(f"runs/{'a' * 16}.html")
    tables = {
        name: [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in table.splitlines() if row.startswith("<tr>")]
        for name, table in re.findall(r'id="(t-\w+)">(.*?)</table>', html, re.DOTALL)
    }
    assert tables["t-timed"][0] == [
        "2048 square", "57.3 µs", "59.8 µs", "71.3 µs", "40", "narrow interval", "rows=2048 cols=2048"
    ]  # fmt: skip
    block, first = "256×1×1", "&lt;b&gt;x&lt;/b&gt;"
    assert tables["t-kernels"][:3] == [
        ["2048 square", first, "132×2×1", f"{block}, clusters of 2×1×1", "168", "49,152", "1,024", "12", "55.1 µs"],
        ["2048 square", f"_ZN7cutlass13device_kernelIN4{'x' * 34}…xEEEvNT_6ParamsE", "2048×1×1", block, "38", "49,152",
         "0", "1", ""],
        ["4096 square", "row_softmax", "2048×1×1", block, "38", "49,152", "0", "1", "55.1 µs"],
    ]  # fmt: skip
    assert "xxxxx" * 20 not in html
    assert site.json(f"runs/{'a' * 16}.json")["verdict"]["benchmarks"][0]["kernels"][1]["name"] == mangled
    titles = re.findall(r"<svg[^>]*><title>([^<]*)", html)
    assert titles == [
        "160 calls of 4 cases in their order: time by CUPTI and by events, "
        "99.1 to 105.3 % of the median of its case by CUPTI",
        "SM clock: 1875 to 1980 MHz over 32 blocks",
        *["Distribution of 40 calls by CUPTI around 57.3 µs"] * 4,
    ]
    page_text = text(html)
    assert "Calls over time" in page_text
    assert "SM clock, MHz, after each block of calls" in page_text
    for word in ("sealed", "Rounds"):
        assert word not in page_text, word
    for path in site.out.rglob("*.json"):
        document = json.loads(path.read_bytes())
        if "kind" in document:
            jsonschema.validate(document, json.loads((path.parent / document["$schema"]).read_bytes()))


def test_sensor_readings_are_drawn_where_their_blocks_ended() -> None:
    cases = run_of("ada", 57_300, "a", modes=REPLAYED).benchmarks[:2]
    drawn = dict(sensors(cases))["SM clock, MHz"]
    (path,) = re.findall(r'<g class="s-main">.*?<path[^>]* d="([^"]*)"', drawn, re.DOTALL)
    places = [float(x) for x in re.findall(r"([\d.]+) [\d.]+", path)]
    steps = [after - before for before, after in pairwise(places)]
    assert len(places) == 16
    assert max(steps) - min(steps) < 0.3, "in either case eight blocks of five calls"
    assert sensors([case.model_copy(update={"telemetry": ()}) for case in cases]) == []


def test_many_calls_and_kernels_do_not_make_a_page_large(site: SiteProject) -> None:
    verdict = run_of("ada", 57_300, "a", modes=("replayed",) * 8, protocol=4)
    kernels = tuple(kernel(f"{'k' * 500}{number}") for number in range(200))
    cases = []
    for b in verdict.benchmarks:
        calls = ReplayedCalls.model_validate({name: ns * 25 for name, ns in b.calls.model_dump().items()})
        cases.append(b.model_copy(update={"calls": calls, "seeds": b.seeds * 25, "kernels": kernels}))
    site.add(verdict.model_copy(update={"benchmarks": tuple(cases)}))
    site.build()
    page = site.out / "runs" / f"{'a' * 16}.html"
    assert page.stat().st_size < 300_000
    page_text = text(page.read_text())
    assert "1500 more in" in page_text
    assert "8000 calls of 8 cases" in page.read_text()
    assert "one in 6 is drawn" in page.read_text()
    paths = re.findall(r'<g class="s-main">.*?<path[^>]* d="([^"]*)"', page.read_text(), re.DOTALL)
    assert len(re.findall(r"[\d.]+ [\d.]+", paths[0])) == 167, "of a thousand calls of the first case every sixth"


@pytest.mark.parametrize(("runs", "devices", "cases", "drawn"), [(30, 3, 12, 24), (2, 1, 40, 28)])
def test_plots_leave_a_page_small(site: SiteProject, runs: int, devices: int, cases: int, drawn: int) -> None:
    """There is room for 28 cases: of two boards with 12 each, or of one that has more."""
    for index in range(runs):
        modes = ("replayed",) * cases
        device = f"NVIDIA H{index % devices}00"
        verdict = run_of(f"author {index}", 50_000 + 2_000 * index, "0", device_name=device, modes=modes)
        site.add(verdict.model_copy(update={"run": f"{index:016x}"}))
    site.build()
    page = site.out / "problems/softmax.html"
    assert page.stat().st_size < 300_000
    assert page.read_text().count("<figure data-case=") == drawn


def test_the_labels_of_an_axis_differ(built: SiteProject) -> None:
    for path in pages(built):
        for svg in re.findall(r'<svg[^>]* class="plot".*?</svg>', path.read_text(), re.DOTALL):
            axes = re.findall(r'<g class="axis [xy]">(.*?)</g>', svg)
            assert len(axes) == 2
            for axis in axes:
                labels = re.findall(r"<text[^>]*>([^<]+)", axis)
                assert len(set(labels)) == len(labels), (path, labels)


@pytest.mark.parametrize(
    ("low_ns", "high_ns", "labels"),
    [(61_900, 62_100, ["61.9 µs"]), (196_000, 322_000, ["196 µs", "322 µs"]), (62_000, 62_000, ["62.0 µs"])],
)
def test_two_records_that_are_close_have_one_label(low_ns: int, high_ns: int, labels: list[str]) -> None:
    axis = logarithmic([float(low_ns), float(high_ns)], lambda ns: duration(round(ns)))
    assert [label for _, label in axis.ticks] == labels


def test_rounds_are_labelled_by_how_their_cases_differ() -> None:
    (case, *_) = run_of("ada", 50_000, "a").benchmarks
    begin = "bfloat16, 32 heads of a long name, "
    cases = [case.model_copy(update={"name": begin + end}) for end in ("128 × 128", "4096 × 128", "16384 × 128")]
    labels = re.findall(r"<text[^>]*>([^<]*…[^<]*)</text>", over_time(cases))
    assert [label.rpartition(", ")[2] for label in labels] == ["128 × 128", "4096 × 128", "16384 × 128"]
    assert all(label.startswith("bfloat") for label in labels)


def test_a_comparison_has_the_difference_and_says_who_is_faster(built: SiteProject) -> None:
    document = built.json(f"compare/{'b' * 16}-{'d' * 16}.json")
    assert "-    y.copy_(x.softmax(1))  # 'bob'" in document["diff"]
    assert "+    y.copy_(x.softmax(1))  # 'ada'" in document["diff"]
    assert document["cases"][0]["faster"]["median"] == pytest.approx(1.1)
    close = built.json(f"compare/{'b' * 16}-{'c' * 16}.json")["cases"][0]
    assert close["faster"]["low"] < 1 < close["faster"]["high"]
    assert close["paired"]["median"] == pytest.approx(1.5 / 1.4)
    assert close["baseline"] == "eager"
    assert "no difference shown" not in built.text(f"compare/{'b' * 16}-{'c' * 16}.html"), "the pairs tell them apart"
    made = {path.stem for path in (built.out / "compare").glob("*.html")}
    assert made == {f"{a * 16}-{b * 16}" for a, b in ("bc", "cd", "bd")}


def test_times_of_two_devices_differ_only_beyond_4_percent(site: SiteProject) -> None:
    for author, ns, run, card in (("ada", 50_000, "a", "one"), ("bob", 51_500, "b", "other"), ("cyd", 60_000, "c", "")):
        site.add(run_of(author, ns, run, card=card))
    site.build()
    board = site.json("problems/softmax.json")["boards"][0]
    assert [(row["author"], row["rank"]) for row in board["rows"]] == [("ada", 1), ("bob", 1), ("cyd", 3)]
    assert len({row["card"] for row in board["rows"]}) == 3
    assert "3 devices of this name: rows of different ones share a rank unless" in site.text("problems/softmax.html")
    close = site.text(f"compare/{'a' * 16}-{'b' * 16}.html")
    assert "No difference shown: B takes 1.030 × the time of A" in close
    assert "that two devices of one name may add, up to 4 %" in close
    assert "ada , is faster: B takes 1.200 × the time of A" in site.text(f"compare/{'a' * 16}-{'c' * 16}.html")


def test_a_comparison_shows_the_faster_one_and_kernels(site: SiteProject) -> None:
    for author, ns, run, eager in (("ada", 50_000, "a", 1.5), ("bob", 50_100, "b", 1.4), ("cyd", 80_000, "c", None)):
        speedups = {"eager": eager} if eager else {}
        verdict = run_of(author, ns, run, modes=REPLAYED, protocol=4, speedups=speedups)
        many = tuple(kernel(f"{author}_{number}", time_ns=1000 + number) for number in range(6))
        costs = {"minimum_bytes": None, "minimum_flops": None} if author == "cyd" else {}
        cases = [b.model_copy(update={"kernels": many, **costs}) for b in verdict.benchmarks]
        site.add(verdict.model_copy(update={"benchmarks": tuple(cases)}))
    site.build()
    close = site.text(f"compare/{'a' * 16}-{'b' * 16}.html")
    assert "A , ada , is faster: B takes 1.071 × the time of A [1.061, 1.082]" in close
    assert "A is shown to be faster in 4 of 4 cases. The ratio is through eager, with which both alternated." in close
    apart = site.text(f"compare/{'b' * 16}-{'c' * 16}.html")
    assert "B takes 1.597 × the time of A" in apart
    assert "alternated" not in apart
    (first, *_) = site.json(f"compare/{'a' * 16}-{'b' * 16}.json")["kernels"]
    assert [each["name"] for each in first["one"]] == [f"ada_{number}" for number in (5, 4, 3, 2)], "the longest"
    assert "bob_5" in close
    assert "bob_1" not in close
    assert "of the roofline Not calibrated" in site.text(f"runs/{'a' * 16}.html")
    assert "Not calibrated" not in site.html(f"runs/{'c' * 16}.html"), "its problem states no cost"


def test_devices_have_their_peaks_and_the_first_of_each_board(built: SiteProject) -> None:
    document, page_text = built.json("devices.json"), built.text("devices.html")
    firsts = {(first["leader"]["key"]["device_name"], first["problem"]): first for first in document["firsts"]}
    assert firsts["NVIDIA H200", "softmax"]["leader"]["row"]["run"] == "b" * 16
    assert firsts["NVIDIA H200", "softmax"]["rows"] == 3
    assert "float32 51.1 TFLOP/s" in page_text
    h200, l4 = page_text.split("NVIDIA L4", 2)[1], page_text.rsplit("NVIDIA L4", 2)[1]
    assert "Not calibrated" not in h200.partition("NVIDIA L4")[0]
    assert "Not calibrated" in l4
    assert "of the roofline 50 % memory" in built.text(f"runs/{'b' * 16}.html")


@pytest.mark.parametrize("url", ["", "https://example.org/board/"])
def test_previews_of_links_have_a_picture_where_the_address_is_known(project: SiteProject, url: str) -> None:
    project.url = url
    project.build()
    for page in pages(project):
        meta = dict(re.findall(r'<meta (?:property|name)="([^"]+)" content="([^"]*)"', page.read_text()))
        assert meta["og:title"], page
        assert meta["og:description"] == meta["description"] != "", page
        path = page.relative_to(project.out).as_posix()
        assert meta.get("og:url") == (url + path if url else None)
        assert meta.get("og:image") == (f"{url}static/social.png" if url else None)
    assert "50.0 µs [49.8, 50.2] on NVIDIA H200" in project.html(f"runs/{'b' * 16}.html").partition("</head>")[0]
    assert (project.out / "static/social.png").read_bytes().startswith(b"\x89PNG")


def test_failed_runs_stand_with_their_report_on_their_authors_page(built: SiteProject) -> None:
    page_text = built.text("authors/eve.html")
    for expected in ("wrong answer", "2 of 9 wrong", "2 of 9 elements wrong (22.2 %)", "Hint: never written", "0.25"):
        assert expected in page_text
    assert not (built.out / "runs" / f"{'f' * 16}.html").exists()
    assert b"SECRET" not in b"".join(path.read_bytes() for path in built.out.rglob("*") if path.is_file())


def test_a_disqualified_run_has_no_rank_but_a_reason(project: SiteProject) -> None:
    project.build()
    before = project.json("problems/softmax.json")["boards"][0]
    first = before["rows"][0]
    ledger = JsonlLedger(project.root / "results" / "softmax.jsonl")
    reason = '<b>read the "answer"</b>'
    ledger.moderate(
        Moderation(run=first["run"], action="disqualify", actor="org", reason=reason, created_at=datetime.now(UTC))
    )
    project.build()
    after = project.json("problems/softmax.json")["boards"][0]
    assert first["run"] not in {row["run"] for row in after["rows"]} | {step["run"] for step in after["records"]}
    assert [(run["run"], run["state"]) for run in after["set_aside"]] == [(first["run"], "disqualified")]
    page = project.html("problems/softmax.html")
    assert "disqualify by <bdi>org</bdi>" in page
    assert "&lt;b&gt;read the" in page
    assert "<b>read" not in page
    ledger.moderate(
        Moderation(run=first["run"], action="reinstate", actor="org", reason="it did not", created_at=datetime.now(UTC))
    )
    project.build()
    again = project.json("problems/softmax.json")["boards"][0]
    assert again["rows"][0]["run"] == first["run"]
    assert again["records"] == before["records"]
    assert again["set_aside"] == []


@pytest.mark.parametrize(
    ("rule", "shown"),
    # Which rule hides what when, test_visibility says.
    [
        (Rule(problem="softmax", visibility="public", deadline=NOW + timedelta(days=1)), True),
        (Rule(problem="softmax", visibility="after_deadline", deadline=NOW - timedelta(seconds=1)), True),
        (Rule(problem="softmax", visibility="after_deadline", deadline=NOW), False),
        (None, False),
    ],
)
def test_an_embargoed_source_is_in_no_file(tmp_path: Path, site: SiteProject, rule: Rule | None, shown: bool) -> None:
    site.statements = [statement("softmax", rule=rule)] if rule else []
    for author, run in (("ada", "a"), ("bob", "b")):
        verdict = run_of(author, 50_000 if run == "a" else 60_000, run, log="quotes TRADESECRET too")
        added = site.add(verdict.model_copy(update={"traceback": "TRADESECRET"}), f"# TRADESECRET {author}\n")
        site.profile(added, stacks={"CPU time, µs": "TRADESECRET 1\n"}, files={"TRADESECRET": "TRADESECRET"})
    error = failed(Outcome.COMPILE_ERROR, author="eve", message="line 3: TRADESECRET is no name")
    site.add(error, "# TRADESECRET\n")
    site.build()
    leaks = [
        str(path)
        for path in tmp_path.joinpath("site").rglob("*")
        if path.is_file() and b"TRADESECRET" in path.read_bytes()
    ]
    assert bool(leaks) == shown, leaks
    assert ("publish" in site.text(f"runs/{'a' * 16}.html")) != shown


@pytest.mark.parametrize("shown", [True, False])
def test_sources_are_also_found_by_hash_among_the_organizers_kernels(site: SiteProject, shown: bool) -> None:
    """That of a run that no author has archived, and that of a baseline; neither where sources are not shown."""
    if not shown:
        site.statements = [statement("softmax", rule=Rule(problem="softmax", visibility="never"))]
    triton = site.kernel("softmax", "triton.py", "# ORGANIZERS made this\n")
    eager = site.kernel("softmax", "eager.py", "# ORGANIZERS compared with this\n")
    site.kernel("softmax", "other.py", "# ORGANIZERS kept this\n")
    (site.root / "reference/softmax/notes.txt").write_text("ORGANIZERS")
    verdict = run_of("triton", 50_000, "a", name="triton.py", speedups={"eager": 1.5})
    paired = [
        b.model_copy(update={"baselines": (b.baselines[0].model_copy(update={"sha256": eager}),)})
        for b in verdict.benchmarks
    ]
    identity = verdict.submission.model_copy(update={"sha256": triton})
    verdict = verdict.model_copy(update={"submission": identity, "benchmarks": tuple(paired)})
    JsonlLedger(site.root / "results" / "softmax.jsonl").append(verdict)
    site.build()
    html = site.html(f"runs/{'a' * 16}.html")
    page_text = text(html)
    assert ("# ORGANIZERS made this" in page_text) == shown
    assert ("Source of the baseline eager # ORGANIZERS compared with this" in page_text) == shown
    assert ("submit softmax reference/softmax/triton.py " in page_text) == shown
    document = site.json(f"runs/{'a' * 16}.json")
    assert document.get("source") == ("# ORGANIZERS made this\n" if shown else None)
    told_in = {path for path, (_, content) in site.files().items() if b"ORGANIZERS" in content}
    assert told_in == ({f"runs/{'a' * 16}.{kind}" for kind in ("html", "json")} if shown else set())
    assert b"kept this" not in html.encode()
    site.kernel("softmax", "triton.py", "# changed\n")
    site.build()
    assert ("The archive does not have this source." in site.html(f"runs/{'a' * 16}.html")) == shown


def test_a_changed_source_is_not_shown(project: SiteProject) -> None:
    (path,) = (project.root / "archive" / "softmax" / "bob").iterdir()
    path.write_text("# planted\n")
    (project.root / "site.cache" / "written.json").unlink()
    for file in project.out.rglob("index.html"):
        file.unlink()
    project.build()
    assert "planted" not in project.html(f"runs/{'b' * 16}.html")
    assert "The archive does not have this source." in project.html(f"runs/{'b' * 16}.html")


def test_every_json_fits_its_published_schema(built: SiteProject) -> None:
    found = {path for path in built.out.rglob("*.json") if path.parent.name != "schema"}
    assert {path.relative_to(built.out).with_suffix(".html") for path in found} == {
        path.relative_to(built.out) for path in pages(built)
    }
    kinds = set()
    for path in found:
        document = json.loads(path.read_bytes())
        schema = json.loads((path.parent / document["$schema"]).read_bytes())
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(document, schema, jsonschema.Draft202012Validator)
        kinds.add(document["kind"])
    assert kinds == {"front", "problem", "run", "comparison", "author", "authors", "devices", "method"}


def test_the_feed_is_atom_with_the_records(built: SiteProject) -> None:
    feed = ElementTree.fromstring(built.html("feed.xml"))
    assert feed.tag == f"{ATOM}feed"
    for name in ("id", "title", "updated"):
        assert feed.findtext(ATOM + name)
    (entry,) = feed.findall(f"{ATOM}entry")
    assert entry.findtext(f"{ATOM}title") == "Softmax on NVIDIA H200, plain calls: 50.0 µs by bob"
    assert entry.findtext(f"{ATOM}updated") == "2026-01-02T00:00:00+00:00"
    assert entry.find(f"{ATOM}link").attrib["href"] == f"runs/{'b' * 16}.html"  # type: ignore[union-attr]


def test_the_method_tells_of_replays_where_there_are_some(project: SiteProject) -> None:
    assert project.json("method.json")["timings"] == ["calls"]
    assert 'id="replays"' not in project.html("method.html")
    assert "sealed" not in project.html("method.html")
    project.add(run_of("fay", 90_000, "8", modes=REPLAYED, protocol=4))
    project.add(run_of("fay", 90_000, "9", timing="sealed", protocol=4))
    project.build()
    assert project.json("method.json")["timings"] == ["calls", "replayed", "sealed"]
    method = project.html("method.html")
    assert "<em>sealed rounds</em> are of before protocol 5" in method
    assert 'id="replays"' in method
    assert "<h3>NVIDIA H200</h3>" in method
    assert "matmul_bf16/8192" in method  # of the table of what was measured on it


def test_older_problems_and_protocols_stand_apart(project: SiteProject) -> None:
    project.add(run_of("old", 1_000, "1", problem_version="0", created_at=EPOCH))
    project.add(run_of("old", 1_000, "2", protocol=0, created_at=EPOCH))
    project.build()
    boards = project.json("problems/softmax.json")["boards"]
    assert [(b["current"], b["rows"][0]["author"]) for b in boards] == [(True, "bob"), (False, "old"), (False, "old")]
    (leader,) = project.json("index.json")["problems"][1]["leaders"]
    assert (leader["current"], leader["row"]["author"]) == (True, "bob")


def test_an_empty_board_shows_the_best_of_the_older_one_and_says_so(project: SiteProject) -> None:
    assert "older board" not in project.html("index.html")
    project.statements[0] = statement("softmax", sha256="9" * 64)
    project.build()
    (leader,) = next(p for p in project.json("index.json")["problems"] if p["slug"] == "softmax")["leaders"]
    assert (leader["current"], leader["row"]["author"]) == (False, "bob")
    row = next(row for row in project.html("index.html").split("<tr") if "Softmax</a>" in row)
    assert "older board" in row
    assert "50.0 µs" in row


def test_the_front_has_speedups_the_course_of_records_deadlines_and_badges(project: SiteProject) -> None:
    front = project.html("index.html")
    row = next(row for row in front.split("<tr") if "Softmax</a>" in row)
    assert "1.500 × eager" in re.sub(r"<[^>]+>", "", row)
    assert 'class="spark"' in row
    assert 'd="M0 0H50.0V10H0z"' in row, "half of the roofline is half of the bar"
    assert "deadline" not in front
    written = NOW.astimezone(timezone(timedelta(hours=2)))
    rule = Rule(problem="softmax", visibility="public", deadline=written)
    project.statements[0] = statement("softmax", rule=rule)
    project.protocol = 2
    project.build()
    row = next(row for row in project.html("index.html").split("<tr") if "Softmax</a>" in row)
    assert f"{written:%Y-%m-%d %H:%M} UTC+02:00" in row
    assert f"{written:%Y-%m-%d %H:%M} UTC+02:00" in project.html("problems/softmax.html")
    assert f'<a class="badge" href="runs/{"b" * 16}.html">stale</a>' in row


def test_the_overall_standing_is_the_mean_over_the_problems_of_an_author(project: SiteProject) -> None:
    share = Roofline(share=0.18, limit="memory")
    project.add(run_of("bob", 40_000, "1", problem="gelu", roofline=share, created_at=EPOCH))
    project.add(run_of("old", 1_000, "2", protocol=0, roofline=Roofline(share=0.9, limit="memory"), created_at=EPOCH))
    project.build()
    overall = [
        (each["author"], round(each["share"], 3), each["problems"]) for each in project.json("index.json")["overall"]
    ]
    assert overall == [("ada", 0.5, 1), ("cyd", 0.5, 1), ("bob", 0.3, 2)], "an old board does not count"
    assert "Geometric mean of the share of the roofline" in project.html("index.html")


@pytest.mark.parametrize(("number", "phrase"), [(1, "1 week"), (2, "2 weeks"), (0, "0 weeks"), (1200, "1,200 weeks")])
def test_one_of_a_noun_is_not_plural(number: int, phrase: str) -> None:
    assert counted(number, "week") == phrase


def test_a_board_marks_the_first_row_and_draws_times_from_zero(built: SiteProject) -> None:
    table = built.html("problems/softmax.html").split('id="t-board-1"')[1].split("</table>")[0]
    rows = table.split("<tr")[2:]
    assert ['class="first"' in row for row in rows] == [True, True, False, False], "two share the first rank"
    widths = [re.findall(r"M0 0H([\d.]+)V", row) for row in rows]
    assert widths[0] == ["66.7"], "50 µs of the baseline's 75 µs"
    assert widths[-1] == ["100.0"]
    assert table.split("</thead>")[0].count("interval") == 1


def test_a_problem_has_the_numbers_of_every_case_and_how_to_submit(built: SiteProject) -> None:
    html = built.html("problems/softmax.html")
    table = html.split('aria-label="Times by case')[1].split("</table>")[0]
    rows = [text(row).split(">", 1)[1].split() for row in table.split("<tr")[2:]]
    assert rows[0] == ["bob", *["50.0", "µs", "[49.8,", "50.2]"] * 4]
    assert rows[-1][0] == "eager"
    assert rows[-1].count("µs") == 4, "its time in every case"
    assert "submit softmax my_kernel.py" in html


def test_the_record_is_drawn_over_whole_days(built: SiteProject) -> None:
    plot = re.search(r"<svg[^>]*><title>Record over time.*?</svg>", built.html("problems/softmax.html"), re.DOTALL)
    labels = re.findall(r"2026-\d\d-\d\d|\d\d:\d\d", plot.group())
    assert labels[0] == f"{EPOCH:%Y-%m-%d}"
    assert all(len(label) == 10 for label in labels), "dates, no times of day"


def test_results_that_were_not_replayed_are_shown_without_a_rank(site: SiteProject) -> None:
    """Bob has only that; cyd has a replayed grading of the same source too; dan's problem has nothing else."""
    why, common = NO_RANK["not_replayed"], {"roofline": MEMORY, "ranked_timing": "replayed"}
    for author, ns, run, modes, problem in (
        ("ada", 50_000, "1", REPLAYED, "softmax"), ("bob", 40_000, "2", ("calls",) * 4, "softmax"),
        ("cyd", 60_000, "3", REPLAYED, "softmax"), ("cyd", 30_000, "4", ("calls",) * 4, "softmax"),
        ("dan", 30_000, "5", ("calls",) * 4, "gelu"),
    ):  # fmt: skip
        day, speedups = (
            EPOCH + timedelta(days=int(run)),
            {"eager": 1.5} | ({"compiled": 2.0} if author == "bob" else {}),
        )
        made = run_of(author, ns, run, modes=modes, problem=problem, created_at=day, speedups=speedups, **common)
        site.add(made, f"# {author}\n")
    site.build()
    [board] = site.json("problems/softmax.json")["boards"]
    assert [(row.get("rank"), row["author"], row["state"]) for row in board["rows"]] == [
        (1, "ada", "ranks"), (2, "cyd", "ranks"), (None, "bob", "not_replayed"),
    ]  # fmt: skip
    assert [(row["submission"], row["run"]) for row in board["baselines"]] == [("eager", "1" * 16)], (
        "as a rank requires"
    )
    assert [step["author"] for step in board["records"]] == ["ada"]
    page = site.html("problems/softmax.html")
    assert f"kernel.py {why}" in text(page)
    assert "bob" not in text(page.split("<h3>Plots</h3>")[1]), "no plot has it"
    assert {path.stem for path in (site.out / "compare").glob("*.html")} == {f"{'1' * 16}-{'3' * 16}"}
    front = site.json("index.json")
    assert [each["author"] for each in front["overall"]] == ["ada", "cyd"]
    assert {each["slug"]: [leader["row"]["author"] for leader in each["leaders"]] for each in front["problems"]} == {
        "softmax": ["ada"], "gelu": [],
    }  # fmt: skip
    assert site.text("index.html").count("no rank yet") == 1
    assert "0 boards of 1" in site.text("authors/bob.html")
    assert f"no rank: {why}" in site.text("authors/bob.html")
    for run in "24":
        assert f"No rank: {why}." in site.text(f"runs/{run * 16}.html")
    assert f"Another run counts on the board instead: {'3' * 16}" in site.text(f"runs/{'4' * 16}.html")
    assert "No rank" not in site.text(f"runs/{'3' * 16}.html")


def test_a_replayed_grading_is_a_record_though_the_same_source_was_not_replayed_before(site: SiteProject) -> None:
    for author, run, modes in (("ada", "1", ("calls",)), ("ada", "2", REPLAYED), ("bob", "3", REPLAYED)):
        day = EPOCH + timedelta(days=int(run))
        ns = 50_000 - 10_000 * int(run)
        site.add(run_of(author, ns, run, modes=modes, ranked_timing="replayed", created_at=day), "# ada's\n")
    site.build()
    [board] = site.json("problems/softmax.json")["boards"]
    assert [step["run"] for step in board["records"]] == ["2" * 16], "bob's bytes are ada's"


def test_replayed_and_sealed_results_before_protocol_5_have_two_boards(site: SiteProject) -> None:
    for author, ns, run, modes in (
        ("ada", 50_000, "1", ("graphs",)), ("bob", 40_000, "2", ("graphs",)),
        ("cyd", 50_000, "3", REPLAYED), ("bob", 30_000, "4", REPLAYED),
    ):  # fmt: skip
        day, timing = EPOCH + timedelta(days=int(run)), "sealed" if modes == ("graphs",) else None
        verdict = run_of(author, ns, run, modes=modes, timing=timing, protocol=4, created_at=day)
        site.add(verdict, f"# {author} {run}\n")
    site.build()
    boards = site.json("problems/softmax.json")["boards"]
    assert [
        (board["key"]["timing"], board["current"], [row["author"] for row in board["rows"]]) for board in boards
    ] == [
        ("replayed", True, ["bob", "cyd"]),
        ("sealed", True, ["bob", "ada"]),
    ]
    html = site.html("problems/softmax.html")
    names = ["NVIDIA H200, replayed", "NVIDIA H200, sealed rounds"]
    assert re.findall(r'<h2 id="(board-\d)">([^<]*)</h2>', html) == [("board-1", names[0]), ("board-2", names[1])]
    assert re.findall(r'<a href="#board-\d">([^<]*)</a>', html) == names
    assert html.count('method.html#sealed">sealed rounds</a> were reported by') == 1
    assert re.findall(r'aria-label="Board on ([^"]*)"', html) == names
    places = site.json("authors/bob.json")["places"]
    assert [(place["key"]["timing"], place["row"]["run"]) for place in places] == [
        ("replayed", "4" * 16),
        ("sealed", "2" * 16),
    ]
    standing = site.html("authors/bob.html").split('id="t-standing"')[1].split("</table>")[0]
    assert re.findall(r"<td>(NVIDIA H200[^<]*)</td>", standing) == names
    of_records = [names[0], names[1]]
    assert re.findall(r"<td>(NVIDIA H200[^<]*)</td>", site.html("index.html")) == [*names, *of_records]
    feed = ElementTree.fromstring(site.html("feed.xml"))
    assert [entry.findtext(f"{ATOM}title") for entry in feed.findall(f"{ATOM}entry")] == [
        f"Softmax on {names[0]}: 30.0 µs by bob",
        f"Softmax on {names[1]}: 40.0 µs by bob",
    ]
    made = {path.stem for path in (site.out / "compare").glob("*.html")}
    assert made == {f"{'4' * 16}-{'3' * 16}", f"{'2' * 16}-{'1' * 16}"}, "boards are not compared with each other"
    assert names[0] in site.text(f"compare/{'4' * 16}-{'3' * 16}.html")
    assert "the submission's own process reported the time of a call" not in site.text(f"runs/{'4' * 16}.html")
    assert "the submission's own process reported the time of a call" in site.text(f"runs/{'2' * 16}.html")
    for run, timed in (("4", "replayed"), ("2", "sealed rounds")):
        assert f"protocol 4, {timed}, effort default" in site.text(f"runs/{run * 16}.html")


def test_an_empty_project_has_a_site(site: SiteProject) -> None:
    site.statements = []
    site.build()
    assert "No problems or results yet." in site.html("index.html")
    assert ElementTree.fromstring(site.html("feed.xml")).findall(f"{ATOM}entry") == []


def test_a_moment_at_the_end_of_the_calendar_is_no_obstacle(site: SiteProject) -> None:
    site.add(accepted(run="a" * 16, created_at=datetime.max.replace(tzinfo=UTC)))
    site.add(accepted(run="b" * 16, author="bob", created_at=datetime.min.replace(tzinfo=UTC)))
    site.build()
    assert "bob" in site.html("problems/softmax.html")


def test_the_interpreter_has_no_first_and_a_wide_result_no_rank_yet(site: SiteProject) -> None:
    site.statements = [statement(slug) for slug in ("a_idle", "gelu", "rope", "softmax")]
    quick = {"created_at": EPOCH, "roofline": MEMORY}
    site.add(run_of("ada", 40_000, "1", interpreted=True, **quick))
    site.add(run_of("bob", 50_000, "2", low_ns=30_000, high_ns=90_000, **quick))
    site.add(run_of("ada", 40_000, "3", problem="gelu", interpreted=True, **quick))
    site.add(wrong(author="eve", run="4" * 16, problem="rope"))
    site.build()
    front = site.html("index.html")
    rows = [
        text(row.partition(">")[2]) for row in front.split('id="t-problems"')[1].split("</table>")[0].split("<tr")[2:]
    ]
    assert [row.split()[0] for row in rows] == ["Softmax", "Gelu", "Rope", "A_idle"], "those with runs come first"
    assert "bob no rank yet: interval too wide to rank 50.0 µs" in rows[0]
    assert "in Triton's interpreter only" in rows[1].replace("&#39;", "'")
    assert "none accepted" in rows[2]
    assert "no result" in rows[3]
    assert site.json("index.json").get("overall", []) == []
    assert [first["leader"]["row"]["author"] for first in site.json("devices.json")["firsts"]] == ["bob"]
    assert "first on" not in site.text("authors/ada.html")
    headings = re.findall(r'<h2 id="board-\d">([^<]*)', site.html("problems/softmax.html"))
    assert headings == ["NVIDIA H200, plain calls", "NVIDIA H200, plain calls, Triton interpreter"]
    assert ">week of</text>" in front


def test_a_course_has_its_own_name_and_says_how_to_submit_until_it_closes(project: SiteProject) -> None:
    assert "<title>Leaderboard · kernelmark</title>" in project.html("index.html")
    assert "<h1>Leaderboard</h1>" in project.html("index.html")
    project.called = {"title": "kernelmark"}
    project.build()
    assert "<h1>kernelmark</h1>" in project.html("index.html"), "a name that was given is shown"
    assert "submit softmax my_kernel.py" in project.html("problems/softmax.html")
    project.called = {"title": "GPU <101>", "how_to_submit": "Upload `k.py` to <Moodle>."}
    rule = Rule(problem="softmax", visibility="public", deadline=NOW + timedelta(hours=1))
    project.statements[0] = statement("softmax", rule=rule)
    project.build()
    front, problem = project.html("index.html"), project.html("problems/softmax.html")
    assert "<title>Leaderboard · GPU &lt;101&gt;</title>" in front
    assert ">GPU &lt;101&gt;</a>" in front
    assert "<h1>GPU &lt;101&gt;</h1>" in front
    assert "<title>GPU &lt;101&gt;: records</title>" in project.html("feed.xml")
    assert "Upload <code>k.py</code> to &lt;Moodle&gt;." in problem
    assert "my_kernel.py" not in problem
    row = next(row for row in front.split("<tr") if "Softmax</a>" in row)
    assert "2026-06-01 01:00 UTC" in row
    assert "closed" not in row
    assert project.build().written == 0
    project.now += timedelta(hours=2)
    project.build()
    assert "Upload" not in project.html("problems/softmax.html")
    assert "closed since 2026-06-01 01:00 UTC: no submission is accepted" in project.text("problems/softmax.html")
    assert "closed" in next(row for row in project.html("index.html").split("<tr") if "Softmax</a>" in row)


def test_whole_numbers_have_no_columns_for_errors_and_backticks_are_code(site: SiteProject) -> None:
    inexact = site.add(run_of("ada", 50_000, "1", created_at=EPOCH))
    tests = tuple(
        case.model_copy(
            update={
                "outputs": tuple(
                    output.model_copy(update={"dtype": "int64", "max_error": None, "rms_error": None})
                    for output in case.outputs
                )
            }
        )
        for case in inexact.tests
    )
    site.add(run_of("bob", 60_000, "2", created_at=EPOCH).model_copy(update={"tests": tests}), "exact")
    site.add(failed(Outcome.COMPILE_ERROR, author="eve", message="no `softmax` in <b>"))
    site.build()
    heads = [
        re.findall(r"<th [^>]*>([^<]*)", site.html(f"runs/{run * 16}.html").split('id="tests"')[1].split("</thead>")[0])
        for run in "12"
    ]
    assert heads[1] == ["test", "parameters", "outcome"]
    assert heads[0][:4] == ["test", "parameters", "outcome", "largest relative error"]
    assert "no <code>softmax</code> in &lt;b&gt;" in site.html("authors/eve.html")
