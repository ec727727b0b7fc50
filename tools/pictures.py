"""Takes the README's pictures from the demo site: `make demo && .venv/bin/python tools/pictures.py`. Needs Chromium."""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
SITE, DOCS = ROOT / "build" / "demo" / "site", ROOT / "docs"
WIDTH, LARGEST_BYTES = 1200, 200_000


# For each: its page, and the elements where it begins and before which it ends.
PICTURES = {
    "front.png": ("index.html", "header", "#t-problems tbody tr:nth-child(13)"),
    "board.png": ("problems/softmax.html", "header", "h3:text-is('Plots')"),
    "plots.png": ("problems/matmul.html", "h3:text-is('Plots')", "h3:text-is('By case')"),
}


def take(page: Page, name: str) -> Path:
    """Write one picture, and return its path."""
    path, *ends = PICTURES[name]
    page.goto(f"file://{SITE / path}")
    boxes = [page.locator(end).first.bounding_box() for end in ends]
    top, bottom = (box["y"] for box in boxes if box is not None)
    target = DOCS / name
    clip = {"x": 0, "y": top, "width": WIDTH, "height": bottom - top}
    page.screenshot(path=target, full_page=True, clip=clip)
    return target


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 800}, color_scheme="light")
        for name in PICTURES:
            target = take(page, name)
            size = target.stat().st_size
            print(f"{target.relative_to(ROOT)}: {size:,} bytes")
            assert size <= LARGEST_BYTES, f"more than {LARGEST_BYTES:,}"
        browser.close()


if __name__ == "__main__":
    main()
