"""The other projects' evaluators, each called as its own documents say: one function a project.

A function is given sources by their names, writes what its project asks for around each of them into a folder, and
yields what that project says of it. Nothing of theirs is changed: where a project imports something that an evaluation
does not use, such as clients of language models, it gets a stand-in.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import statistics
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.peers.kernels import SOURCES, TURN

# Elements of a vector: 3 MB a call, which a launch outlasts, and 201 MB, four times the L2 of an H100.
SIZES = {"short": 1 << 18, "long": 1 << 24}
Told = dict[str, Any]  # right, us and error_us (of the mean) by size, and what else it says
Evaluator = Callable[[Mapping[str, str], Path], Iterator[Told]]
Calls = dict[str, Callable[[], Any]]  # by size


def told(right: bool, us: Mapping[str, float], errors: Mapping[str, float] | None = None, said: object = "") -> Told:
    return {"right": right, "us": dict(us), "error_us": dict(errors or {}), "said": str(said)[:200]}


def kernelbench(sources: Mapping[str, str], folder: Path) -> Iterator[Told]:
    """`eval_kernel_against_ref`: 5 tests and 100 timed calls between events, with its check for excessive speedup."""
    for name, what in (("openai", "OpenAI"), ("litellm", "completion")):
        if find_spec(name) is None:
            stand_in: Any = types.ModuleType(name)
            setattr(stand_in, what, None)
            sys.modules[name] = stand_in
    from kernelbench.eval import eval_kernel_against_ref

    reference = """
import torch
import torch.nn as nn
class Model(nn.Module):
    def forward(self, a, b):
        return a + b
def get_inputs():
    return [torch.rand({n}), torch.rand({n})]
def get_init_inputs():
    return []
"""
    model = "\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, a, b):\n        return add(a, b)\n"
    for source in sources.values():
        found = {}
        for size, n in SIZES.items():
            found[size] = eval_kernel_against_ref(
                reference.format(n=n), source + model, num_correct_trials=5, num_perf_trials=100,
                measure_performance=True, backend="triton",
            )  # fmt: skip
        timed = {size: each for size, each in found.items() if each.runtime > 0}
        us = {size: each.runtime * 1e3 for size, each in timed.items()}
        errors = {size: each.runtime_stats["std"] * 1e3 / math.sqrt(100) for size, each in timed.items()}
        flagged = any(each.metadata.get("excessive_speedup") for each in found.values())
        said = "excessive_speedup" if flagged else [each.metadata for each in found.values()]
        yield told(all(each.correctness for each in found.values()) and not flagged, us, errors, said)


def gpu_mode(sources: Mapping[str, str], folder: Path) -> Iterator[Told]:
    """`eval.py leaderboard`, which compares every timed call."""
    import yaml

    from benchmarks.foreign import evaluated

    theirs = Path(os.environ["PEERS_GPU_MODE"]) / "problems/pmpp_v2"
    (folder / "task.py").write_text("input_t = output_t = object\nTestSpec = dict\n")
    (folder / "reference.py").write_text("""
import torch
from utils import make_match_reference
def ref_kernel(data):
    a, b, out = data
    out[...] = a + b
    return out
def generate_input(size, seed):
    draw = torch.Generator(device="cuda").manual_seed(seed)
    a, b = (torch.randn(size, device="cuda", generator=draw) for _ in range(2))
    return a, b, torch.empty_like(a)
check_implementation = make_match_reference(ref_kernel)
""")
    files = {"submission.py": "@SUBMISSION@", "eval.py": f"{theirs}/eval.py", "utils.py": f"{theirs}/utils.py"}
    files |= {name: str(folder / name) for name in ("task.py", "reference.py")}
    listed = [{"name": name, "source": source} for name, source in files.items()]
    cases = [{"size": n, "seed": 4242 + n} for n in SIZES.values()]
    (folder / "task.yml").write_text(yaml.safe_dump({"files": listed, "benchmarks": cases}))
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(f"{source}\n\ndef custom_kernel(data):\n    return add(*data)\n")
        logged = evaluated(folder / f"{name}.py", folder, "leaderboard")
        logs = {size: f"benchmark.{place}" for place, size in enumerate(SIZES)}
        us = {size: float(logged[f"{log}.mean"]) / 1e3 for size, log in logs.items() if f"{log}.mean" in logged}
        errors = {size: float(logged[f"{logs[size]}.err"]) / 1e3 for size in us}
        yield told(
            logged["check"] == "pass", us, errors, {k: v for k, v in logged.items() if "error" in k or k == "check"}
        )


def flashinfer_bench(sources: Mapping[str, str], folder: Path) -> Iterator[Told]:
    """`Benchmark.run_all` with its default settings: 3 trials of 50 iterations, in its persistent worker."""
    from flashinfer_bench.bench import Benchmark, BenchmarkConfig
    from flashinfer_bench.data import Definition, Solution, Trace, TraceSet

    tensor = {"shape": ["n"], "dtype": "float32"}
    definition = Definition.model_validate({
        "name": "add", "op_type": "add", "axes": {"n": {"type": "var"}}, "inputs": {"a": tensor, "b": tensor},
        "outputs": {"out": tensor}, "reference": f"{TURN}\nimport torch\n\ndef run(a, b):\n    return a + b\n",
    })  # fmt: skip
    random = {"a": {"type": "random"}, "b": {"type": "random"}}
    workloads = [
        Trace.model_validate({"definition": "add", "workload": {"axes": {"n": n}, "inputs": random, "uuid": size}})
        for size, n in SIZES.items()
    ]
    theirs = TraceSet(definitions={"add": definition}, workloads={"add": workloads})
    benchmark = Benchmark(theirs, BenchmarkConfig())
    spec = {
        "language": "triton", "target_hardware": ["cuda"], "entry_point": "main.py::run",
        "destination_passing_style": False,
    }  # fmt: skip
    for name, source in sources.items():
        text = f"{source}\n\ndef run(a, b):\n    return add(a, b)\n"
        files = [{"path": "main.py", "content": text}]
        about = {"name": name, "definition": "add", "author": "peers", "spec": spec, "sources": files}
        theirs.solutions["add"] = [Solution.model_validate(about)]
        traces = benchmark.run_all(dump_traces=False).traces.get("add", [])
        found = {trace.workload.uuid: trace.evaluation for trace in traces}
        us = {size: each.performance.latency_ms * 1e3 for size, each in found.items() if each.performance}
        statuses = [each.status.value for each in found.values()]
        logs = "" if len(us) == len(SIZES) else [each.log[-150:] for each in found.values()]
        yield told(statuses == ["PASSED"] * len(SIZES), us, said=f"{statuses} {logs}")
    benchmark.close()


# A file for robust-kbench, which compiles CUDA: an extension that runs the Python source beside it. It includes none of
# torch's headers, so it compiles faster than most.
_CARRIER = """
#include <Python.h>
#define JOINED(a, b) a##b
#define INITIALIZER(name) JOINED(PyInit_, name)
static PyModuleDef defined = {PyModuleDef_HEAD_INIT, "peers", nullptr, -1, nullptr};
PyMODINIT_FUNC INITIALIZER(TORCH_EXTENSION_NAME)() {
  PyObject *module = PyModule_Create(&defined), *loaders = PyImport_ImportModule("importlib.machinery");
  PyObject *loader = loaders ? PyObject_CallMethod(loaders, "SourceFileLoader", "ss", "submission", "FILE") : nullptr;
  PyObject *source = loader ? PyObject_CallMethod(loader, "load_module", nullptr) : nullptr;
  PyObject *add = source ? PyObject_GetAttrString(source, "add") : nullptr;
  return add && PyObject_SetAttrString(module, "forward", add) == 0 ? module : nullptr;
}
"""


def robust_kbench(sources: Mapping[str, str], folder: Path) -> Iterator[Told]:
    """`correct_cuda_kernel` and `eval_cuda_kernel` as in its run_kernel.py, without timing PyTorch's kernels."""
    from robust_kbench.primitives.evaluate import correct_cuda_kernel, eval_cuda_kernel

    task = folder / "peers_add"
    task.mkdir()
    (task / "func_forward.py").write_text('''
import torch
def forward_fn(a, b):
    """The sum of two vectors.

    Args:
        a, b: the vectors.
    """
    return a + b
class Model(torch.nn.Module):
    def forward(self, a, b, fn=forward_fn):
        return fn(a, b)
def get_inputs(n):
    return [torch.randn(n), torch.randn(n)]
input_names = ["a", "b"]
''')
    single: dict[str, Any] = {f"single_{what}_configs": [{}] for what in ("init", "shared", "input")}
    settings = {**single, "multi_input_configs": [{"n": n} for n in SIZES.values()]}
    (task / "config_forward.json").write_text(json.dumps(settings))
    for name, source in sources.items():
        (home := folder / name).mkdir()
        (home / "submission.py").write_text(source)
        (home / "kernel.cu").write_text(_CARRIER.replace("FILE", str(home / "submission.py")))
        given: Any = {"task_dir": str(task), "cuda_code_path": str(home / "kernel.cu"), "multi_input_settings": True}
        extensions = home / "extensions"
        extensions.mkdir()
        tested = correct_cuda_kernel(**given, op_atol=1e-3, op_rtol=1e-3, ext_dir=str(extensions))
        us: dict[str, float] = {}
        said = tested["summary"].get("error", "")
        if tested["summary"]["correct"]:
            timed = eval_cuda_kernel(**given, warmup_time=25, repetition_time=1000, ext_dir=str(extensions))
            us = {size: timed["eval_settings"][f"n_{n}"]["mean_time"] * 1e3 for size, n in SIZES.items()}
        yield told(tested["summary"]["correct"], us, said=said)


def pygpubench(sources: Mapping[str, str], folder: Path) -> Iterator[Told]:
    """`do_bench_isolated`, 100 repeats a size; `allow_root`, `landlock` and `mseal` are as this machine permits."""
    import pygpubench as theirs

    call = ctypes.CDLL(None).syscall
    permitted = {
        "allow_root": os.geteuid() == 0,
        "landlock": call(444, None, 0, 1) > 0,
        "mseal": call(462, 0, 0, 0) == 0,
    }

    sys.path.insert(0, str(folder))
    (folder / "peers_case.py").write_text(
        f"{TURN}"
        """
import torch
def generate_test_case(n, seed):
    draw = torch.Generator(device="cuda").manual_seed(seed)
    a, b = (torch.randn(n, device="cuda", generator=draw) for _ in range(2))
    return (torch.empty_like(a), a, b), (a + b, 1e-6, 1e-6)
"""
    )
    from peers_case import generate_test_case

    kernel = """

def kernel(out, a, b):
    made = add(a, b, out)
    if made is not out:
        out.copy_(made)
"""
    for name, source in sources.items():
        (folder / f"submission_{name}.py").write_text(source + kernel)
        us, errors, right = {}, {}, True
        for size, n in SIZES.items():
            seed = int.from_bytes(os.urandom(4))
            function = f"submission_{name}.kernel"
            found = theirs.do_bench_isolated(function, generate_test_case, {"n": n}, 100, seed, **permitted)
            right = right and found.success
            with contextlib.suppress(ValueError, ZeroDivisionError):  # no call was right
                stats = theirs.basic_stats(found.time_us)
                us[size], errors[size] = stats.mean, stats.err
        yield told(right, us, errors, f"{permitted}, errors: {found.errors}, full: {found.full}")


def function(source: str, file: Path) -> Callable[..., Any]:
    """The function `add` of a source, which is written to a file for Triton to read."""
    file.write_text(source)
    names: dict[str, Any] = {"__name__": file.stem}
    exec(compile(source, str(file), "exec"), names)
    return names["add"]  # type: ignore[no-any-return]


def _calls(sources: Mapping[str, str], folder: Path) -> Iterator[Calls]:
    """For those that time and do not test: a call of each size, one of which was compared; none if it was wrong."""
    import torch

    for name, source in sources.items():
        add = function(source, folder / f"{name}.py")
        calls: Calls = {}
        right = True
        for size, n in SIZES.items():
            a, b = (torch.randn(n, device="cuda") for _ in range(2))
            calls[size] = partial(add, a, b)
            right = right and torch.allclose(calls[size](), a + b)
        yield calls if right else {}


def _benched(sources: Mapping[str, str], folder: Path, bench: Callable[..., list[float] | float]) -> Iterator[Told]:
    for calls in _calls(sources, folder):
        us, errors = {}, {}
        for size, call in calls.items():
            ms = bench(call, return_mode="all")
            times = [1e3 * each for each in (ms if isinstance(ms, list) else [ms])]
            us[size] = statistics.mean(times)
            errors[size] = statistics.stdev(times) / math.sqrt(len(times)) if len(times) > 1 else 0.0
        yield told(bool(calls), us, errors)


def do_bench(sources: Mapping[str, str], folder: Path) -> Iterator[Told]:
    """`triton.testing.do_bench` with its default settings: the mean."""
    from triton import testing

    return _benched(sources, folder, lambda *given, **options: testing.do_bench(*given, **options))


def do_bench_cudagraph(sources: Mapping[str, str], folder: Path) -> Iterator[Told]:
    """`triton.testing.do_bench_cudagraph` with its default settings: the mean."""
    from triton import testing

    return _benched(sources, folder, lambda *given, **options: testing.do_bench_cudagraph(*given, **options))


def nvbench(sources: Mapping[str, str], folder: Path) -> Iterator[Told]:
    """`run_all_benchmarks` with its default settings, cold measurements only, at most 2 s a size: the mean."""
    import cuda.bench as theirs
    import torch

    every = list(_calls(sources, folder))
    if not all(every):
        yield from (told(bool(calls), {}) for calls in every)
        return
    flat = [call for calls in every for call in calls.values()]

    def peers(state: Any) -> None:
        def launch(given: Any) -> None:
            with torch.cuda.stream(torch.cuda.ExternalStream(given.get_stream().addressof())):
                flat[state.get_int64("call")]()

        state.exec(launch, batched=False)

    theirs.register(peers).add_int64_axis("call", list(range(len(flat))))
    out = folder / "nvbench.json"
    theirs.run_all_benchmarks(["peers", "--quiet", "--timeout", "2", "--devices", "0", "--json", str(out)])
    states = json.loads(out.read_text())["benchmarks"][0]["states"]
    for place in range(0, len(flat), len(SIZES)):
        us, errors = {}, {}
        for size, state in zip(SIZES, states[place:], strict=False):
            values = {each["tag"]: each["data"][0]["value"] for each in state["summaries"] or [] if each.get("data")}
            mean, deviation = (1e6 * float(values[f"nv/cold/time/gpu/{tag}"]) for tag in ("mean", "stdev/absolute"))
            us[size], errors[size] = mean, deviation / math.sqrt(int(values["nv/cold/sample_size"]))
        yield told(True, us, errors)


def kernelmark(sources: Mapping[str, str], folder: Path) -> Iterator[Told]:
    """A grading at the default effort, with the honest kernel as the baseline, in a `Fleet` of one slot."""
    import kernelmark as ours

    tensors = "".join(
        f'[[tensors]]\nname = "{name}"\nrole = "{role}"\nshape = ["n"]\ndtype = "float32"\n'
        for name, role in (("a", "input"), ("b", "input"), ("out", "output"))
    )
    tests = "".join(f'[[tests]]\nname = "{n}"\nparams = {{ n = {n} }}\n' for n in (1, 1000, 65537))
    timed = "".join(f'[[benchmarks]]\nname = "{size}"\nparams = {{ n = {n} }}\n' for size, n in SIZES.items())
    home = folder / "problems" / "peers_add"
    home.mkdir(parents=True)
    (home / "problem.toml").write_text(
        f'title = "Sum"\nentry = "add"\nparameters = ["n"]\n{tensors}[call]\nstyle = "returns"\n'
        f'[cost]\nbytes = "12 * n"\nflops = "n"\n{tests}{timed}'
    )
    (home / "reference.py").write_text("def reference(a, b):\n    return a + b\n")
    (folder / "reference/peers_add").mkdir(parents=True)
    (folder / "reference/peers_add/same.py").write_text(SOURCES["add"])
    (folder / "kernelmark.toml").write_text("")
    exec(TURN)  # the sandbox keeps the kernel from taking it
    os.environ.pop("PEERS_TURN", None)
    with ours.Fleet(slots=1, project=ours.Project(folder)) as fleet:
        for source in sources.values():
            [result] = fleet.grade_many(
                [ours.Job(problem="peers_add", submission=source)], effort="default", baselines=["same"]
            )
            if (verdict := result.verdict) is None:
                raise RuntimeError(str(result.error))
            accepted = verdict.outcome is ours.Outcome.ACCEPTED
            cases = {case.name: case for case in verdict.benchmarks} if accepted else {}
            us = {name: case.score.median_ns / 1e3 for name, case in cases.items()}
            widths = {name: (case.score.high_ns - case.score.low_ns) / 1e3 / 3.92 for name, case in cases.items()}
            row = told(accepted and verdict.ranks, us, widths, f"{verdict.outcome} {verdict.timing} {verdict.message}")
            ratios = {name: case.baselines[0].speedup for name, case in cases.items() if case.baselines}
            yield row | {"ratio": {name: [ratio.low, ratio.high] for name, ratio in ratios.items()}}


EVALUATORS: dict[str, Evaluator] = {
    "kernelmark": kernelmark,
    "KernelBench": kernelbench,
    "gpu-mode": gpu_mode,
    "flashinfer-bench": flashinfer_bench,
    "robust-kbench": robust_kbench,
    "pygpubench": pygpubench,
    "nvbench": nvbench,
    "do_bench": do_bench,
    "do_bench_cudagraph": do_bench_cudagraph,
}
# Those that keep nothing for the next verdict, which takes as long as the first.
ANEW = frozenset({"gpu-mode", "robust-kbench", "pygpubench", "nvbench"})
# What L2 holds when a timed call begins: other data, `dirty` if they were just written, since they are written back
# during the call, and `clean` if they were read or discarded; or what the last call left, `own`.
STATES = ("dirty", "clean", "own")
LEAVES = {"kernelmark": "clean", "pygpubench": "clean", "robust-kbench": "own", "do_bench_cudagraph": "own"}
