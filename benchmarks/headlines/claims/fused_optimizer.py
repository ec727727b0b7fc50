"""AdamW over many tensors: a launch a tensor, 4 KB of arguments a launch, 32 KB, or copied pointers."""

from benchmarks.headlines.bench import Bench, ours, rows_of
from benchmarks.headlines.finding import Claim, Finding, Row, judged

PROBLEM = "adam_multi_tensor"


def measure(bench: Bench) -> Finding:
    bench.needs_gpu("the kernels with arguments and with copied pointers are CUDA")
    each, pointers = ours(PROBLEM, "launch_each.py"), ours(PROBLEM, "pointers.cu")
    small = ours(PROBLEM, "cuda.cu").changed("arguments_4_KB", "using Many = Arguments<740>;", "using Many = Few;")
    against = [ours(PROBLEM, "eager.py"), ours(PROBLEM, "fused.py")]
    rows: list[Row] = []
    for candidate, others in ((small, [each, pointers, *against]), (pointers, [each])):
        verdict = bench.verdict(PROBLEM, candidate, others)
        rows += rows_of(verdict, candidate.name)
        for case in verdict.benchmarks:
            if case.mode == "replayed":
                launches = sum(kernel.launches for kernel in case.kernels)
                rows.append(Row(case.name, f"launches of {candidate.name}", launches, "a call"))
    return judged(rows, "arguments_4_KB × launch_each", at_least=2.0)


CLAIM = Claim(
    "fused_optimizer",
    "GPU Mode, lecture 6",
    "An optimizer's step in few launches, with the addresses in 4 KB of arguments or copied to the device, is several "
    "times as fast as launches for each tensor.",
    measure,
)
