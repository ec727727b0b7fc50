"""Asks the importer about one problem, in a sandbox that is used once, and checks its answer. Trusted.

One packet is sent, with two descriptors: the question, and a pipe for the answer, which is read here until it ends, a
limit is exceeded or the time is up. Untrusted code may have written the answer: only values within bounds are accepted.
`harness.importer.values` defines the form of descriptions.
"""

from __future__ import annotations

import json
import os
import select
import socket
import time
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, ValidationError, model_validator

from harness.judge.session import Session
from harness.judge.session.memory_file import memory_file
from harness.kinds import DeviceKind
from harness.problem import Limits
from harness.sandbox import Provider, Sandbox
from harness.wire.checks import WireError, printable, strict_json
from kernelmark.interop.importing.checkout import ForeignProblem, NotImportedError

MAX_BYTES = 8 << 20
_DEPTH = 16
_NUMBER = 1e300  # larger than any float that a problem states; NaN fails the comparison


def line(text: str) -> str:
    """Untrusted text as one line."""
    return " ".join(printable(text).split())[:300]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


Size = Annotated[int, Field(strict=True, ge=0, lt=1 << 50)]
Text = Annotated[str, Field(max_length=1000)]
TextLine = Annotated[Text, AfterValidator(line)]


class TensorFacts(_Part):
    """One tensor in one case; the same one, in data and result, has one id."""

    id: Text
    dtype: Annotated[str, Field(max_length=40)]
    shape: Annotated[tuple[Size, ...], Field(max_length=64)]
    strides: tuple[Size, ...]
    count: Size | None = None
    """The number of tensors in a folded entry of a dict."""

    @model_validator(mode="after")
    def _a_stride_for_each_dimension(self) -> Self:
        if len(self.shape) != len(self.strides):
            raise ValueError("a tensor needs as many strides as dimensions")
        return self


@dataclass(frozen=True)
class Description:
    """A value: its kind, and its content.

    `inside` is a `TensorFacts`, a number, a text, a list of nodes (list, tuple) or a table of nodes (dict, fields).
    """

    kind: str
    inside: Any

    @property
    def tensors(self) -> list[TensorFacts]:
        """The tensors in it, in order."""
        if self.kind == "tensor":
            return [self.inside]
        members = self.inside.values() if isinstance(self.inside, dict) else self.inside
        return [found for node in members for found in node.tensors] if isinstance(self.inside, list | dict) else []


def _node(value: Any, depth: int = 0) -> Description:
    if not isinstance(value, dict) or len(value) != 1 or depth > _DEPTH:
        raise ValueError(f"a value is not a table with one key, or is nested more than {_DEPTH} deep")
    [(kind, inside)] = value.items()
    match kind, inside:
        case "tensor", _:
            return Description(kind, TensorFacts.model_validate(inside))
        case "number", bool() | int() | float() if -_NUMBER < inside < _NUMBER:
            return Description(kind, inside)
        case (("text" | "dtype" | "other"), str()) if len(inside) <= 1000:
            return Description(kind, inside)
        case "none", _:
            return Description(kind, True)
        case (("list" | "tuple"), list()):
            return Description(kind, [_node(member, depth + 1) for member in inside])
        case (("dict" | "fields"), dict()) if all(len(key) <= 200 for key in inside):
            return Description(kind, {key: _node(member, depth + 1) for key, member in inside.items()})
    raise ValueError("a value of an unknown kind, or too large")


Described = Annotated[Description, PlainValidator(_node)]


class CaseAnswer(_Part):
    """The data and the result of a case."""

    data: Described
    result: Described


class ImporterAnswer(_Part):
    """Everything that the importer found out about a problem."""

    cases: tuple[CaseAnswer, ...]
    names: tuple[Text, ...] = ()
    """The names of the members of the data in the code."""
    init: tuple[Described, ...] = ()
    filled: dict[Text, TextLine] = {}
    """For tensors of the data that the result may be written to: "yes", "no", or why this is unknown."""
    fixed: bool = False
    """Whether two seeds were seen to give the same inputs."""
    seed_bits: Annotated[int, Field(strict=True, ge=0, le=62)] = 0
    """How many bits the seeds of `generate_input` may have; 0 if only small ones will do, or this is unknown."""
    weight_bytes: Size = 0
    host_bytes: Size = 0
    """The most host memory that the importer's process held."""


def check(raw: bytes, cases: int) -> ImporterAnswer:
    """The answer about a problem with so many cases.

    Raises:
        NotImportedError: the problem was refused, or the answer is not one.
    """
    try:
        document = strict_json(raw)
        if isinstance(document, dict) and isinstance(document.get("refused"), str):
            raise NotImportedError(line(document["refused"]))
        answer = ImporterAnswer.model_validate(document)
    except WireError as error:
        raise NotImportedError(f"what came out of the sandbox is not an answer ({error})") from None
    except ValidationError as error:
        why = line(error.errors(include_url=False)[0]["msg"])
        raise NotImportedError(f"what came out of the sandbox is not an answer ({why})") from None
    if len(answer.cases) != cases:
        raise NotImportedError("what came out of the sandbox is not an answer (another number of cases)")
    return answer


LIMIT_S = 300.0  # some draw ill-conditioned matrices for minutes
_POLL_S = 0.05
_LIMITS = Limits(memory_bytes=16 << 30, processes=256, disk_bytes=256 << 20)


def ask(provider: Provider, device: DeviceKind, problem: ForeignProblem, limit_s: float = LIMIT_S) -> bytes:
    """The answer of the importer.

    Raises:
        NotImportedError: the foreign code ended its process, used too much, or did not end.
        SandboxError: the sandbox did not start.
    """
    with Session.start(provider, device, _LIMITS, role="importer") as session:
        sandbox, connection = session.connect()
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(writer, True)
        try:
            with memory_file(_question(problem, device)) as question:
                socket.send_fds(connection, [b"?"], [question, writer])
        finally:
            os.close(writer)
        try:
            return _read(sandbox, reader, limit_s)
        finally:
            os.close(reader)


def _question(problem: ForeignProblem, device: DeviceKind) -> bytes:
    """The question as JSON. A problem of gpu-mode may need the GPU; the sizes of a KernelBench problem do not."""
    question = {
        "form": problem.form,
        "files": {file.name: file.content.decode("utf-8", "replace") for file in problem.files},
        "cases": [dict(case) for case in problem.cases],
        "devices": ["cuda"] if device == "cuda" and problem.form == "gpu-mode" else ["meta", "cpu"],
    }
    return json.dumps(question).encode()


def _read(sandbox: Sandbox, reader: int, limit_s: float) -> bytes:
    """Read the pipe to its end."""
    deadline, answer = time.monotonic() + limit_s, bytearray()
    while True:
        if select.select([reader], [], [], _POLL_S)[0]:
            chunk = os.read(reader, 1 << 16)
            answer += chunk
            if not chunk:
                break
            if len(answer) > MAX_BYTES:
                raise NotImportedError(f"the description of its sizes has more than {MAX_BYTES >> 20} MiB")
        if breach := sandbox.breach():
            raise NotImportedError(f"it went beyond the {breach.kind} limit ({breach.detail})")
        if time.monotonic() > deadline:
            raise NotImportedError(f"it did not end within {limit_s:.3g} s")
    if not answer:
        raise NotImportedError(_how_it_ended(sandbox))
    return bytes(answer)


def _how_it_ended(sandbox: Sandbox) -> str:
    deadline = time.monotonic() + 3.0
    while (ended := sandbox.ended()) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    if breach := sandbox.breach():
        return f"it went beyond the {breach.kind} limit ({breach.detail})"
    if ended is None:
        return "it closed its connection"
    if ended.out_of_memory:
        return f"it needs more than {_LIMITS.memory_bytes >> 30} GiB of memory"
    return ended.description
