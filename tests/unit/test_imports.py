"""No module imports, directly or through others, one that imports it: what is imported can be read by itself."""

from __future__ import annotations

from graphlib import TopologicalSorter

import grimp


def test_imports_form_no_circle() -> None:
    graph = grimp.build_graph("kernelmark", "leaderboard", "harness", cache_dir=None)
    order = TopologicalSorter({m: graph.find_modules_directly_imported_by(m) for m in graph.modules})
    order.prepare()  # raises CycleError, which names the modules
