"""The keys of `problem.toml`, as immutable models. Trusted; imports no torch.

The models check single keys, `checks` checks several keys together, and `resolve` computes the numbers of a case.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from harness.marks import MarksRule
from harness.problem.expression import parse
from harness.problem.fill_spec import Fill
from harness.problem.foreign_files import ForeignReference
from harness.problem.keys import (
    CaseName,
    DeviceKinds,
    Flag,
    Name,
    Option,
    Real,
    Seconds,
    SizeExpression,
    Spec,
    Tag,
    Title,
    Whole,
)
from harness.problem.schedule import Schedule
from harness.problem.tolerance import Tolerance
from harness.shared.call import Form, Style
from harness.shared.call import check as check_form
from harness.shared.layouts import MIN_DIMENSIONS, OtherLayout

TensorRole = Literal["input", "output", "inout"]
Placement = Literal["device", "host"]

_GIB = 1 << 30
_MIB = 1 << 20


class TensorSpec(Spec):
    """One tensor argument, or a list of tensors; specifications are in the order of the arguments."""

    name: Name = Field(description="the argument's name in Python and C")
    role: TensorRole = Field(description="input: read only; output: written; inout: read and written in place")
    shape: tuple[SizeExpression, ...] = Field(
        max_length=8, description="one expression a dimension; none for a single number"
    )
    strides: tuple[SizeExpression, ...] | None = Field(
        default=None, description="in elements, one a dimension; by default contiguous and row-major"
    )
    layouts: tuple[OtherLayout, ...] = Field(
        default=(), description="outputs: what a returned tensor may be besides row-major, without a copy"
    )
    dtype: str = Field(description="an element type, or the name of a parameter that holds one")
    fill: Fill = Field(default=Fill(kind="normal"), description="inputs and inouts: the elements before the call")
    memory: Placement = Field(
        default="device", description="host, for inputs: on a GPU it is in the host's memory, which kernels can read"
    )
    count: SizeExpression | None = Field(default=None, description="makes it a list; `shape` may then use `index`")
    present: SizeExpression | None = Field(
        default=None, description="inputs: a case where this is 0 has no such tensor, and passes None or a null pointer"
    )

    @model_validator(mode="after")
    def _keys_suit_each_other(self) -> Self:
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise ValueError(f"`strides` has {len(self.strides)} entries, and `shape` {len(self.shape)}: give as many")
        if self.layouts and (self.role != "output" or self.strides is not None or self.count is not None):
            raise ValueError("only an output without `strides` and `count` has `layouts`: remove one of them")
        for layout in self.layouts:
            if len(self.shape) < MIN_DIMENSIONS[layout]:
                raise ValueError(f"{layout} needs {MIN_DIMENSIONS[layout]} dimensions: remove it from `layouts`")
        if self.present is not None and self.role != "input":
            raise ValueError(f"an {self.role} is in every call: remove `present`, which only an input can have")
        if self.memory == "host" and self.role != "input":
            raise ValueError(f"an {self.role} is in the device's memory: remove `memory`, or use role 'input'")
        if self.role == "output" and "fill" in self.model_fields_set:
            what = "an output has no `fill`, it is poisoned before every call"
            raise ValueError(f"{what}: remove it, or use role 'inout'")
        return self


class ScalarSpec(Spec):
    """One number that is passed by value, after the tensors."""

    name: Name = Field(description="the argument's name in Python and C")
    dtype: Literal["int64", "float64"] = Field(description="int64_t or double in C, int or float in Python")
    value: Whole | Real | str = Field(
        description="a number, or an expression over the parameters; with `/`, `sqrt` and decimals for float64"
    )

    @model_validator(mode="after")
    def _whole_when_int64(self) -> Self:
        if self.dtype == "int64" and isinstance(self.value, float):
            raise ValueError("an int64 scalar needs a whole number")
        if isinstance(self.value, str):
            parse(self.value, real=self.dtype == "float64")
        return self


class Range(Spec):
    """A range of whole numbers, from which one is drawn for each grading."""

    low: Whole = Field(description="the least")
    high: Whole = Field(description="the greatest")
    multiple_of: Whole = Field(default=1, gt=0, description="only multiples of this")

    @model_validator(mode="after")
    def _something_to_draw(self) -> Self:
        if self.values.start + self.multiple_of > self.high:
            raise ValueError("holds fewer than two numbers: widen it, or give the number in `params`")
        return self

    @property
    def values(self) -> range:
        """All numbers of the range, in order."""
        return range(-(-self.low // self.multiple_of) * self.multiple_of, self.high + 1, self.multiple_of)


class Case(Spec):
    """One set of parameters with which the kernel runs, or the ranges from which they are drawn."""

    name: CaseName = Field(description="unique within the problem")
    params: dict[str, Whole | str] = Field(
        default={}, description="a value for every parameter that is not drawn: a whole number, or a dtype"
    )
    draw: dict[str, Range] = Field(
        default={}, max_length=6, description="tests only: parameters whose values are drawn anew for each grading"
    )
    devices: DeviceKinds = Field(default=("cpu", "cuda"), min_length=1, description="where the case runs")
    hidden: Flag = Field(default=False, description="tests only: participants see the outcome, no values")
    memory_gib: Whole | None = Field(
        default=None, gt=0, description="tests for cuda only: left out on a GPU that has less memory of its own"
    )
    weight: Real = Field(default=1.0, gt=0, le=1000, description="benchmarks only: how much it counts in the score")
    fill: dict[str, Fill] = Field(default={}, description="fills of this case, by tensor, in place of the tensor's own")
    options: dict[Option, Flag | Whole | Real | str] = Field(
        default={}, description="what `generate` gets by name besides the parameters"
    )

    def drawn(self, rng: random.Random) -> Case:
        """The case with random values for its ranges; the case itself if it has none."""
        ranges = {name: drawn.values for name, drawn in self.draw.items()}
        return self._with({name: rng.randrange(r.start, r.stop, r.step) for name, r in ranges.items()})

    def extremes(self) -> Iterator[Case]:
        """The case with all combinations of the least and greatest values of its ranges."""
        ends = [(drawn.values[0], drawn.values[-1]) for drawn in self.draw.values()]
        return (self._with(dict(zip(self.draw, chosen, strict=True))) for chosen in itertools.product(*ends))

    def _with(self, values: dict[str, int]) -> Case:
        return self.model_copy(update={"params": {**self.params, **values}, "draw": {}}) if values else self


class Cost(Spec):
    """The least work that any kernel must do, for the roofline."""

    bytes: SizeExpression = Field(
        description="bytes that must cross the memory bus: every input once, every output once"
    )
    flops: SizeExpression = Field(description="floating-point operations")

    @property
    def of_data(self) -> bool:
        """Whether it depends on the results of `generate`."""
        return "sum_of" in f"{self.bytes} {self.flops}"


class BaselineSpec(Spec):
    """A kernel in the problem's reference folder that computes something else. It is timed, but not checked."""

    name: Name = Field(description="its file in reference/<slug>/, without the suffix")
    kind: Literal["dense"] = Field(description="dense: what the problem replaces, of the same sizes in a plain dtype")
    entry: Name = Field(description="the function that the file defines")
    tensors: tuple[TensorSpec, ...] = Field(min_length=1, description="its arguments, over the problem's parameters")
    scalars: tuple[ScalarSpec, ...] = Field(default=(), description="numbers passed after the tensors")


class CallSpec(Spec):
    """How a Python submission is called; `harness.shared.call` explains forms. CUDA and C++ write their outputs."""

    style: Style = Field(
        default="writes",
        description="writes: the function fills the outputs that it is given; returns: it returns them; module: the "
        "entry is a class, whose instance is called and returns them; tree: it gets one value of the form `data`",
    )
    init: tuple[Form, ...] = Field(default=(), description="module: forms of the constructor's arguments")
    arguments: tuple[Form, ...] = Field(default=(), description="returns, module: forms; default: inputs, then scalars")
    data: Form = Field(default=None, description="tree: the form of the one argument")
    result: Form = Field(default=None, description="the form of what is returned; default: the outputs, in order")

    @model_validator(mode="after")
    def _only_what_the_style_uses(self) -> Self:
        used = {"writes": set(), "returns": {"arguments", "result"}, "tree": {"data", "result"}}
        used["module"] = {"init", "arguments", "result"}
        for key in sorted(self.model_fields_set - used[self.style] - {"style"}):
            raise ValueError(f"style {self.style!r} does not use `{key}`")
        if self.style == "tree" and self.data is None:
            raise ValueError("style 'tree' needs `data`")
        for form in (*self.init, *self.arguments, self.data, self.result):
            if form is not None:
                check_form(form)
        return self


class Limits(Spec):
    """How much a submission may use; every limit is above zero."""

    # nvcc takes about a minute for torch's headers. KernelBench gives as much to a whole evaluation.
    build_s: Seconds = Field(default=180.0, description="compiling or importing the submission")
    call_s: Seconds = Field(default=30.0, description="one test case, all answers of the runner together")
    time_s: Seconds = Field(default=60.0, description="the whole timing of one benchmark case")
    memory_bytes: Whole = Field(default=8 * _GIB, gt=256 * _MIB - 1, description="host memory")
    processes: Whole = Field(default=256, gt=0, description="processes and threads")
    disk_bytes: Whole = Field(default=512 * _MIB, gt=0, description="each of the sandbox's private file systems")
    output_bytes: Whole = Field(default=_MIB, gt=0, description="what it may print")


class HandInSpec(Spec):
    """What organizers expect of the files that are handed in."""

    file: str = Field(
        pattern=r"^[^/]+\.(py|cu|cpp)$", description="what a course calls the kernel's file, of several: kernel.py"
    )


class ProblemFile(Schedule):
    """A `problem.toml`, key by key; the schedule is one of its parts."""

    title: Title = Field(min_length=1, max_length=120, description="one line for people")
    entry: Name = Field(description="the function that a submission defines")
    parameters: tuple[Name, ...] = Field(min_length=1, description="what a case chooses; C passes the numbers in order")
    tensors: tuple[TensorSpec, ...] = Field(min_length=1, description="the arguments, in their order")
    scalars: tuple[ScalarSpec, ...] = Field(default=(), description="numbers passed after the tensors")
    call: CallSpec = Field(default=CallSpec(), description="how Python submissions are called")
    foreign: ForeignReference | None = Field(default=None, description="a reference in the form of another project")
    cost: Cost = Field(description="minimum bytes and operations")
    tolerance: Tolerance = Field(default=Tolerance(), description="the error budget")
    limits: Limits = Field(default=Limits(), description="what a submission may use")
    baselines: tuple[BaselineSpec, ...] = Field(
        default=(), description="kernels to compare with that compute something else; at the end of the file"
    )
    tests: tuple[Case, ...] = Field(min_length=1, description="graded for correctness")
    benchmarks: tuple[Case, ...] = Field(min_length=1, description="graded for speed")
    timing: Literal["replayed", "calls"] = Field(
        default="replayed",
        description="what ranks on a GPU: replayed calls; or plain calls, with their work on the host, for problems "
        "whose calls can never be replayed",
    )
    tags: tuple[Tag, ...] = Field(default=(), max_length=8, description="what it is about, for lists of problems")
    visibility: Literal["public", "after_deadline", "never"] = Field(
        default="public", description="when submitted sources may be shown"
    )
    submission: HandInSpec | None = Field(default=None, description="what organizers expect of the files of a course")
    marks: MarksRule | None = Field(default=None, description="how a course marks what is handed in")


def json_schema() -> dict[str, Any]:
    """The JSON Schema of `problem.toml`, draft 2020-12: its keys and their types, not whether they agree."""
    schema = ProblemFile.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "problem.toml"}


def schema_document() -> str:
    """The text of `problems/problem.schema.json`, by which editors complete and check a problem.toml."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


class PrivateFile(Spec):
    """A file of private cases, key by key."""

    salt: str = Field(
        min_length=32,
        description="32 or more random characters, as of `openssl rand -hex 16`: the file's hash is published, and "
        "without them the cases could be guessed by it",
    )
    tests: tuple[Case, ...] = Field(min_length=1, description="as in problem.toml; always hidden")


class Private(Spec):
    """The private tests of a problem, which are its last `cases` tests: from `file`, and the last `final` of them from
    `final_file`.
    """

    file: Path
    final_file: Path
    """The file of the tests that count only once the problem is closed."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    cases: int = Field(gt=0)
    final: int = Field(default=0, ge=0)


class ProblemSpec(ProblemFile):
    """A problem as read from its folder; `Problem` also guarantees that its keys agree with each other."""

    slug: str
    directory: Path
    sha256: str = Field(
        pattern=r"^[0-9a-f]{64}$",
        description="over problem.toml, less tags, visibility and schedule, reference.py, and private files",
    )
    private: Private | None = None
    has_reference: bool = Field(default=True, exclude=True)
    """False for the problem of a baseline that computes something else."""

    @property
    def private_tests(self) -> tuple[Case, ...]:
        """The tests from the private files, the final ones last."""
        return self.tests[len(self.tests) - self.private.cases :] if self.private else ()

    @property
    def final_tests(self) -> tuple[Case, ...]:
        """The private tests that count once the problem is closed; none before that."""
        return self.tests[len(self.tests) - self.private.final :] if self.private else ()
