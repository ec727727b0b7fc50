"""Chromium, and a site to look at: real verdicts' shapes, hostile names among them, and enough rows to sort."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, sync_playwright

from harness.verdict import Doubt, Roofline
from leaderboard.record.profile import memory_file
from tests.sites import SiteProject, run_of, statement, wrong
from tests.verdicts import EPOCH

HOSTILE = '<script>document.title="HIT"</script>"><img src=x onerror=document.title="HIT"> \u202eevil'


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium; nothing is downloaded."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        reason = "no Chromium: apt-get install chromium"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site with two problems, three devices and a dozen authors."""
    project = SiteProject(tmp_path_factory.mktemp("browser"))
    title = "Vector addition, of a title that is rather long for a phone"
    project.statements.append(statement("vector_add", title=title))
    doubt = Doubt(code="drift", text="the time moved by +3.1 % from the first round to the last")
    for index, author in enumerate(("ada", "bob", "cyd", "dan", "eve", "fay", "gus", "hal", "ida", "jon")):
        digit = "0123456789abcdef"[index]
        verdict = run_of(
            author,
            50_000 + 2_700 * index,
            digit,
            created_at=EPOCH + timedelta(days=20 - index),
            speedups={"eager": 1.5 - index / 20, "compiled": 1.2 - index / 20},
            roofline=Roofline(share=0.7 - index / 30, limit="memory"),
        )
        doubtful = verdict.benchmarks[0].model_copy(update={"doubts": (doubt,)})
        added = project.add(verdict.model_copy(update={"benchmarks": (doubtful, *verdict.benchmarks[1:])}))
        if index < 2:
            project.profile(
                added,
                stacks={"CPU time, µs": f"twice;{HOSTILE.replace(';', ' ')} 9\ntwice;aten::add 5\nmain 3\n"},
                rows={HOSTILE: (("kernel", "registers"), (HOSTILE, "16"))},
                tables={"By operator": HOSTILE, "By call stack": f"{HOSTILE}\n" * 900},
                files={
                    HOSTILE: HOSTILE,
                    memory_file("GPU"): "us,bytes\n0.0,1024\n5.0,0\n",
                    "0-doubling.sass": "IMAD R1, R2\n" * 9000,
                },
                missing=(HOSTILE,),
            )
    project.add(run_of(HOSTILE, 52_000, "a", name=HOSTILE, created_at=EPOCH + timedelta(days=3)))
    project.add(run_of("a" * 300, 53_000, "b", name="n" * 300, created_at=EPOCH + timedelta(days=3)))
    project.add(run_of("ada", 9_000_000, "c", device_kind="cpu", device_name="AMD EPYC", interpreted=True))
    project.add(run_of("bob", 8_000_000, "d", device_kind="cpu", device_name="AMD EPYC", sandbox="process"))
    project.add(run_of("ada", 70_000, "e", problem="gelu", device_name="NVIDIA L4"))
    project.add(wrong(author="ada", run="f" * 16))
    project.build()
    return project.out


@pytest.fixture
def requests() -> list[str]:
    """Every address that a page asked for and that is no file of the site; none may be."""
    return []


class Contexts:
    """Browser contexts that let no request leave: those that try are noted and stopped."""

    def __init__(self, browser: Browser, site: Path, requests: list[str]) -> None:
        self._browser, self._site, self._requests = browser, site, requests
        self._made: list[BrowserContext] = []

    def __call__(self, **options: object) -> BrowserContext:
        context = self._browser.new_context(**options)  # type: ignore[arg-type]
        context.route("**/*", self._only_files)
        self._made.append(context)
        return context

    def _only_files(self, route: Route) -> None:
        address = route.request.url
        if address.startswith(f"file://{self._site}/"):
            route.continue_()
        else:
            self._requests.append(address)
            route.abort()

    def close(self) -> None:
        for context in self._made:
            context.close()


@pytest.fixture
def contexts(browser: Browser, site: Path, requests: list[str]) -> Iterator[Contexts]:
    made = Contexts(browser, site, requests)
    yield made
    made.close()
    assert requests == []


Opened = Callable[..., Page]


@pytest.fixture
def opened(contexts: Contexts, site: Path) -> Iterator[Opened]:
    """Opens a page of the site, given by its path or address; an error or warning that one reports fails the test."""
    errors = list[str]()

    def opened(path: str, **options: Any) -> Page:
        page = contexts(**options).new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: errors.append(said.text) if said.type in {"error", "warning"} else None)
        page.goto(f"file://{site}/{path.rpartition('/site/')[2]}")
        return page

    yield opened
    assert errors == []
