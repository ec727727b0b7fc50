"""Builds in sandboxes of their own, and what is kept of them: built once, graded twice."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from harness import judge, sandbox
from harness.device import DEVICES
from harness.files.kept import Kept
from harness.judge.compile_ahead import known_cases, requests
from harness.judge.session import BuildRequest, Builds
from harness.judge.timing.device_lock import lock_alone
from harness.problem import Problem, load
from harness.sandbox import Launch
from harness.submission import Submission
from harness.verdict import Check, Outcome, SandboxName, Verdict
from kernelmark.diagnostics.selftest import HERE, PROBLEMS
from tests.grading import setup

PROBLEM = load(PROBLEMS / "double")
SANDBOXES = [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("bwrap", "docker")]
BUILDS = """
import os  # it mentions cpp_extension, and builds a file
from pathlib import Path
built = Path.home() / ".cache/torch_extensions/built"
alone = "KERNELMARK_BUILDS" in os.environ
print(f"built before: {built.exists()}", flush=True)
built.parent.mkdir(parents=True, exist_ok=True)
built.touch()
"""
CALL = """
def twice(x, y):
    y.copy_(2 * x)
"""
LIBRARY = """#include <cstdint>
extern "C" void twice(const float* x, float* y, int64_t n) { for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i]; }
"""


class Launches:
    """A provider that notes what it launches."""

    def __init__(self, within: str | sandbox.Provider) -> None:
        self._real = sandbox.provider(within) if isinstance(within, str) else within  # type: ignore[arg-type]
        self.launched: list[Launch] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def launch(self, launch: Launch) -> Any:
        self.launched.append(launch)
        return self._real.launch(launch)

    @property
    def builds(self) -> int:
        """How many sandboxes were launched that only build."""
        return sum("KERNELMARK_BUILDS" in launch.environment for launch in self.launched)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "kept", 1 << 30)


def given_in(provider: Launches, problem: Problem, source: str, language: str = "py", **options: Any) -> judge.Setup:
    submission = Submission.of(source, language, author="tester")  # type: ignore[arg-type]
    return dataclasses.replace(setup(problem, submission, **options), provider=provider)


def graded_in(provider: Launches, problem: Problem, source: str, language: str = "py", **options: Any) -> Verdict:
    return judge.grade(given_in(provider, problem, source, language, **{"effort": "quick", **options}))


def checked(provider: Launches, kept: Kept | None, source: str, language: str = "py", **limits: float) -> Check:
    problem = PROBLEM.model_copy(update={"limits": PROBLEM.limits.model_copy(update=limits)})
    return judge.check(given_in(provider, problem, source, language, kept=kept))


@pytest.mark.parametrize("name", SANDBOXES)
@pytest.mark.parametrize(("source", "language"), [(BUILDS + CALL, "py"), (LIBRARY, "cpp")])
def test_the_same_file_is_built_once_and_graded_twice(
    source: str, language: str, name: SandboxName, kept: Kept
) -> None:
    provider = Launches(name)
    with lock_alone("cpu", lambda: None):  # a build waits for nobody who is timed
        checks = [checked(provider, kept, source, language) for _ in range(2)]
    assert [check.outcome for check in checks] == [Outcome.ACCEPTED] * 2, checks[0].message
    assert provider.builds == 1
    assert len(kept.sizes()) == 1
    assert [check.log.strip() for check in checks] == ["built before: True" if language == "py" else ""] * 2
    assert checked(provider, kept, source + "\n", language).outcome is Outcome.ACCEPTED
    assert provider.builds == 2, "another submission shares nothing with it"


@pytest.mark.full
@pytest.mark.parametrize("name", SANDBOXES)
def test_a_runner_finds_nothing_to_compile_of_an_extension(name: SandboxName, kept: Kept) -> None:
    """What was unpacked has whole seconds, and what is compiled anew has not."""
    source = (HERE / "honest/inline_cpp/submission.py").read_text()
    source += """
import os
from pathlib import Path
made = list((Path(os.environ["XDG_CACHE_HOME"]) / "torch_extensions").rglob("*.so"))
print(f"compiled here: {[path.name for path in made if path.stat().st_mtime_ns % 10**9]} of {len(made)}", flush=True)
"""
    for _ in range(2):
        check = checked(Launches(name), kept, source)
        assert (check.outcome, check.log.strip()) == (Outcome.ACCEPTED, "compiled here: [] of 1"), check.message


TRITON = """
import triton
import triton.language as tl

@triton.jit
def doubled(x, y, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < SIZE), mask=at < SIZE)

def twice(x, y):
    doubled[(triton.cdiv(len(x), 128),)](x, y, len(x), 128)
"""


@pytest.mark.bwrap
def test_triton_kernels_are_compiled_without_a_gpu_for_visible_sizes_alone(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size is a constant of the kernel; 77 and 78 are secret."""
    gpu = type(DEVICES["cuda"])
    for name, answer in (("architecture", "sm_90a"), ("index", 0), ("properties", {"major": 9, "minor": 0})):
        monkeypatch.setattr(gpu, name, lambda _, answer=answer: answer)
    problem, provider = load(PROBLEMS / "double_hidden"), Launches("bwrap")
    asked = dataclasses.replace(
        setup(problem, Submission.of(TRITON, "py", author="tester")), provider=provider, device="cuda"
    )
    cases = list(known_cases(asked))
    builds = Builds(provider, "cuda", problem.limits, kept)  # type: ignore[arg-type]
    request = BuildRequest.of(problem, asked.submission, cases[:1], "cuda")
    told = [request for case in cases for request in requests(asked, case)]
    builds.build(request, lambda _: contextlib.nullcontext(), told)
    left = builds.with_objects(request).objects
    assert left
    with tarfile.open(fileobj=io.BytesIO(left)) as archive:
        kernels = [archive.extractfile(entry) for entry in archive if entry.name.endswith("doubled.ttir")]
    constants = [re.findall(rb"dense<(\d+)> : tensor<128xi32>", kernel.read()) for kernel in kernels if kernel]
    sizes = {int(size) for found in constants for size in found}
    assert sizes == {1, 1009, 65536, 1_000_000}
    for commands, builds_in_all in ((told, 1), (told[:2], 2)):
        Builds(provider, "cuda", problem.limits, kept).build(request, lambda _: contextlib.nullcontext(), commands)  # type: ignore[arg-type]
        assert provider.builds == builds_in_all, "what was compiled for other calls is not what these need"


@pytest.mark.bwrap
def test_what_calls_write_beside_a_build_is_not_kept(kept: Kept) -> None:
    source = f"{BUILDS}print([*built.read_text()])\n{CALL}    built.write_text('carried' + str(len(x)))\n"
    for _ in range(2):
        check = checked(Launches("bwrap"), kept, source)
        assert (check.outcome, check.log.strip()) == (Outcome.ACCEPTED, "built before: True\n[]"), check.message
    (file,) = kept.folder.iterdir()
    assert b"carried1" not in file.read_bytes()


@pytest.mark.bwrap
@pytest.mark.parametrize("folder", [None, "/dev/null", "/usr/kept-builds"])
def test_without_a_folder_it_is_built_each_time(folder: str | None) -> None:
    """None is given, it cannot be made, or sandboxes would contain it."""
    provider = Launches("bwrap")
    for count in (1, 2):
        check = checked(provider, Kept(Path(folder), 1 << 30) if folder else None, BUILDS + CALL)
        assert (check.outcome, check.log.strip()) == (Outcome.ACCEPTED, "built before: True"), check.message
        assert provider.builds == count
    assert not Path("/usr/kept-builds").exists()


@pytest.mark.bwrap
@pytest.mark.parametrize(
    ("source", "language", "outcome"),
    [
        (LIBRARY.replace("n;", "m;"), "cpp", Outcome.COMPILE_ERROR),
        (f"{BUILDS}raise RuntimeError(\"Error building extension 'x': no\")", "py", Outcome.RUNTIME_ERROR),
    ],
)
def test_what_a_compiler_refuses_is_not_built_again(source: str, language: str, outcome: Outcome, kept: Kept) -> None:
    provider = Launches("bwrap")
    check = checked(provider, kept, source, language)
    assert (check.outcome, check.stage.value) == (outcome, "build")
    assert check.log.strip() == ("built before: False" if language == "py" else "")
    in_the_runner = checked(Launches("process"), kept, source, language)
    for field in ("outcome", "stage", "message", "traceback", "log", "tests"):
        assert getattr(check, field) == getattr(in_the_runner, field)
    assert (provider.builds, kept.sizes()) == (1, [])


@pytest.mark.bwrap
@pytest.mark.parametrize(
    "fails",
    [
        "raise RuntimeError('no GPU')",
        "raise RuntimeError(\"Error building extension 'x': [3/3] c++\\n/usr/bin/ld: cannot find -lcuda\")",
        "os._exit(3)",
        "os.kill(os.getpid(), 11)",
    ],
)
def test_what_fails_without_a_device_is_graded_all_the_same(fails: str, kept: Kept) -> None:
    provider = Launches("bwrap")
    check = checked(provider, kept, f"{BUILDS}\nif alone:\n    {fails}\n{CALL}")
    assert check.outcome is Outcome.ACCEPTED, check.message
    assert provider.builds == 1


@pytest.mark.bwrap
@pytest.mark.parametrize(
    "leaves",
    [
        "(Path.home() / 'large').write_bytes(bytes(100 << 20))",
        "from harness.runner import compiling; compiling.packed = lambda: os._exit(3)",
    ],
)
def test_what_cannot_be_kept_is_built_again_by_the_runner(leaves: str, kept: Kept) -> None:
    check = checked(Launches("bwrap"), kept, f"{BUILDS}\nif alone:\n    {leaves}\n{CALL}")
    assert (check.outcome, check.log.strip()) == (Outcome.ACCEPTED, "built before: False"), check.message
    assert kept.sizes() == [32], "nothing, with its digest"


@pytest.mark.bwrap
def test_a_build_that_does_not_end_is_a_timeout(kept: Kept) -> None:
    check = checked(Launches("bwrap"), kept, f"{BUILDS}\nwhile alone:\n    pass\n{CALL}", build_s=8.0)
    assert (check.outcome, check.message) == (Outcome.TIMEOUT, "gave no answer within 8 s, while building")
    assert (check.log.strip(), kept.sizes()) == ("built before: False", [])


@pytest.mark.bwrap
def test_what_compiles_nothing_needs_no_build_and_without_isolation_none_is_kept(kept: Kept) -> None:
    for name, source in (("bwrap", CALL), ("process", BUILDS + CALL)):
        provider = Launches(name)
        assert checked(provider, kept, source).outcome is Outcome.ACCEPTED
        assert (provider.builds, kept.sizes()) == (0, [])
