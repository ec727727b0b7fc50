"""How the call styles of problem.toml become forms for the runner, a line for people, or an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import ProblemError
from harness.problem import Problem
from harness.problem.signature import prototypes
from harness.shared import call as calls
from harness.shared.call import Forms
from tests.grading import written

TOML = """
title = "Scale rows"
entry = "scale"
parameters = ["rows", "cols", "dtype"]
tensors = [
    { name = "x", role = "input", shape = ["rows", "cols"], dtype = "dtype" },
    { name = "state", role = "inout", shape = ["cols"], dtype = "float32" },
    { name = "y", role = "output", shape = ["rows", "cols"], dtype = "dtype" },
    { name = "order", role = "output", shape = ["cols"], dtype = "int64" },
]
scalars = [{ name = "alpha", dtype = "float64", value = "1 / cols" }]
cost = { bytes = "rows", flops = "0" }
tests = [{ name = "small", params = { rows = 3, cols = 4, dtype = "float16" } }]
benchmarks = [{ name = "large", params = { rows = 300, cols = 8, dtype = "float16" } }]
"""
MODULE = 'style = "module"\ninit = [{ param = "cols" }, "alpha", { text = "mean" }]\narguments = ["x", ["state"]]'
TREE = """style = "tree"
data = { tuple = ["x", { dict = { s = "state", a = "alpha" } }, { fields = { kind = { param = "dtype" } } }, "y"] }
result = "order"
"""


def made(folder: Path, call: str = "", toml: str = TOML) -> Problem:
    toml += f"[call]\n{call}\n" if call else ""
    return written(folder / "scale", toml, "def reference(x, state, alpha): ...\n")


@pytest.mark.parametrize(
    ("call", "signature", "forms"),
    [
        ("", "scale(x, state, y, order, alpha)", Forms()),
        ('style = "returns"', "scale(x, state, alpha) -> (y, order)",
         Forms((), ("x", "state", 0.25), {"tuple": ["y", "order"]})),
        (MODULE, "scale(cols, alpha, 'mean')(x, [state]) -> (y, order)",
         Forms((4, 0.25, {"text": "mean"}), ("x", ["state"]), {"tuple": ["y", "order"]})),
        (
            TREE,
            "scale((x, {'s': state, 'a': alpha}, SimpleNamespace(kind=dtype), y)) -> order",
            Forms(
                arguments=(
                    {
                        "tuple": [
                            "x",
                            {"dict": {"s": "state", "a": 0.25}},
                            {"fields": {"kind": {"dtype": "float16"}}},
                            "y",
                        ]
                    },
                ),
                result="order",
            ),
        ),
    ],
)  # fmt: skip
def test_a_style_has_its_signature_and_its_forms(call: str, signature: str, forms: Forms, tmp_path: Path) -> None:
    problem = made(tmp_path, call)
    assert problem.signature == signature
    assert problem.resolve(problem.tests[0]).forms == forms


def test_where_all_is_in_place_nothing_is_returned_and_one_output_is_no_tuple(tmp_path: Path) -> None:
    one = TOML.replace('"order", role = "output"', '"order", role = "inout", fill = { kind = "zeros" }')
    assert made(tmp_path, 'style = "returns"', one).signature == "scale(x, state, order, alpha) -> y"
    none = one.replace('"y", role = "output"', '"y", role = "inout"')
    (tmp_path / "none").mkdir()
    assert made(tmp_path / "none", 'style = "returns"', none).signature == "scale(x, state, y, order, alpha) -> None"


def test_a_form_is_written_as_python() -> None:
    form = {"tuple": [{"tuple": ["x"]}, [1, 2.5, True], {"none": True}, {"dtype": "int8"}, {"text": "a'b"}]}
    assert calls.written(form) == '((x,), [1, 2.5, True], None, torch.int8, "a\'b")'


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('style = "return"', "key `call.style`: should be 'writes', 'returns', 'module' or 'tree'; it is 'return'"),
        ('style = "tree"', "key `call`: style 'tree' needs `data`"),
        ('style = "returns"\ndata = "x"', "key `call`: style 'returns' does not use `data`"),
        ('style = "returns"\narguments = ["x", "z"]', "key `call.arguments[1]` names 'z', which does not exist"),
        ('style = "returns"\nresult = "state"', "key `call.result` names 'state', which is no output"),
        ('style = "returns"\nresult = ["y", "y", "order"]', "key `call.result` names an output twice"),
        ('style = "returns"\nresult = "y"', "key `call.result` leaves out the output 'order', which no call could"),
        ('style = "returns"\narguments = ["x"]', "key `call` leaves out the inout 'state', which no call could write"),
        ('style = "tree"\ndata = { tuple = ["state", { dict = { "x{index}" = "x" } }] }',
         "key `call.data` has the key 'x{index}', but 'x' is no list of tensors; name one with `count`"),
        ('style = "tree"\ndata = { dict = { "x{index}" = 3 } }',
         "key `call`: .dict.x{index} is an entry for each member of a list, and must be a list's name"),
        ('style = "tree"\ndata = { dict = { "x{index}" = "x", "x1" = 3 } }',
         "key `call`: .dict.x{index} and the key 'x1' both name the entry 'x1'"),
        ('style = "tree"\ndata = { dict = { "x{index}" = "x", "x1{index}" = "x" } }',
         "key `call`: .dict.x{index} and the key 'x1{index}' both name the entry 'x10'"),
        ('style = "returns"\nresult = { dict = { "y{index}" = "y", o = "order" } }',
         "key `call.result` has the key 'y{index}'; name the list itself: only arguments have"),
        ('style = "module"\ninit = ["x"]', "key `call.init[0]` names the tensor 'x'"),
        ('style = "returns"\narguments = ["x", "state", inf]', "key `call`: it is not finite"),
        ('style = "returns"\narguments = ["x", "state", 99999999999999999999]', "is a whole number of more than 64"),
        (f'style = "returns"\narguments = ["x", "state", {{ text = "{40_000 * "a"}" }}]',
         "bytes in tests[0], as JSON; its forms may take 32,768"),
    ],
)  # fmt: skip
def test_an_invalid_call_gets_one_line(call: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ProblemError) as refused:
        made(tmp_path, call)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("present", ["", ', present = "rows"'])
def test_a_key_with_index_names_a_list_that_every_case_has(present: str, tmp_path: Path) -> None:
    toml = TOML.replace('name = "x", role = "input"', f'name = "x", role = "input", count = "rows"{present}')
    call = 'style = "tree"\ndata = { tuple = ["state", { dict = { "x{index}" = "x" } }] }'
    if present:
        with pytest.raises(ProblemError, match=r"has the key 'x\{index\}', but 'x' has `present`"):
            made(tmp_path, call, toml)
    else:
        expected = "scale((state, {**{f'x{index}': each for index, each in enumerate(x)}})) -> (y, order)"
        assert made(tmp_path, call, toml).signature == expected


def test_a_foreign_file_is_not_called_as_the_submission(tmp_path: Path) -> None:
    foreign = '[foreign]\nform = "gpu-mode"\n[[foreign.files]]\nname = "submission.py"\npath = "x"\nsha256 = "'
    with pytest.raises(ProblemError, match=r"submission\.py is the name of the submission's own file"):
        made(tmp_path, toml=f'{TOML}{foreign}{64 * "0"}"\n')


def test_the_stream_has_a_name_that_no_argument_has(tmp_path: Path) -> None:
    [usual] = prototypes(made(tmp_path / "usual"), "cu").values()
    [other] = prototypes(made(tmp_path / "other", toml=TOML.replace('"state"', '"stream"')), "cu").values()
    assert usual.endswith(", double alpha, int64_t rows, int64_t cols, cudaStream_t stream)")
    assert "float* stream, " in other
    assert other.endswith(", cudaStream_t stream_)")
