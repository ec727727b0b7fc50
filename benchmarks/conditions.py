"""What the conditions of a call add to its time: copies as graph nodes, new memory, a pause of the host, gradients.

    python -m benchmarks.conditions --out benchmarks/results/conditions.json

`copies`: a copy within the device as a plain call, as the node of a CUDA graph, as nodes for the parts into which
recordings cut it (harness/runner/large_copies.py), and a kernel that reads and writes as much. `memsets`:
cudaMemsetAsync as a call and as a node, and PyTorch's kernel. `first_reads`: a sum over memory that was mapped for the
first time, mapped again, and read once more. `host_time`: calls that wait for the device before they end, so that the
host's time counts: one after a fill of 256 MiB, which hides some of it, after a pause and such a fill, and after a
pause alone; and the mean of calls in a row (1, 10 or 200 of them), after a fill and after a pause. `models`: eager and
compiled, with autograd off and on, after such a fill and behind a spinning kernel; and as a graph, with autograd off.
In µs, medians, by CUDA events; but for `host_time` and after fills, a spinning kernel hides the launches. Needs a GPU,
and no sandbox.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from cuda.bindings import driver

from benchmarks.scratch import report
from harness.arena import Arena, Window, make_arena, make_window
from harness.arena.mapping import check
from harness.device import DEVICES
from harness.recording.schema import Memcpy
from harness.runner.large_copies import in_parts

MIB = 1 << 20
REPEATS = 10
SPIN_CYCLES = 2_000_000  # about 1 ms
CACHE_BYTES = 256 * MIB
GRAYSCALE = (8192, 16384)
HISTOGRAMS = (1_310_720, 2_621_440, 10_485_760)
PAUSE_S = 0.2
IN_A_ROW = 10


def cold() -> None:
    """Empty the cache, and keep the device busy while the call is launched."""
    torch.empty(CACHE_BYTES, dtype=torch.uint8, device="cuda").max()
    torch.cuda.synchronize()
    torch.cuda._sleep(SPIN_CYCLES)


def fill() -> None:
    """As gpu-mode's evaluator clears the cache: what is launched meanwhile waits behind it."""
    torch.empty(CACHE_BYTES // 8, dtype=torch.int64, device="cuda").fill_(42)


def pause() -> None:
    """Let the device and the host be idle."""
    time.sleep(PAUSE_S)


def pause_and_fill() -> None:
    """Both, so that the fill is launched after the pause."""
    pause()
    fill()


def took(call: Callable[[], object], prepare: Callable[[], None]) -> float:
    """The time of a call by events, in µs; what `prepare` launches may still run when the first event is enqueued."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    prepare()
    start.record()
    kept = call()
    end.record()
    torch.cuda.synchronize()
    del kept
    return 1e3 * float(start.elapsed_time(end))


def median(call: Callable[[], object], prepare: Callable[[], None] = cold) -> float:
    """Of some repetitions, after two that do not count."""
    times = [took(call, prepare) for _ in range(REPEATS + 2)]
    return round(statistics.median(times[2:]), 1)


def graph(call: Callable[[], object]) -> Callable[[], object]:
    """The call, recorded as a graph."""
    call()
    torch.cuda.synchronize()
    made = torch.cuda.CUDAGraph()
    with torch.cuda.graph(made):
        call()
    return made.replay


def copies(nbytes: int, offset: int = 0) -> dict[str, float]:
    """Copies of `nbytes`, from and to addresses that are `offset` past an aligned one."""
    source = torch.zeros(offset + nbytes, dtype=torch.uint8, device="cuda")[offset:]
    to = torch.zeros(offset + nbytes, dtype=torch.uint8, device="cuda")[offset:]
    whole = Memcpy(source.data_ptr(), to.data_ptr(), nbytes, 1, 1, 0, 0, 0, 0)
    widths = [part.width for part in in_parts([whole], [])[0] if isinstance(part, Memcpy)]

    def parts() -> None:
        for one, other in zip(to.split(widths), source.split(widths), strict=True):
            one.copy_(other)

    return {
        "call_us": median(lambda: to.copy_(source)),
        "node_us": median(graph(lambda: to.copy_(source))),
        "parts_us": median(graph(parts)),
        "kernel_us": median(lambda: torch.bitwise_not(source, out=to)),
    }


def memsets(nbytes: int) -> dict[str, float]:
    """Fills of `nbytes` with the driver's function, which cudaMemsetAsync calls, and with PyTorch's kernel."""
    tensor = torch.zeros(nbytes, dtype=torch.uint8, device="cuda")

    def memset() -> None:
        check(driver.cuMemsetD8Async(tensor.data_ptr(), 0, nbytes, torch.cuda.current_stream().cuda_stream))

    return {"call_us": median(memset), "node_us": median(graph(memset)), "kernel_us": median(lambda: tensor.fill_(0))}


def first_reads(nbytes: int) -> dict[str, float]:
    """A sum of all; `new`: the first time that the window maps the memory."""
    window = make_window("cuda", nbytes, writable=True)
    first: dict[str, list[float]] = {"new": [], "mapped_again": [], "once_more": []}
    for _ in range(REPEATS // 2):
        arena: Arena = make_arena("cuda", nbytes, read_only=False)
        arena.bytes.fill_(1)
        for name in ("new", "mapped_again", "mapped_again"):
            torch.cuda.synchronize()
            window.map(arena.descriptor())
            first[name].append(_sum(window, nbytes))
            first["once_more"].append(_sum(window, nbytes))
            window.unmap()
        arena.close()
    window.close()
    return {f"{name}_us": round(statistics.median(times), 1) for name, times in first.items()}


def _sum(window: Window, nbytes: int) -> float:
    tensor = window.tensor(0, (nbytes // 4,), "float32")
    return took(tensor.sum, cold)


def grayscale(image: torch.Tensor) -> torch.Tensor:
    """As gpu-mode's solution has it: the weights come from the host."""
    weights = torch.tensor([0.2989, 0.5870, 0.1140], device=image.device, dtype=image.dtype)
    output = torch.empty(image.shape[:-1], device=image.device)
    output[...] = torch.sum(image * weights, dim=-1)
    return output


def histogram(values: torch.Tensor) -> torch.Tensor:
    """As gpu-mode's solution has it: it waits for the size of its result."""
    output = torch.empty(256, dtype=torch.int64, device=values.device)
    output[...] = torch.bincount(values, minlength=256)
    return output


def host_time(call: Callable[[torch.Tensor], object], inputs: Sequence[torch.Tensor]) -> dict[str, float]:
    """The call on the first input; in a row, the mean of calls on one input after another."""

    def all_of_them() -> None:
        for values in inputs:
            call(values)

    def one() -> object:
        return call(inputs[0])

    return {
        "after_a_fill_us": median(one, fill),
        "after_a_pause_and_a_fill_us": median(one, pause_and_fill),
        "after_a_pause_us": median(one, pause),
        "in_a_row_us": round(median(all_of_them, fill) / len(inputs), 1),
        "in_a_row_after_a_pause_us": round(median(all_of_them, pause) / len(inputs), 1),
    }


def model(call: Callable[[torch.Tensor], object], *shape: int) -> dict[str, float]:
    """The call, eager and compiled, on a random input of that shape."""
    x = torch.rand(shape, device="cuda")
    found = {}
    for kind, function in (("eager", call), ("compiled", torch.compile(call))):
        for records in (False, True):
            name = f"{kind}_with_gradients" if records else kind
            with torch.set_grad_enabled(records):
                found[f"{name}_after_a_fill_us"] = median(partial(function, x), fill)
                found[f"{name}_us"] = median(partial(function, x))
        with torch.no_grad():
            found[f"{kind}_as_a_graph_us"] = median(graph(partial(function, x)))
    return found


def product() -> Callable[[torch.Tensor], object]:
    """A product of float32 matrices, as in problem 1/1 of KernelBench."""
    other = torch.rand(4096, 4096, device="cuda")
    return lambda x: x @ other


def sort(x: torch.Tensor) -> torch.Tensor:
    """The body of gpu-mode's solution, which is compiled there, and given its output."""
    output = torch.empty_like(x)
    output[...] = torch.sort(x)[0]
    return output


def convolution() -> Callable[[torch.Tensor], object]:
    """A convolution, ReLU and a bias, as in problem 2/1 of KernelBench."""
    layer = torch.nn.Conv2d(64, 128, 3, device="cuda")
    bias = torch.nn.Parameter(torch.randn(128, 1, 1, device="cuda"))
    return lambda x: torch.relu(layer(x)) + bias


def _images(n: int) -> list[torch.Tensor]:
    return [torch.rand(n, n, 3, device="cuda") for _ in range(1 if n > 8192 else IN_A_ROW)]


def _values(n: int) -> list[torch.Tensor]:
    return [torch.randint(0, 256, (n,), dtype=torch.uint8, device="cuda") for _ in range(20 * IN_A_ROW)]


def main() -> None:
    """Measure, print, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    out: Path = parser.parse_args().out
    facts = DEVICES["cuda"].facts()
    figures = {
        "device": facts.device_name,
        "driver": facts.driver,
        "copies": {
            **{f"{mib} MiB": copies(mib * MIB) for mib in (4, 16, 64, 256, 384, 511, 512, 1024, 2048)},
            **{f"{million} MB": copies(million * 1_000_000) for million in (4, 16, 20, 24, 32, 64, 100, 400, 1000)},
            **{f"{mib} MiB and 4 bytes": copies(mib * MIB + 4) for mib in (4, 16, 17, 64, 384)},
            **{f"{mib} MiB, 4 bytes past an aligned address": copies(mib * MIB, 4) for mib in (4, 16, 17, 64, 384)},
        },
        "memsets": {f"{mib} MiB": memsets(mib * MIB) for mib in (64, 256, 384, 512, 1024, 2048)},
        "first_reads": {f"{mib} MiB": first_reads(mib * MIB) for mib in (4, 16, 64, 256, 1024, 4096)},
        "host_time": {
            **{f"grayscale {n} x {n}": host_time(grayscale, _images(n)) for n in GRAYSCALE},
            **{f"histogram {n}": host_time(histogram, _values(n)) for n in HISTOGRAMS},
        },
        "models": {
            "sort (gpu-mode pmpp_v2/sort)": model(sort, 100_000_000),
            "product (KernelBench 1/1)": model(product(), 4096, 4096),
            "layer norm (1/40)": model(torch.nn.LayerNorm((64, 256, 256), device="cuda"), 16, 64, 256, 256),
            "convolution (2/1)": model(convolution(), 128, 64, 128, 128),
        },
    }
    report("conditions", " ".join(str(__doc__).split("\n\n")[-1].split()), out, figures)


if __name__ == "__main__":
    main()
