"""A recorded call against everything that a runner could write: it is read exactly, or refused in one line."""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.recording.file import pack, unpack
from harness.recording.schema import (
    MAX_EDGES,
    MAX_NODES,
    MAX_RETURNED,
    Blob,
    Edge,
    Empty,
    HostCopy,
    Image,
    Memcpy,
    Memset,
    Recording,
    Returned,
    Variable,
)
from harness.recording.windows import INPUTS, OUTPUTS, SCRATCH
from harness.wire.checks import WireError
from tests import recordings

BLOBS = b"\x7fELF" + b"code" * 7 + b"eight by" + b"\x01" * 24 + b"addresses"
IMAGE = Image(code=Blob(start=0, nbytes=32), variables=(Variable(name="table", content=Blob(start=32, nbytes=8)),))
KERNEL = dataclasses.replace(
    recordings.KERNEL,
    name="_Z5twicePKfPfl",
    cluster=(2, 1, 1),
    shared_bytes=49_152,
    parameters=Blob(start=40, nbytes=24),
)
MEMSET = Memset(address=OUTPUTS.start + 4096, value=0, element_bytes=4, width=1024, height=1, pitch=0)
MEMCPY = Memcpy(
    source=INPUTS.start,
    target=SCRATCH.start,
    width=256,
    height=4,
    depth=2,
    source_pitch=512,
    target_pitch=256,
    source_height=4,
    target_height=4,
)
HOST_COPY = HostCopy(content=Blob(start=64, nbytes=9), target=SCRATCH.start + 1024)
WHOLE = Recording(
    images=(IMAGE,),
    nodes=(MEMSET, MEMCPY, KERNEL, dataclasses.replace(KERNEL, parameters=None), Empty(), HOST_COPY),
    edges=(
        Edge(before=0, after=2, when="ended"),
        Edge(before=1, after=2, when="ended"),
        Edge(before=2, after=3, when="triggered"),
        Edge(before=3, after=4, when="ended"),
    ),
    scratch_bytes=1 << 21,
    returned=(Returned(source=SCRATCH.start + 512, target=OUTPUTS.start + 4096, nbytes=64),),
)


def changed(change: Callable[[dict[str, Any]], object], blobs: bytes = BLOBS) -> bytes:
    """What `pack` makes of `WHOLE`, with something else in its header."""
    whole = pack(WHOLE, b"")
    body = json.loads(whole[8:])
    change(body)
    header = json.dumps(body).encode()
    return struct.pack("<Q", len(header)) + header + blobs


def test_a_packed_recording_is_read_back() -> None:
    packed = unpack(pack(WHOLE, BLOBS))
    assert packed.recording == WHOLE
    [image] = packed.recording.images
    assert bytes(packed.content(image.code)) == BLOBS[:32]
    assert bytes(packed.content(image.variables[0].content)) == b"eight by"
    assert changed(lambda body: None) != b""
    assert unpack(changed(lambda body: None)).recording == WHOLE


def node(number: int, **fields: Any) -> Callable[[dict[str, Any]], object]:
    return lambda body: body["nodes"][number].update(fields)


def edge(**fields: Any) -> Callable[[dict[str, Any]], object]:
    return lambda body: body["edges"][0].update(fields)


def result(**fields: Any) -> Callable[[dict[str, Any]], object]:
    return lambda body: body["returned"][0].update(fields)


HOSTILE: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a field more": (lambda body: body.update(run="rm"), "expected the fields"),
    "no nodes": (lambda body: body.update(nodes=[], edges=[]), "a list of 1 to"),
    "more nodes than are read": (lambda body: body.update(nodes=body["nodes"] * MAX_NODES), f"to {MAX_NODES} items"),
    "more edges than are read": (
        lambda body: body.update(edges=body["edges"] * (MAX_EDGES // 4 + 1)),
        f"to {MAX_EDGES} items",
    ),
    "an unknown node": (node(0, kind="Host"), "expected one of Kernel, Memset"),
    "a node's kind that is a list": (node(0, kind=["Kernel"]), "expected one of Kernel, Memset"),
    "a node that is a number": (lambda body: body["nodes"].__setitem__(0, 7), "expected a node"),
    "another kind's fields": (node(4, address=0), "expected the fields"),
    "a cycle": (edge(before=2, after=0), "an edge from node 2 to node 0"),
    "an edge to itself": (edge(before=2, after=2), "an edge from node 2 to node 2"),
    "an edge to nowhere": (edge(after=6), "an edge from node 0 to node 6 of 6"),
    "an edge twice": (lambda body: body["edges"].append(body["edges"][0]), "two edges"),
    "an edge of no known kind": (edge(when="never"), "expected one of ended"),
    "an image that it has not": (node(2, image=1), "a function of image 1 of 1"),
    "a grid without blocks": (node(2, grid=[0, 1, 1]), r"an integer in \[1"),
    "a grid of two axes": (node(2, grid=[1, 1]), "three integers"),
    "a grid of half a cluster": (node(2, grid=[4095, 1, 1]), "whole clusters"),
    "a block of too many threads": (node(2, block=[1024, 2, 1]), "at most 1024 threads"),
    "true for one": (node(2, grid=[True, 1, 1]), "expected an integer"),
    "one for true": (node(2, cooperative=1), "true or false"),
    "parameters beyond the end": (node(2, parameters={"start": 1 << 39, "nbytes": 8}), "bytes that the recording has"),
    "parameters before the start": (node(2, parameters={"start": -8, "nbytes": 8}), "expected an integer"),
    "parameters without end": (node(2, parameters={"start": 0, "nbytes": 32_765}), "bytes of parameters"),
    "a fill outside every window": (node(0, address=0x7F00_0000_0000), "not memory of the call's"),
    "a fill of an input": (node(0, address=INPUTS.start), "not memory of the call's"),
    "a fill past the end of a window": (
        node(0, address=OUTPUTS.start + OUTPUTS.nbytes - 8),
        "not memory of the call's",
    ),
    "a fill of rows that overlap": (node(0, height=2, pitch=8), "rows that overlap"),
    "a fill of rows past the end": (node(0, height=1 << 40, pitch=1 << 39), "not memory of the call's"),
    "a fill of three bytes": (node(0, element_bytes=3), "does not fit"),
    "a fill that is larger than its elements": (node(0, element_bytes=1, value=256), "does not fit"),
    "a copy to an input": (node(1, target=INPUTS.start), "not memory of the call's"),
    "a copy from anywhere": (node(1, source=4096), "not memory of the call's"),
    "a copy to scratch that is not in use": (
        node(1, target=SCRATCH.start + (1 << 21) - 512),
        "not memory of the call's",
    ),
    "a copy from the host to an output": (node(5, target=OUTPUTS.start), "not memory of the call's"),
    "a copy from the host to scratch that is not in use": (
        node(5, target=SCRATCH.start + (1 << 21) - 8),
        "not memory of the call's",
    ),
    "a large copy from the host": (
        node(5, content={"start": 0, "nbytes": (1 << 20) + 1}),
        "a copy of 1,048,577 bytes from the host",
    ),
    "a copy from the host of bytes that are not there": (
        node(5, content={"start": 64, "nbytes": 10}),
        "bytes that the recording has not",
    ),
    "a variable beyond the end": (
        lambda body: body["images"][0]["variables"][0].update(content={"start": 68, "nbytes": 8}),
        "bytes that the recording has not",
    ),
    "an image that is none": (lambda body: body["images"][0].update(code={"start": 4, "nbytes": 8}), "not an ELF file"),
    "scratch without end": (lambda body: body.update(scratch_bytes=1 << 37), "expected an integer"),
    "a call that allocates what is not in use": (
        lambda body: body.update(peak_bytes=body["scratch_bytes"] + 1),
        "a call that allocates 2,097,153 of 2,097,152 bytes",
    ),
    "a result from an input": (result(source=INPUTS.start), "not memory of the call's"),
    "a result from scratch that is not in use": (
        result(source=SCRATCH.start + (1 << 21) - 32),
        "not memory of the call's",
    ),
    "a result that is not for an output": (result(target=SCRATCH.start), "not memory of the call's"),
    "a result without bytes": (result(nbytes=0), r"an integer in \[1"),
    "more results than are read": (
        lambda body: body.update(returned=body["returned"] * (MAX_RETURNED + 1)),
        f"to {MAX_RETURNED} items",
    ),
    "a number that is none": (lambda body: body.update(scratch_bytes=float("nan")), "NaN is not a number"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_contradictory_content_is_refused(name: str) -> None:
    change, why = HOSTILE[name]
    with pytest.raises(WireError, match=why):
        unpack(changed(change))


@pytest.mark.parametrize(
    ("whole", "why"),
    [
        (b"", "of 0 bytes"),
        (b"\x00" * 7, "of 7 bytes"),
        (b"\xff" * 8, "a header that is longer"),
        (struct.pack("<Q", 9) + b"{}", "a header that is longer"),
        (struct.pack("<Q", 2) + b"{}", "expected the fields"),
        (struct.pack("<Q", 100_000) + b"[" * 100_000, "nested more than 100 deep"),
        (struct.pack("<Q", 4) + b"\xff\xfe{}", "not JSON"),
    ],
)
def test_an_invalid_recording_is_refused(whole: bytes, why: str) -> None:
    with pytest.raises(WireError, match=why):
        unpack(whole)


def test_a_name_is_safe_to_print() -> None:
    packed = unpack(changed(node(2, name="twice\x1b[31m\u202e")))
    kernel = packed.recording.nodes[2]
    assert kernel.name == "twice\\x1b[31m\\u202e"


@given(st.binary(max_size=400))
def test_no_other_exception_leaves_it(noise: bytes) -> None:
    with pytest.raises(WireError):
        unpack(noise)


@given(st.integers(0, len(pack(WHOLE, BLOBS)) - 1), st.binary(min_size=1, max_size=4))
def test_a_recording_with_bytes_changed_is_read_or_refused(place: int, noise: bytes) -> None:
    whole = pack(WHOLE, BLOBS)
    try:
        packed = unpack(whole[:place] + noise + whole[place + len(noise) :])
    except WireError:
        return
    assert unpack(pack(packed.recording, bytes(packed.blobs))).recording == packed.recording
