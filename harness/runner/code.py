"""Collects a submission's compiled code: Triton's stages, PTX and SASS, and programs of torch.compile. Untrusted."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness.runner import tried
from harness.runner.absent_gpu import compiled_kernels

_KERNELS = 16  # at most; an autotuner may have compiled hundreds
_FILE, _ALL = 2 << 20, 24 << 20  # characters
_GENERATED = 24  # files of torch.compile
_STAGES = ("ttir", "ttgir", "llir", "ptx")
_SECONDS = 60


def compiled_code(library: Path) -> bytes:
    """All compiled code that is found, as JSON: `{"files": {name: text}}`. Each text and their sum are limited."""
    files: dict[str, str] = {}
    left = _ALL
    for name, text in (
        *_of_triton(),
        *_of_autotuners(),
        *tried.reports(),
        *_of_libraries(library),
        *_of_torch_compile(),
    ):
        kept = text[: min(_FILE, left)]
        if kept:
            files[name] = kept
            left -= len(kept)
    return json.dumps({"files": files}).encode()


def _of_triton() -> Iterator[tuple[str, str]]:
    for number, kernel in enumerate(sorted(compiled_kernels(), key=lambda kernel: str(kernel.name))[:_KERNELS]):
        stem = f"{number} {kernel.name}"
        for stage in _STAGES:
            if stage in kernel.asm:
                yield f"{stem}.{stage}", kernel.asm[stage]
        yield f"{stem}.metadata.txt", "".join(f"{k} = {v}\n" for k, v in kernel.metadata._asdict().items())
        if binary := kernel.asm.get("cubin"):
            with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
                file.write(binary)
                file.flush()
                yield from _of_cubin(stem, file.name)


def _of_cubin(stem: str, cubin: str) -> Iterator[tuple[str, str]]:
    """A compiled kernel's SASS, with source lines if the compiler recorded them, and its use of resources."""
    yield f"{stem}.sass", _printed("nvdisasm", "--print-code", "--print-line-info", cubin)
    yield f"{stem}.resources.txt", _printed("cuobjdump", "--dump-resource-usage", cubin)


def _of_autotuners() -> Iterator[tuple[str, str]]:
    """The configuration that each autotuner chose, and the times of the configurations tried for the last key."""
    module = sys.modules.get("triton.runtime.autotuner")
    if module is None:
        return
    tuners = [item for item in gc.get_objects() if type(item) is module.Autotuner and item.cache]
    for number, tuner in enumerate(tuners[:_KERNELS]):
        lines = [f"for {key}: {config}" for key, config in tuner.cache.items()]
        timings = getattr(tuner, "configs_timings", None) or {}
        tried = sorted((_median_ms(measured), str(config)) for config, measured in timings.items())
        lines += [f"{1000 * median_ms:10.2f} µs  {config}" for median_ms, config in tried if median_ms > 0]
        yield f"{number} {tuner.base_fn.__name__}.autotune.txt", "\n".join(lines) + "\n"


def _median_ms(timings: object) -> float:
    """The median of a measurement: Triton stores the median first, then the quantiles."""
    first = timings[0] if isinstance(timings, list | tuple) and timings else timings
    return float(first) if isinstance(first, int | float) else 0.0


def _of_libraries(library: Path) -> Iterator[tuple[str, str]]:
    """The code of the submission's library, and of the extensions that PyTorch built for it."""
    extensions = (Path.home() / ".cache" / "torch_extensions").rglob("*.so")
    for path in [library, *sorted(extensions)]:
        if path.is_file():
            yield f"{path.stem}.sass", _disassembled(path)
            yield f"{path.stem}.ptx", _printed("cuobjdump", "--dump-ptx", str(path))
            yield f"{path.stem}.resources.txt", _printed("cuobjdump", "--dump-resource-usage", str(path))
    log = library.with_name("build.log")
    if log.is_file():
        yield "submission.build.txt", log.read_text("utf-8", "replace")


def _disassembled(library: Path) -> str:
    """A library's SASS with source lines, which cuobjdump's listing omits."""
    with tempfile.TemporaryDirectory() as folder:
        _printed("cuobjdump", "--extract-elf", "all", str(library), folder=folder)
        cubins = sorted(Path(folder).glob("*.cubin"))
        return "".join(_printed("nvdisasm", "--print-code", "--print-line-info", str(cubin)) for cubin in cubins)


def _of_torch_compile() -> Iterator[tuple[str, str]]:
    """The programs that Inductor generated, largest first (small ones are wrappers), and their compiled kernels.

    Inductor launches its kernels without Triton's objects, so the compiled kernels are found only as files.
    """
    inductor = sys.modules.get("torch._inductor.runtime.cache_dir_utils")
    if inductor is None:
        return
    folder = Path(inductor.cache_dir())
    kernels = Path(os.environ.get("TRITON_CACHE_DIR", folder))
    written = [p for p in folder.rglob("*") if p.suffix in (".py", ".cpp") and p.is_file()]
    written.sort(key=lambda path: -path.stat().st_size)
    for number, path in enumerate(written[:_GENERATED]):
        yield f"generated {number}{path.suffix}", path.read_text("utf-8", "replace")
    # The submission's own kernels are in this folder, too, but `_of_triton` yields those.
    cubins = sorted(kernels.rglob("triton_*.cubin"), key=lambda path: (path.stem, str(path)))
    for number, cubin in enumerate(cubins[:_KERNELS]):
        stem = f"generated {number} {cubin.stem}"
        for stage in _STAGES:
            if (text := cubin.with_suffix(f".{stage}")).is_file():
                yield f"{stem}.{stage}", text.read_text("utf-8", "replace")
        yield from _of_cubin(stem, str(cubin))


def _printed(program: str, *arguments: str, folder: str | None = None) -> str:
    """The output of a program of the CUDA toolkit, which may be bundled with Triton; "" if it is missing or fails."""
    found = shutil.which(program) or _bundled_with_triton(program)
    if found is None:
        return ""
    try:
        done = subprocess.run([found, *arguments], capture_output=True, timeout=_SECONDS, cwd=folder, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def _bundled_with_triton(program: str) -> str | None:
    folders = getattr(sys.modules.get("triton"), "__path__", ())
    paths = (Path(folder) / "backends/nvidia/bin" / program for folder in folders)
    return next((str(path) for path in paths if path.is_file()), None)
