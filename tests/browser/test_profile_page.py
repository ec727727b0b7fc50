"""The page of a profile with every part, in a real browser: nothing is cut off, and nothing of it runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from harness.profiling.code import CompiledCode
from harness.profiling.memory import Timeline
from harness.profiling.nsight import KernelMetrics, NsightMetric, NsightProfile
from harness.profiling.sanitizer import ToolReport
from harness.profiling.stacks import parse
from harness.profiling.torch_profile import TorchProfile
from kernelmark.diagnostics.profiling import CaseProfile, folder
from kernelmark.diagnostics.profiling.views import KernelProfile
from tests.browser.conftest import HOSTILE
from tests.verdicts import accepted

pytestmark = [pytest.mark.browser, pytest.mark.full]
LONG = "void " + "namespace::" * 30 + "kernel"
STACKS = f"submission.py(3): twice;{HOSTILE.replace(';', ' ')} 70\nsubmission.py(3): twice;{LONG} 30\n".encode()


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    metrics = [
        NsightMetric("GPU Speed Of Light Throughput", "", "Memory Throughput", "%", "80.15"),
        NsightMetric("GPU Speed Of Light Throughput", "", "Compute (SM) Throughput", "%", "29.76"),
        NsightMetric("Occupancy", "", HOSTILE, "%", "1"),
        NsightMetric("Warp State Statistics", "Warp State (All Cycles)", "Stall " + "long" * 40, "inst", "17.17"),
    ]
    whole = KernelProfile(
        HOSTILE,
        torch=TorchProfile(
            calls=3,
            traces=[b'{"traceEvents":[]}'],
            tables={"operators": f"{HOSTILE}\n{'x' * 400}\n", "modules": HOSTILE},
            stacks={"cpu stacks": parse(STACKS), "device stacks": parse(b"a 3\n")},
            memory=[Timeline("GPU", ((0.0, 4_000_000), (40.0, 8_000_000), (90.0, 0)))],
            memory_snapshot=b"\x80\x04}.",
            unreadable=[f"trace 1: {HOSTILE}"],
        ),
        nsight=NsightProfile(
            "Version 2025.3", b"NVR", HOSTILE, "", [KernelMetrics(HOSTILE, metrics), KernelMetrics(LONG)]
        ),
        code=CompiledCode({"0 kernel.sass": HOSTILE, "0 kernel.resources.txt": f" Function {LONG}:\n  REG:57\n"}),
        sanitized={
            "memcheck": ToolReport("found", HOSTILE, f"========= {HOSTILE}\n=========     at {LONG} in x.cu:5\n"),
            "racecheck": ToolReport("clean", "3 of 3 tests: no errors"),
        },
    )
    crashed = KernelProfile("baseline eager.py", missing={"torch.profiler": HOSTILE})
    out = tmp_path_factory.mktemp("profile")
    profile = CaseProfile("softmax", HOSTILE, accepted(), (whole, crashed))
    return folder.write(profile, out, [HOSTILE, "case   time", "a      3 µs"])[0]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_all_of_it_is_readable(browser: Browser, page_path: Path, width: int, scheme: str) -> None:
    errors: list[str] = []
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text))
    page.goto(page_path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing has to be scrolled sideways"
    assert (page.title() != "HIT", errors) == (True, [])
    assert page.locator("script, img").count() == 0
    for heading in ("Nsight Compute", "compute-sanitizer", "Memory that PyTorch held", "Flame graph, CPU time", "Code"):
        assert page.get_by_role("heading", name=heading, exact=True).is_visible()
    assert page.locator("svg").first.bounding_box() is not None
    assert page.get_by_text("Stall long").first.is_visible()
    page.close()


def test_every_link_of_the_page_leads_to_a_file(browser: Browser, page_path: Path) -> None:
    page = browser.new_page()
    page.goto(page_path.as_uri())
    links = page.evaluate("[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))")
    own = [link for link in links if not link.startswith("https://")]
    assert len(own) > 8
    assert not [link for link in own if not (page_path.parent / link).is_file()], json.dumps(own)
    page.close()
