"""What a code image defines, read from images that NVIDIA's assembler makes here, and from noise."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import triton
from hypothesis import given
from hypothesis import strategies as st

from harness.runner.elf import defined

PTXAS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
PTX = """
.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .f32 table[4] = {0f3F800000, 0f40000000, 0f40400000, 0f40800000};
.visible .global .align 4 .u32 counter;
.visible .global .align 8 .u64 where[1] = {generic(counter)};
.visible .const .align 8 .f64 scale = 0d4000000000000000;
.visible .entry twice(.param .u64 x) {
  .reg .b64 %a;
  .reg .b32 %v;
  mov.u64 %a, counter;
  ld.global.u32 %v, [%a];
  mov.u64 %a, table;
  st.global.u32 [%a], %v;
  ret;
}
.visible .entry thrice() { ret; }
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    at = tmp_path_factory.mktemp("elf")
    (at / "code.ptx").write_text(PTX)
    subprocess.run([PTXAS, "-arch=sm_90", at / "code.ptx", "-o", at / "code.cubin"], check=True)
    return (at / "code.cubin").read_bytes()


def test_functions_and_variables_are_named(image: bytes) -> None:
    found = defined(image)
    assert found.functions == {"twice", "thrice"}
    assert set(found.variables) == {"table", "counter", "scale"}, "`where` holds an address of this process"


@pytest.mark.parametrize("kept", [0, 4, 16, 64, 200])
def test_an_image_that_ends_early_is_refused(image: bytes, kept: int) -> None:
    with pytest.raises(ValueError, match=r"not an ELF file|ends early|not found"):
        defined(image[:kept])


@given(st.binary(max_size=300))
def test_noise_is_refused(noise: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # any says enough
        defined(b"\x7fELF\x02" + noise)
