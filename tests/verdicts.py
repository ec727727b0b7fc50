"""Verdicts that no judge gave, for tests of whatever reads them; realistic in shape and size, the same every time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any

from harness.submission import Submission
from harness.verdict import (
    Budget,
    CaseResult,
    Check,
    DeviceKind,
    Effort,
    Environment,
    Interval,
    LaunchedKernel,
    Outcome,
    OutputCheck,
    PairedBaseline,
    ProblemId,
    Ratio,
    ReplayedBenchmark,
    ReplayedCalls,
    Roofline,
    RoundsBenchmark,
    SandboxName,
    Speedup,
    Stage,
    SubmissionId,
    Telemetry,
    TimedRound,
    Timing,
    Verdict,
)
from leaderboard.record.entry import MODERATION, VERDICT, Entry, encode
from leaderboard.record.moderation import Moderation

_serial = count(1)
REPLAYED = ("replayed",) * 4
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def interval(median_ns: int, low_ns: int | None = None, high_ns: int | None = None) -> Interval:
    """A median with its interval; ±0.5 % by default."""
    low_ns = median_ns - median_ns // 200 if low_ns is None else low_ns
    high_ns = median_ns + median_ns // 200 if high_ns is None else high_ns
    return Interval(median_ns=median_ns, low_ns=low_ns, high_ns=high_ns, confidence=0.95)


def environment(
    *,
    device_kind: DeviceKind = "cuda",
    device_name: str = "NVIDIA H200",
    sandbox: SandboxName = "docker",
    interpreted: bool = False,
    card: str | None = None,
) -> Environment:
    return Environment(
        device_kind=device_kind,
        device_name=device_name,
        device_uuid_sha256=sha256(card or device_name),
        driver="580.65",
        cuda="13.0",
        power_limit_mw=700_000,
        sandbox=sandbox,
        image_digest="sha256:" + sha256("image") if sandbox == "docker" else None,
        interpreted=interpreted,
        python="3.12.3",
        torch="2.11.0",
        triton="3.6.0",
    )


def accepted(
    *,
    author: str = "ada",
    score_ns: int = 57_300,
    low_ns: int | None = None,
    high_ns: int | None = None,
    problem: str = "softmax",
    problem_version: str = "1",
    name: str = "kernel.py",
    source: str | None = None,
    submission: Submission | None = None,
    problem_sha256: str | None = None,
    protocol: int = 1,
    run: str | None = None,
    created_at: datetime = EPOCH,
    modes: Sequence[str] = ("calls",) * 4,
    timing: Timing | None = None,
    ranked_timing: Timing | None = None,
    log: str = "",
    effort: Effort = "default",
    speedups: dict[str, float] | None = None,
    roofline: Roofline | None = None,
    **where: Any,
) -> Verdict:
    """An accepted verdict, about 7 KB of JSON, with one benchmark case for each of `modes`; each call is a new run.

    Of a `submission`, if one is given. With `modes=REPLAYED` all are replayed. `timing` follows from the modes, and is
    "sealed" only if given; a time has a rank unless `ranked_timing` is another one. `where` is as in `environment`.
    """
    timing = timing or ("replayed" if "replayed" in modes else "calls")
    score = interval(score_ns, low_ns, high_ns)
    return Verdict(
        outcome=Outcome.ACCEPTED,
        stage=Stage.REPLAY if "replayed" in modes else Stage.TIME,
        message="",
        problem=_problem(problem, problem_version, problem_sha256),
        submission=SubmissionId.of(submission) if submission else _submission(author, name, source),
        environment=environment(**where),
        protocol=protocol,
        seeds=tuple(range(9_000_000_000, 9_000_000_008)),
        tests=tuple(_passed(index) for index in range(4)),
        log=log,
        run=run or _next_run(),
        created_at=created_at,
        duration_ns=5_800_000_000,
        effort=effort,
        timing=timing,
        ranked_timing=ranked_timing or timing,
        benchmarks=tuple(
            (replayed_benchmark if mode == "replayed" else partial(_benchmark, mode, timing))(
                i, score, speedups=speedups or {}, roofline=roofline
            )
            for i, mode in enumerate(modes)
        ),
        score=score,
        speedups=tuple(
            Speedup(baseline=name, sha256=sha256(name), ratio=_ratio(value)) for name, value in (speedups or {}).items()
        ),
    )


def failed(
    outcome: Outcome = Outcome.WRONG_ANSWER,
    *,
    author: str = "ada",
    message: str = "it is not right",
    problem: str = "softmax",
    problem_version: str = "1",
    name: str = "kernel.py",
    submission: Submission | None = None,
    problem_sha256: str | None = None,
    protocol: int = 1,
    run: str | None = None,
    created_at: datetime = EPOCH,
    sandbox: SandboxName = "docker",
) -> Verdict:
    """A verdict with no score; a wrong answer has one failed test, the others ended as their outcome says."""
    stages = {Outcome.COMPILE_ERROR: Stage.BUILD, Outcome.REJECTED: Stage.TIME}
    wrong = CaseResult(name="wide", params={"rows": 4, "cols": 4096}, outcome=Outcome.WRONG_ANSWER, message=message)
    tests = (_passed(0), wrong) if outcome is Outcome.WRONG_ANSWER else (_passed(0),)
    return Verdict(
        outcome=outcome,
        stage=stages.get(outcome, Stage.TEST),
        message=message,
        problem=_problem(problem, problem_version, problem_sha256),
        submission=SubmissionId.of(submission) if submission else _submission(author, name, None),
        environment=environment(sandbox=sandbox),
        protocol=protocol,
        tests=() if outcome is Outcome.COMPILE_ERROR else tests,
        run=run or _next_run(),
        created_at=created_at,
        duration_ns=1_200_000_000,
        timing="calls",
        ranked_timing="calls",
    )


def as_check(verdict: Verdict) -> Check:
    """The check that is a part of this grading."""
    return Check.model_validate({name: getattr(verdict, name) for name in Check.model_fields})


def chained(*documents: Verdict | Moderation) -> list[Entry]:
    """The entries of a ledger to which these were appended in turn."""
    entries = list[Entry]()
    for document in documents:
        kind = MODERATION if isinstance(document, Moderation) else VERDICT
        entries.append(encode(entries[-1] if entries else None, document.to_json().encode(), kind=kind)[0])
    return entries


def _next_run() -> str:
    return f"{next(_serial):016x}"


def _problem(slug: str, version: str, known: str | None) -> ProblemId:
    return ProblemId(slug=slug, sha256=known or sha256(f"{slug} {version}"))


def _submission(author: str, name: str, source: str | None) -> SubmissionId:
    text = f"# {author}" if source is None else source
    return SubmissionId(sha256=sha256(text), name=name, author=author, language="py", size_bytes=len(text.encode()))


def _passed(index: int) -> CaseResult:
    budget = Budget(error=2.1e-7, allowed=4.8e-7, reference_error=1.2e-7, factor=4.0, floor=4.8e-7)
    return CaseResult(
        name=f"case {index}",
        params={"rows": 16 << index, "cols": 1000 + index},
        outcome=Outcome.ACCEPTED,
        outputs=(OutputCheck(output="y", dtype="float32", correct=True, max_error=budget, rms_error=budget),),
    )


def _ratio(median: float) -> Ratio:
    return Ratio(median=median, low=0.995 * median, high=1.005 * median, confidence=0.969)


def _paired(name: str, rounds: tuple[TimedRound, ...], median_ns: int, ratio: float) -> PairedBaseline:
    time_ns = round(ratio * median_ns)
    return PairedBaseline(name=name, sha256=sha256(name), rounds=rounds, time_ns=time_ns, speedup=_ratio(ratio))


def kernel(name: str = "row_softmax", **changes: object) -> LaunchedKernel:
    """What a call launches of one kernel: its only launch."""
    fields: dict[str, object] = {"grid": (2048, 1, 1), "block": (256, 1, 1), "cluster": (1, 1, 1), "registers": 38}
    fields |= {"shared_bytes": 49_152, "local_bytes": 0, "launches": 1, "time_ns": 55_100}
    return LaunchedKernel.model_validate({"name": name, **fields, **changes})


def replayed_benchmark(
    index: int,
    score: Interval,
    *,
    speedups: dict[str, float] | None = None,
    roofline: Roofline | None = None,
    kernels: Sequence[LaunchedKernel] = (kernel(),),
) -> ReplayedBenchmark:
    """A case of 40 calls that a launcher made in 8 blocks; the events say 2.5 µs more than CUPTI, the host 14 µs."""
    ratios, calls = speedups or {}, _calls(score.median_ns)
    return ReplayedBenchmark(
        **_timed(index, score, roofline),
        calls=calls,
        seeds=tuple(4_000_000_000 + 100 * index + step for step in range(-(-len(calls.device_ns) // 20))),
        group=20,
        kernels=tuple(kernels),
        event_extra_ns=2_400,
        span_extra_ns=11_300,
        telemetry=tuple(Telemetry(sm_mhz=1980 - 15 * step, temperature_c=41) for step in range(8)),
        baselines=tuple(
            PairedBaseline(
                name=name,
                sha256=sha256(name),
                calls=_calls(round(ratio * score.median_ns)),
                time_ns=round(ratio * score.median_ns),
                speedup=_ratio(ratio),
            )
            for name, ratio in ratios.items()
        ),
    )


def _calls(median_ns: int) -> ReplayedCalls:
    device = tuple(median_ns + step * (median_ns // 2000) for step in (*range(-19, 1), *range(20)))
    return ReplayedCalls(
        device_ns=device,
        event_ns=tuple(ns + 2_500 for ns in device),
        span_ns=tuple(ns + 14_000 for ns in device),
    )


def _timed(index: int, score: Interval, roofline: Roofline | None) -> dict[str, Any]:
    """What every timed case has, but for the baselines."""
    return {
        "name": f"{2048 << index} square",
        "params": {"rows": 2048 << index, "cols": 2048 << index},
        "score": score,
        "stop_reason": "converged",
        "roofline": roofline,
        "minimum_bytes": 134_217_728,
        "minimum_flops": 83_886_080,
    }


def _benchmark(
    mode: str, timing: Timing, index: int, score: Interval, *, speedups: dict[str, float], roofline: Roofline | None
) -> RoundsBenchmark:
    calls, overhead_ns, median_ns = 400, 600_000, score.median_ns
    rounds = tuple(
        TimedRound(
            calls=calls,
            seed=4_000_000_000 + 100 * index + step,
            wall_ns=overhead_ns + calls * median_ns + (2 * step - 7) * calls * median_ns // 2000,
            telemetry=Telemetry(sm_mhz=1980 - 15 * step, memory_mhz=3201, power_mw=412_000, temperature_c=41),
        )
        for step in range(8)
    )
    return RoundsBenchmark.model_validate(
        {
            **_timed(index, score, roofline),
            "mode": mode,
            "rounds": rounds,
            "overhead_ns": overhead_ns,
            "overhead_error_ns": None if timing == "sealed" else 7_200,
            "baselines": tuple(_paired(name, rounds, median_ns, ratio) for name, ratio in speedups.items()),
        }
    )
