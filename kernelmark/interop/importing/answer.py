"""Checks what the importer answers, which untrusted code may have written: only values within bounds. Trusted.

Descriptions have the form that `harness.importer.values` gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, ValidationError, model_validator

from harness.wire.checks import WireError, printable, strict_json
from kernelmark.interop.importing.checkout import NotImportedError

MAX_BYTES = 8 << 20
_DEPTH = 16
_NUMBER = 1e300  # beyond every float that a problem would state, and NaN is not between


def line(text: str) -> str:
    """Untrusted text as one line."""
    return " ".join(printable(text).split())[:300]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


Size = Annotated[int, Field(strict=True, ge=0, lt=1 << 50)]
Text = Annotated[str, Field(max_length=1000)]
Line = Annotated[Text, AfterValidator(line)]


class TensorFacts(_Part):
    """One tensor in one case; the same one, in data and result, has one id."""

    id: Text
    dtype: Annotated[str, Field(max_length=40)]
    shape: Annotated[tuple[Size, ...], Field(max_length=64)]
    strides: tuple[Size, ...]
    count: Size | None = None
    """How many there are, of a folded entry of a dict."""

    @model_validator(mode="after")
    def _a_stride_for_each_dimension(self) -> Self:
        if len(self.shape) != len(self.strides):
            raise ValueError("a tensor needs as many strides as dimensions")
        return self


@dataclass(frozen=True)
class Description:
    """A value: its kind, and what it holds.

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


class Answer(_Part):
    """Everything that was found out about a problem."""

    cases: tuple[CaseAnswer, ...]
    names: tuple[Text, ...] = ()
    """The names of the members of the data in the code."""
    init: tuple[Described, ...] = ()
    filled: dict[Text, Line] = {}
    """For tensors of the data that may be room for the result: "yes", "no", or why this is unknown."""
    fixed: bool = False
    """Whether two seeds were seen to give the same inputs."""
    seed_bits: Annotated[int, Field(strict=True, ge=0, le=62)] = 0
    """How many bits the seeds of `generate_input` may have; 0 if only small ones will do, or this is unknown."""
    weight_bytes: Size = 0
    host_bytes: Size = 0
    """The most host memory that the process held which found this out."""


def check(raw: bytes, cases: int) -> Answer:
    """The answer about a problem with so many cases.

    Raises:
        NotImportedError: the problem was refused, or the answer is not one.
    """
    try:
        document = strict_json(raw)
        if isinstance(document, dict) and isinstance(document.get("refused"), str):
            raise NotImportedError(line(document["refused"]))
        answer = Answer.model_validate(document)
    except WireError as error:
        raise NotImportedError(f"what came out of the sandbox is not an answer ({error})") from None
    except ValidationError as error:
        why = line(error.errors(include_url=False)[0]["msg"])
        raise NotImportedError(f"what came out of the sandbox is not an answer ({why})") from None
    if len(answer.cases) != cases:
        raise NotImportedError("what came out of the sandbox is not an answer (another number of cases)")
    return answer
