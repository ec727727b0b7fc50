"""The site in a real browser: with and without JavaScript, light and dark, on a phone, by keyboard, and by axe-core."""

from __future__ import annotations

import itertools
from collections import defaultdict
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.conftest import Contexts, Opened
from tests.sites import Links

pytestmark = [pytest.mark.full, pytest.mark.browser]

PHONE = {"width": 360, "height": 740}
SCREEN = {"width": 1200, "height": 900}
PAPER = {"width": 718, "height": 1047}  # A4 within its margins


def paths(site: Path) -> list[str]:
    return sorted(str(path.relative_to(site)) for path in site.rglob("*.html"))


def test_every_page_opens_fits_and_has_no_error(contexts: Contexts, site: Path) -> None:
    _open_every_page(contexts, site, script=True)


def test_every_page_opens_and_fits_without_scripts(contexts: Contexts, site: Path) -> None:
    """Here alone: the other sites have the same templates."""
    _open_every_page(contexts, site, script=False)


def _open_every_page(contexts: Contexts, site: Path, *, script: bool) -> None:
    page, errors = contexts(java_script_enabled=script).new_page(), list[str]()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    grounds = defaultdict[str, set[str]](set)
    for path in paths(site):
        page.goto(f"file://{site}/{path}")
        assert page.title() != "HIT"
        assert page.locator("h1").count() == 1
        # Playwright's own evaluation also works where the page's scripts may not run.
        for size in (SCREEN, PHONE):
            page.set_viewport_size(size)
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], path
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            grounds[scheme].add(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
    assert errors == []
    assert grounds == {"light": {"rgb(255, 255, 255)"}, "dark": {"rgb(18, 20, 23)"}}


# Both colours and both sizes, each once, on a few pages of each kind: axe takes a second for a page.
@pytest.mark.parametrize(("size", "scheme"), [(SCREEN, "light"), (PHONE, "dark")], ids=["screen", "phone"])
def test_axe_finds_nothing_serious(contexts: Contexts, site: Path, scheme: str, size: dict[str, int]) -> None:
    context, axe, found = contexts(color_scheme=scheme, viewport=size), Axe(), []
    page = context.new_page()
    kinds = itertools.groupby(paths(site), lambda path: path.partition("/")[0])
    for path in (path for _, some in kinds for path in itertools.islice(some, 5)):
        page.goto(f"file://{site}/{path}")
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        for violation in axe.run(page).response["violations"]:
            if violation["impact"] in {"serious", "critical"}:
                found.append((path, violation["id"], [node["html"][:200] for node in violation["nodes"][:3]]))
    assert found == []


def test_every_page_fits_on_paper_in_black_on_white(contexts: Contexts, site: Path) -> None:
    page = contexts(color_scheme="dark", viewport=PAPER).new_page()
    page.emulate_media(media="print")
    for path in paths(site):
        page.goto(f"file://{site}/{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= PAPER["width"], path
        assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
        assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
        assert page.locator("header").is_hidden()


def test_axe_would_find_something(contexts: Contexts, site: Path) -> None:
    page = contexts().new_page()
    page.goto(f"file://{site}/index.html")
    page.evaluate("document.body.append(document.createElement('button'))")
    assert "button-name" in {violation["id"] for violation in Axe().run(page).response["violations"]}


def test_everything_can_be_read_without_javascript(opened: Opened) -> None:
    with_script = opened("problems/softmax.html")
    without = opened("problems/softmax.html", java_script_enabled=False)
    page_text = without.locator("main").inner_text()
    assert with_script.locator("button").count() > 10
    assert without.locator("button, input, dialog").count() == 0
    rows = with_script.locator("#t-board-1 tbody tr")
    assert rows.count() == without.locator("#t-board-1 tbody tr").count()
    for index in range(rows.count()):
        assert rows.nth(index).locator("th").inner_text() in page_text


def column(page: Page, number: int) -> list[str]:
    return [
        text.strip() for text in page.locator(f"#t-board-1 tbody tr:visible > :nth-child({number})").all_inner_texts()
    ]


def test_a_table_is_sorted_and_the_address_says_how(opened: Opened) -> None:
    page = opened("problems/softmax.html")
    ranks = column(page, 1)
    head = page.locator("#t-board-1 thead").get_by_role("button", name="author")
    head.click()
    authors = column(page, 2)
    assert authors == sorted(authors, key=str.lower)
    assert page.locator("#t-board-1 th[aria-sort=ascending]").inner_text().startswith("author")
    address = page.url
    head.click()
    assert column(page, 2) == authors[::-1]
    head.click()
    assert column(page, 1) == ranks, "the third time gives the board's own order"
    assert page.url.endswith("softmax.html")
    page.locator("#t-board-1 thead").get_by_role("button", name="time").click()
    times = [text for text in column(page, 4) if text]
    assert times == sorted(times, key=lambda text: float(text.split()[0]))
    again = opened(address)
    assert column(again, 2) == authors, "who is given the address sees the same"


def test_a_table_is_filtered_and_the_address_says_how(opened: Opened) -> None:
    page = opened("problems/softmax.html")
    page.get_by_label("Only rows with").first.fill("fay")
    assert column(page, 2) == ["fay"]
    assert page.get_by_role("status").first.inner_text().startswith("1 of ")
    again = opened(page.url)
    assert column(again, 2) == ["fay"]
    page.get_by_label("Only rows with").first.fill("")
    assert len(column(page, 2)) > 10


def test_a_plot_is_enlarged_and_closed_by_keyboard(opened: Opened) -> None:
    page = opened("problems/softmax.html", viewport=SCREEN)
    button = page.get_by_role("button", name="Enlarge: Record over time").first
    small = page.locator("figure svg").first.bounding_box()
    button.focus()
    page.keyboard.press("Enter")
    assert page.locator("dialog svg.plot").bounding_box()["width"] > 1.5 * small["width"]
    assert page.locator("dialog text.label").all_text_contents()[-1] == "ada 50.0 µs", "the record is named in the plot"
    letters = page.locator("dialog text.label").last.bounding_box()
    assert letters["height"] < 20, "lines grow, letters do not"
    again = opened(page.url)
    assert again.locator("dialog[open] svg.plot").count() == 1
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    assert page.evaluate("document.activeElement.textContent") == "Enlarge"


def test_marks_are_read_by_pointer_and_keyboard(opened: Opened) -> None:
    page = opened("problems/softmax.html", viewport=SCREEN)
    tip, plots = page.locator(".tip"), page.locator("figure svg.plot")
    record = plots.first.locator(".mark").last
    record.hover()
    assert tip.inner_text() == record.get_attribute("aria-label")
    page.mouse.move(0, 0)
    assert not tip.is_visible()
    bars = page.locator("figure[data-case='0'] svg.plot").first
    assert bars.locator("[tabindex='0']").count() == 1, "one stop of the tab key a plot"
    bars.locator("[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    third = bars.locator(".mark").nth(2)
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == third.get_attribute("aria-label")
    assert tip.inner_text().startswith("bob, ")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/*.html")


def test_a_case_is_chosen_for_plots_and_table_and_the_address_says_which(opened: Opened) -> None:
    page = opened("problems/softmax.html")
    drawn = "section:has(#board-1) :is(.mark, th, figure)[data-case]:visible"
    numbers = "all => [...new Set(all.map(each => each.dataset.case))]"
    assert page.locator(drawn).evaluate_all(numbers) == ["0", "1", "2", "3"]
    page.get_by_label("Case").first.select_option("2")
    assert page.locator(drawn).evaluate_all(numbers) == ["2"]
    again = opened(page.url)
    assert again.locator(drawn).evaluate_all(numbers) == ["2"]


def test_the_front_page_is_searched(opened: Opened) -> None:
    page = opened("index.html")
    rows = page.locator("table.searched tbody tr:visible")
    every = rows.count()
    page.get_by_label("Search").fill("nvidia l4")
    assert 0 < rows.count() < every
    assert all("NVIDIA L4" in said for said in rows.all_inner_texts())
    again = opened(page.url)
    assert again.locator("table.searched tbody tr:visible").all_inner_texts() == rows.all_inner_texts()


RUN = "0" * 16


@pytest.mark.parametrize(
    "path",
    ["index.html", "problems/softmax.html", f"runs/{RUN}.html", f"profiles/{RUN}.html",
     f"compare/{RUN}-{'1' * 16}.html", "authors/ada.html"],
)  # fmt: skip
def test_everything_is_reached_by_the_tab_key_and_shows_it(opened: Opened, path: str) -> None:
    page = opened(path, viewport=PHONE)
    everything_is_reached(page)


def everything_is_reached(page: Page) -> None:
    """Press the tab key to the end of the page: all that can be focused shows it, and all that scrolls is among it."""
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0, "the skip link appears"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.reload()
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    seen, unseen = 0, []
    scrolls = page.locator(".scroll").count()
    regions = set()
    for _ in range(600):
        page.keyboard.press("Tab")
        told = page.evaluate(
            """() => { const e = document.activeElement, s = getComputedStyle(e);
            return [e.tagName, e.className, e.outerHTML.slice(0, 90), s.outlineStyle, parseFloat(s.outlineWidth),
              [...document.querySelectorAll('.scroll')].indexOf(e)]; }"""
        )
        if told[0] == "BODY":
            break
        seen += 1
        regions.add(told[5])
        if told[3] == "none" or told[4] < 1:
            unseen.append(told[2])
    assert seen > 10
    assert unseen == []
    assert regions - {-1} == set(range(scrolls)), "every region that scrolls is reached"


def test_hostile_names_stay_text(opened: Opened) -> None:
    page = opened(f"runs/{'a' * 16}.html")
    assert "<script>" in page.locator("h1").inner_text()
    assert "\\u202e" in page.locator("h1").inner_text()
    assert page.locator("main img, main script").count() == 0


def test_what_would_leave_is_noticed(contexts: Contexts, site: Path, requests: list[str]) -> None:
    page = contexts().new_page()
    page.goto(f"file://{site}/index.html")
    with page.expect_event("requestfailed"):
        page.evaluate("location.href = 'https://example.com/'")
    assert requests == ["https://example.com/"]
    requests.clear()


def test_no_page_names_another_host(site: Path) -> None:
    for path in paths(site):
        links = Links((site / path).read_text())
        assert [link for link in links.found if "//" in link] == [], path
