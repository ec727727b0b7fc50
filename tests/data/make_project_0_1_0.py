"""Made `project-0.1.0`, with the code of version 0.1.0 on a machine with bubblewrap; kept to tell how.

Never run it again for that folder: what a later version writes is not what 0.1.0 wrote. It grades in a copy elsewhere,
and fetches what was recorded.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.demo import RESULTS, recorded, source
from benchmarks.project import PROBLEMS, REFERENCE, run
from harness.wire.protocol import PROTOCOL
from leaderboard.record.archive import archive
from leaderboard.record.ledger import JsonlLedger
from tests.command import kernelmark
from tests.old_project import reduced

HERE = Path(__file__).resolve().parent
OLD, PRIVATE = HERE / "project-0.1.0", HERE / "private-cases-0.1.0"
MADE = ("leaderboard", "problems", "reference")
ACTOR = ("--actor", "grace", "--reason")
BASELINES = ("--baseline", "eager", "--baseline", "inplace")

# The status of each `submit`, what it was given, and the name under which a moderation finds its run.
TWICE = (
    (0, "ada/slow.py", (), "slow"),
    (0, "ada/torch_mul.py", (), ""),
    (0, "ada/torch_mul.py", ("--profile",), "best"),
    (0, "bob/plain.cpp", ("--baseline", "eager"), "plain"),
    (0, "cleo/tiled/tiled.cpp", ("--with", "cleo/tiled/tile.hpp", "--thorough"), ""),
    (0, "cleo/tiled/tiled.cpp", ("--with", "cleo/tiled/tile.hpp"), "tiled"),
    (0, "dan/triton_twice.py", (), ""),
    (1, "eve/wrong.py", (), ""),
    (1, "eve/secret.py", (), ""),
    (3, "finn/no_entry.py", (), ""),
    (3, "finn/undeclared.cpp", (), ""),
    (4, "gus/raises.py", (), ""),
    (4, "gus/segfault.py", (), ""),
    (5, "hana/endless.py", (), ""),
    (4, "hana/hungry.py", (), ""),
    (6, "ivo/doubled_fields.py", (), ""),
    (6, "ivo/nan_claim.py", (), ""),
    (0, "ivo/zero_claims.py", (), ""),
    (8, "lena/needs_gpu.py", (), ""),
    (0, "lena/copied.py", (), ""),
    (0, "mallory/copied.py", (), "copied"),
    (0, "mallory/kept.py", (), "kept"),
    (0, "cleo/tiled/tiled.cpp", ("--with", "cleo/tiled/tile.hpp", "--sandbox", "process"), ""),
)
AFFINE = (
    (0, "ada/fused/fused.py", ("--with", "ada/fused/steps.py", *BASELINES), ""),
    (0, "bob/loop.cpp", BASELINES, ""),
    (0, "cleo/numbers.py", BASELINES, "numbers"),
    (0, "dan/triton_affine.py", BASELINES, ""),
    (0, "mallory/steps.py", ("--baseline", "eager"), "steps"),
    (0, "ada/fused/fused.py", ("--with", "ada/fused/steps.py", "--sandbox", "process"), ""),
)
KERNELBENCH = ((0, "ada/model.py", (), ""), (1, "bob/model.py", (), ""))
GPU_MODE = ((0, "ada/double.py", (), ""), (1, "bob/same.py", (), ""))


def submit(project: Path, slug: str, files: tuple[tuple[int, str, tuple[str, ...], str], ...]) -> dict[str, str]:
    """Submit each file as the author whose folder it is in; returns the runs that have a name."""
    folder, runs = Path("submissions") / slug, {}
    for status, file, options, name in files:
        given = [str(folder / each) if "/" in each else each for each in options]
        sandbox = () if "--sandbox" in given else ("--sandbox", "bwrap")
        author = ("--author", file.partition("/")[0])
        said = run(project, status, "submit", slug, folder / file, *author, *given, *sandbox)
        print(f"{slug} {file}: {said.splitlines()[0]}", flush=True)
        if name:
            last = (project / "leaderboard" / "results" / f"{slug}.jsonl").read_text().splitlines()[-1]
            runs[name] = json.loads(last)["verdict"]["run"]
    return runs


def moderate(project: Path, action: str, about: str, reason: str, *scope: str) -> None:
    run(project, 0, "main", "moderate", action, about, *ACTOR, reason, *scope)


def of_gpus(project: Path) -> None:
    """What H200s measured: `square` as its ledger of sealed rounds was written, then its replayed calls; and a problem
    that is gone.
    """
    board = project / "leaderboard"
    shutil.copytree(PROBLEMS / "square", project / "problems" / "square")
    shutil.copytree(REFERENCE / "square", project / "reference" / "square")
    shutil.copy(RESULTS / "calibration_h200.json", board / "devices")
    sealed = RESULTS / "baselines_sealed_h200" / "square.jsonl"
    replayed = [RESULTS / "baselines_h200" / f"{slug}.jsonl" for slug in ("square", "attention_backward")]
    shutil.copy(sealed, board / "results")
    for each in recorded([sealed, *replayed]):
        found = source(each)
        assert found is not None
        archive(board / "archive", each.problem.slug, found)
        if each.protocol == PROTOCOL:
            JsonlLedger(board / "results" / f"{each.problem.slug}.jsonl").append(each)


def grade_all(project: Path, private: Path) -> None:
    for form, checkout in (("kernelbench", "theirs/KernelBench"), ("gpu-mode", "theirs/reference-kernels")):
        print(run(project, 0, "main", "import", form, checkout, "--device", "cpu", "--sandbox", "bwrap"))
    run(project, 0, "main", "calibrate", "--device", "cpu")
    twice = submit(project, "twice", TWICE)
    affine = submit(project, "affine", AFFINE)
    submit(project, "kernelbench_1_1_scaled_rows", KERNELBENCH)
    submit(project, "gpu_mode_small_scale", GPU_MODE)
    run(project, 0, "submit", "row_sum", "handins/ada/row_sum.py", "--author", "ada", "--late", "grace")
    handins = ("handins", "--handed-in", "moments.csv", "--sandbox", "bwrap", "--csv", "marks.csv")
    graded = kernelmark(project, "grade", "row_sum", *handins, KERNELMARK_PRIVATE_CASES=str(private))
    print(graded.stdout, graded.stderr)
    of_gpus(project)
    moderate(project, "annotate", twice["best"], "see the forum")
    moderate(project, "disqualify", twice["tiled"], "reads beyond its inputs")
    moderate(project, "reinstate", twice["tiled"], "it does not: my mistake")
    moderate(project, "disqualify", twice["slow"], "handed in by mistake")
    moderate(project, "disqualify", twice["copied"], "copied from each other", "--source")
    moderate(project, "disqualify", twice["kept"], "not a participant", "--author")
    moderate(project, "reinstate", affine["steps"], "was a participant then")
    moderate(project, "annotate", affine["numbers"], "numpy is allowed")
    late = next(
        json.loads(line)["verdict"]["run"]
        for line in (project / "leaderboard" / "results" / "row_sum.jsonl").read_text().splitlines()
        if '"author":"gus"' in line and '"verdict":' in line
    )
    moderate(project, "reinstate", late, "was ill")
    run(project, 0, "main", "board", "--write")
    print(run(project, 0, "main", "verify"))


def written(tables: list[dict[str, Any]]) -> str:
    """Standings as JSON with a line for each row."""
    text = json.dumps(tables, ensure_ascii=False, separators=(",", ":"))
    for piece in ('{"problem"', '{"rank"', '{"state"'):
        text = text.replace(piece, "\n" + piece)
    return text + "\n"


def main() -> None:
    if (OLD / "leaderboard").exists():
        sys.exit(f"{OLD / 'leaderboard'} is there: it is what 0.1.0 wrote, and must stay")
    with tempfile.TemporaryDirectory() as folder:
        project, private = Path(folder) / "project", Path(folder) / "private"
        shutil.copytree(OLD, project)
        shutil.copytree(PRIVATE, private)
        private.chmod(0o700)
        grade_all(project, private)
        for name in MADE:
            shutil.copytree(project / name, OLD / name, dirs_exist_ok=True)
        shutil.copy(project / "marks.csv", OLD)
        board = json.loads(run(project, 0, "main", "board", "--format", "json"))
        (HERE / "standings-0.1.0.json").write_text(written(reduced(board)))


if __name__ == "__main__":
    main()
