"""Encodes a recording as bytes: eight bytes with the length of a header, the header as JSON, then the blobs.

The runner writes it into a memory file that the judge makes, of the size that the runner requests, at most
`MAX_FILE_BYTES`.
"""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from harness.recording.schema import Blob, HostCopy, Image, Kernel, Recording, read
from harness.wire.checks import WireError, strict_json

MAX_FILE_BYTES = 512 << 20
_MAX_HEADER_BYTES = 8 << 20  # parsing a hostile header takes some thirty times its size of the judge's memory
_LENGTH = struct.Struct("<Q")
_ELF = b"\x7fELF"


@dataclass(frozen=True)
class Packed:
    """A recording, and the bytes of its blobs."""

    recording: Recording
    blobs: memoryview

    def content(self, blob: Blob) -> memoryview:
        return self.blobs[blob.start : blob.start + blob.nbytes]


def pack(recording: Recording, blobs: bytes) -> bytes:
    """Encode a recording, for `unpack`.

    Raises:
        WireError: the result would be larger than `MAX_FILE_BYTES`.
    """
    body = dataclasses.asdict(recording)
    body["nodes"] = [
        {"kind": type(node).__name__, **fields} for node, fields in zip(recording.nodes, body["nodes"], strict=True)
    ]
    header = json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
    whole = _LENGTH.pack(len(header)) + header + blobs
    if len(header) > _MAX_HEADER_BYTES or len(whole) > MAX_FILE_BYTES:
        raise WireError(f"a recording of {len(whole):,} bytes")
    return whole


def unpack(whole: bytes) -> Packed:
    """Decode a recording that a runner wrote.

    Raises:
        WireError: anything is wrong with it. This function raises nothing else, whatever the bytes.
    """
    if not _LENGTH.size <= len(whole) <= MAX_FILE_BYTES:
        raise WireError(f"a recording of {len(whole):,} bytes")
    (length,) = _LENGTH.unpack_from(whole)
    if length > min(_MAX_HEADER_BYTES, len(whole) - _LENGTH.size):
        raise WireError("a header that is longer than the recording, or than any may be")
    header = whole[_LENGTH.size : _LENGTH.size + length]
    packed = Packed(read(strict_json(header)), memoryview(whole)[_LENGTH.size + length :])
    for blob in _blobs(packed.recording):
        if blob.start + blob.nbytes > len(packed.blobs):
            raise WireError("bytes that the recording has not")
    for image in packed.recording.images:
        # The driver would also accept PTX, and might take unlimited time to compile it.
        if packed.content(image.code)[: len(_ELF)] != _ELF:
            raise WireError("a code image that is not an ELF file")
    return packed


def _blobs(recording: Recording) -> Iterator[Blob]:
    for image in recording.images:
        yield from _of_image(image)
    for node in recording.nodes:
        if isinstance(node, Kernel) and node.parameters:
            yield node.parameters
        if isinstance(node, HostCopy):
            yield node.content


def _of_image(image: Image) -> Iterator[Blob]:
    yield image.code
    yield from (variable.content for variable in image.variables)
