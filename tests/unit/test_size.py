"""`tools/size` counts rooms, floors and arrows by its rules, and all of the code."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

SIZE = Path(__file__).resolve().parents[2] / "tools" / "size"
FILES = {
    "top/__init__.py": "",
    "top/a/__init__.py": "",
    "top/a/one.py": "from top.b import two\nimport os\n",
    "top/a/other.py": "from top.a.one import os\n",
    "top/b/__init__.py": "from top.b.deep.deeper import far\n",
    "top/b/two.py": "def f():\n    from top.b.deep import near\n",
    "top/b/deep/__init__.py": "",
    "top/b/deep/near.py": "import top.b.three\n",
    "top/b/deep/deeper/__init__.py": "",
    "top/b/deep/deeper/far.py": "",
    "top/b/three.py": "",
}
ARROWS = {
    "top.a": {"top.b.two"},
    "top.b.__init__": {"top.b.deep"},
    "top.b.deep": {"top.b.three"},
    "top.b.three": set(),
    "top.b.two": {"top.b.deep"},
}


@pytest.fixture
def size(monkeypatch: pytest.MonkeyPatch) -> Any:
    loader = SourceFileLoader("size", str(SIZE))
    spec = spec_from_loader("size", loader)
    assert spec is not None
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_packages_are_divided_down_to_the_second_level(size: Any) -> None:
    plan = size.plan(FILES)
    assert plan.arrows == ARROWS
    assert plan.rooms == {"top.a": 3, "top.b.__init__": 1, "top.b.deep": 1, "top.b.three": 0, "top.b.two": 2}
    assert plan.figures == (5, 4, 4)
    circle = size.plan({**FILES, "top/b/three.py": "import top.b.two\n"})
    assert circle.figures == (5, 2, 5), "rooms in a circle are on one floor"


def test_all_code_is_counted() -> None:
    printed = subprocess.run([SIZE], capture_output=True, text=True, check=True).stdout
    counted = {
        name: int(number.replace(",", "")) for name, number, *_ in (line.split() for line in printed.splitlines()[1:-1])
    }
    packages = ("kernelmark", "leaderboard", "harness")
    assert sum(counted[name] for name in packages) == counted["product"] > 0
    rooms = {name: lines for name, lines in counted.items() if "." in name}
    left_out = counted["product"] - sum(rooms.values())
    assert 0 <= left_out < 30, "an __init__ that is no room has a docstring"
    assert counted["tests"] > len(Path(__file__).read_text().splitlines())
