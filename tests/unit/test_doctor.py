"""The doctor's findings from prepared facts: what is wrong, with what remedy, and whether a grading could run."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, create_autospec

import pytest

from harness.errors import DeviceError
from harness.sandbox import Exit, Sandbox, gpu
from kernelmark.diagnostics import doctor
from kernelmark.diagnostics.doctor import Diagnostic, machine, packages, project, sandboxes
from kernelmark.project.settings import Settings
from leaderboard.record.ledger import JsonlLedger
from tests.documents import items
from tests.unit.conftest import Command
from tests.verdicts import accepted

CPU_BUILD: dict[str, Any] = {
    "torch": {"version": "2.13.0+cpu"},
    "triton": {"version": "3.7.1"},
    "cuda.bindings.driver": {"error": "ModuleNotFoundError: No module named 'cuda'"},
    "cuda": None,
    "devices": [],
}
H200 = {**CPU_BUILD, "torch": {"version": "2.11.0+cu130"}, "cuda": "13.0", "devices": ["NVIDIA H200"]}
BINDINGS = {"cuda.bindings.driver": {"version": "13.0.1"}}
ABSENT = {"error": "ModuleNotFoundError: No module named 'it'"}


def statuses(findings: Iterator[Diagnostic]) -> dict[str, str]:
    return {finding.check: finding.status for finding in findings}


def python_that_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr("sys.executable", str(program))


def test_a_folder_without_a_project_gets_the_command_that_makes_one(tmp_path: Path) -> None:
    [found] = project.problems(Settings(root=tmp_path))
    why = f"no project was found here: there is no kernelmark.toml in {tmp_path} or above it"
    assert (found.status, found.text) == ("warn", why)
    assert "`kernelmark init`" in found.remedy
    assert next(doctor.lines([found])) == "this machine can grade, but no project was found here (1 warning below)"
    (tmp_path / "kernelmark.toml").touch()
    [found] = project.problems(Settings(root=tmp_path))
    assert "none under" in found.text


def test_torch_is_probed_in_a_subprocess_by_its_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python_that_prints(tmp_path, monkeypatch, f"echo a warning; echo '{json.dumps(H200)}'".replace("'it'", "it"))
    assert packages.probe_torch()["devices"] == ["NVIDIA H200"]


def test_a_torch_that_kills_its_process_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python_that_prints(tmp_path, monkeypatch, "echo 'libtorch.so: undefined symbol' >&2; exit 134")
    [finding] = packages.torch_and_triton(packages.probe_torch())
    assert (finding.status, finding.blocks) == ("fail", True)
    assert "libtorch.so: undefined symbol" in finding.text


@pytest.mark.parametrize(
    ("probe", "requirements", "expected"),
    [
        (CPU_BUILD, [], {"torch": "ok", "triton": "ok"}),
        (H200, ["numpy", 'triton==3.7.1; platform_system == "Linux"'], {"torch": "ok", "triton": "ok"}),
        (H200, ['triton==3.6.0; platform_system == "Linux"'], {"torch": "ok", "triton": "warn"}),
        (H200, ["triton (==3.1.0)"], {"torch": "ok", "triton": "warn"}),
        (H200, ["triton>=3", "tritonclient==2.0"], {"torch": "ok", "triton": "ok"}),
        (CPU_BUILD | {"triton": ABSENT}, [], {"torch": "ok", "triton": "warn"}),
        (CPU_BUILD | {"torch": ABSENT}, [], {"torch": "fail"}),
        (CPU_BUILD | {"bytecode": False}, [], {"torch": "ok", "triton": "ok", "bytecode": "warn"}),
    ],
)
def test_torch_and_triton_are_a_pair(
    monkeypatch: pytest.MonkeyPatch, probe: dict[str, Any], requirements: list[str], expected: dict[str, str]
) -> None:
    monkeypatch.setattr(packages, "_requirements", lambda _name: requirements)
    assert statuses(packages.torch_and_triton(probe)) == expected


@pytest.mark.parametrize(
    ("probe", "expected"),
    [
        (CPU_BUILD, {"CUDA device": "warn"}),
        (H200, {"CUDA device": "ok", "cuda-bindings": "fail"}),
        (H200 | BINDINGS, {"CUDA device": "ok", "cuda-bindings": "ok"}),
        (H200 | {"devices": [], "device_error": "driver too old"}, {"CUDA device": "warn"}),
        (
            H200 | BINDINGS | {"reaches_host": True},
            {"CUDA device": "ok", "cuda-bindings": "ok", "host memory": "warn"},
        ),
    ],
)
def test_a_cuda_device_needs_its_bindings(probe: dict[str, Any], expected: dict[str, str]) -> None:
    findings = list(packages.cuda(probe))
    assert statuses(iter(findings)) == expected
    assert all(finding.remedy for finding in findings if finding.status != "ok")
    missing = [finding.remedy for finding in findings if finding.check == "CUDA device" and finding.status == "warn"]
    assert all("`nvidia-smi`" in remedy or "`pip install " in remedy for remedy in missing)


def test_without_cupti_nothing_is_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = DeviceError("CUPTI (libcupti.so) is not here", "install PyTorch for CUDA")
    monkeypatch.setattr(packages, "Cupti", Mock(side_effect=absent))
    finding = packages.cupti()
    assert (finding.status, finding.blocks) == ("warn", False)
    assert finding.text.endswith("plain calls are timed, without a rank")
    assert finding.remedy
    monkeypatch.setattr(packages, "Cupti", lambda: None)
    assert packages.cupti().status == "ok"


@pytest.mark.parametrize(("needed", "status"), [(True, "warn"), (False, "ok")])
def test_a_missing_compiler_warns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, needed: bool, status: str) -> None:
    monkeypatch.setattr(gpu, "toolkit", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.compiler("nvcc", ".cu", needed=needed).status == status
    monkeypatch.setattr(gpu, "toolkit", lambda: Path("/opt/cuda"))
    found = machine.compiler("nvcc", ".cu", needed=needed)
    assert (found.status, found.check, found.text) == ("ok", "nvcc", "/opt/cuda/bin/nvcc")


@pytest.mark.parametrize(
    ("docker", "bwrap", "expected"),
    [
        (None, None, {"docker": "ok", "bwrap": "ok"}),
        ("no daemon; start it", None, {"docker": "warn", "bwrap": "ok"}),
        ("no daemon; start it", "not installed", {"docker": "warn", "bwrap": "warn", "isolation": "warn"}),
    ],
)
def test_missing_isolation_is_reported_if_no_provider_is_usable(
    monkeypatch: pytest.MonkeyPatch, docker: str | None, bwrap: str | None, expected: dict[str, str]
) -> None:
    reasons = {"docker": docker, "bwrap": bwrap, "process": None}
    fakes = [SimpleNamespace(name=name, unavailable=lambda why=why: why) for name, why in reasons.items()]
    monkeypatch.setattr(sandboxes, "launch_fails", lambda _provider: None)
    monkeypatch.setattr(sandboxes, "providers", lambda _settings: fakes)
    assert statuses(sandboxes.usable(Settings(), cuda_is_here=False)) == expected


@pytest.mark.parametrize(
    ("ended", "says"),
    [
        (Exit(code=127, signal=None), "the process ended by itself (exit status 127), while starting"),
        (Exit(code=None, signal=9), "the process was ended by SIGKILL, while starting"),
        (None, "gave no answer within 0.2 s, while starting"),
    ],
)
def test_a_sandbox_must_start_to_be_usable(monkeypatch: pytest.MonkeyPatch, ended: Exit | None, says: str) -> None:
    monkeypatch.setattr(sandboxes, "LAUNCH_S", 0.2)
    stuck = create_autospec(Sandbox, instance=True)
    stuck.breach.return_value = None
    stuck.ended.return_value, stuck.startup_log.return_value = ended, "exec: docker-init:\n\x1b[2J not found"
    fake = SimpleNamespace(name="docker", unavailable=lambda: None, launch=lambda _launch: stuck)
    monkeypatch.setattr(sandboxes, "providers", lambda _settings: [fake])
    found = list(sandboxes.usable(Settings(), cuda_is_here=False))
    assert [(finding.status, finding.check) for finding in found] == [("warn", "docker"), ("warn", "isolation")]
    printed = "(it printed: exec: docker-init: \\x1b[2J not found)"
    message = f"no sandbox starts: the runner failed before it was asked anything: {says} {printed}; "
    assert found[0].text.startswith(message)
    assert "make image" in found[0].text
    assert "\n" not in found[0].text
    stuck.close.assert_called_once_with()


@pytest.mark.parametrize(
    ("files", "status", "text"),
    [
        ({}, "ok", "not readable here"),
        ({"cpu0/cpufreq/scaling_governor": "performance\n", "cpufreq/boost": "0\n"}, "ok", "turbo off"),
        ({"cpu0/cpufreq/scaling_governor": "powersave\n"}, "warn", "governor powersave"),
        ({"intel_pstate/no_turbo": "0\n"}, "warn", "turbo is on"),
        ({"cpufreq/boost": "1\n"}, "warn", "turbo is on"),
    ],
)
def test_a_clock_that_moves_is_a_warning(tmp_path: Path, files: dict[str, str], status: str, text: str) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    finding = machine.clock_frequency(tmp_path)
    assert finding.status == status
    assert text in finding.text


@pytest.mark.parametrize(("free", "status"), [(10 << 30, "ok"), (1 << 30, "warn"), (1 << 20, "fail")])
def test_too_little_room_blocks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free: int, status: str) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _path: SimpleNamespace(free=free))
    finding = machine.free_space(tmp_path)
    assert (finding.status, finding.blocks) == (status, status == "fail")


def test_broken_problems_and_ledgers_are_found_and_do_not_block(tmp_path: Path) -> None:
    for slug in ("good", "bad"):
        JsonlLedger(tmp_path / f"leaderboard/results/{slug}.jsonl").append(accepted(problem=slug))
    with (tmp_path / "leaderboard/results/bad.jsonl").open("r+") as file:
        file.seek(200)
        file.write("#")
    (tmp_path / "problems/broken").mkdir(parents=True)
    (tmp_path / "problems/broken/problem.toml").write_text("titel = 'x'\n")
    settings = Settings(root=tmp_path)
    findings = [*project.problems(settings), *project.ledgers(settings)]
    assert statuses(iter(findings)) == {"problem broken": "fail", "ledger bad": "fail", "ledger good": "ok"}
    assert "bad.jsonl line 1" in findings[1].text
    assert doctor.can_grade(findings)


def test_an_announcement_about_no_problem_is_found(tmp_path: Path) -> None:
    (tmp_path / "problems/double").mkdir(parents=True)
    (tmp_path / "problems/double/problem.toml").touch()
    made = [{"at": "2026-11-20T09:00:00+01:00", "text": "New.", "problem": slug} for slug in ("double", "dubble", None)]
    findings = project.problems(Settings(root=tmp_path, announcements=made))  # type: ignore[arg-type]
    [found] = [finding for finding in findings if finding.check == "announcements"]
    assert (found.status, found.text) == ("warn", "one is about dubble: no such problem")
    assert found.remedy == "did you mean `double`?"


@pytest.mark.parametrize(("torch", "code"), [({"version": "2.13.0"}, 0), (ABSENT, 7)])
def test_the_exit_status_says_whether_a_grading_could_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, invoke: Command, torch: dict[str, str], code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(packages, "probe_torch", lambda: CPU_BUILD | {"torch": torch})
    assert invoke("doctor").code == code
    result = invoke("doctor", "--format", "json")
    assert result.code == code
    found = {finding["check"]: finding["status"] for finding in items(result.out)}
    assert {"python", "torch", "docker", "bwrap", "temp dir", "memfd seals", "CPU clock", "problems"} <= set(found)
    assert found["torch"] == ("fail" if code else "ok")


def test_lines_are_aligned_and_end_with_the_remedy() -> None:
    found = [Diagnostic("ok", "python", "3.11"), Diagnostic("fail", "memfd seals", "refused", "upgrade")]
    assert list(doctor.lines(found)) == [
        "this machine can grade (1 failure below)",
        "ok    python       3.11",
        "fail  memfd seals  refused; upgrade",
    ]


def test_passing_checks_are_summarized_unless_everything_is_requested() -> None:
    alone = [Diagnostic("ok", name, "usable") for name in ("torch", "CUDA device", "docker", "bwrap", "calibration")]
    parts = [
        Diagnostic("ok", f"{name} {number}", "fine", part_of=name)
        for name, count in (("packages", 5), ("machine", 6), ("problems", 28), ("ledgers", 7))
        for number in range(count)
    ]
    shown = list(doctor.lines([*parts, *alone]))
    assert len(shown) == 10
    assert shown[0] == "this machine can grade, and nothing is missing"
    assert "ok    packages     packages 0, packages 1, packages 2, packages 3, packages 4" in shown
    assert "ok    problems     all 28" in shown
    assert len(list(doctor.lines([*parts, *alone], everything=True))) == 1 + 46 + 5
    wrong = replace(parts[20], status="fail", blocks=True)
    shown = list(doctor.lines([*parts[:20], wrong, *parts[21:], *alone]))
    assert shown[0] == "this machine cannot grade yet (1 failure below)"
    assert "fail  problems 9   fine" in shown
    assert "ok    problems     all 27" in shown
