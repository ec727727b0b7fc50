"""Writes the directory of a new problem, for organizers to fill in. Trusted; does not import torch.

`kernelmark problems new SLUG` calls it. Only the definition is missing: the lint says so until there is one, and passes
once it computes something from each element. docs/problems.md describes the next steps.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ProblemError, UsageError
from harness.problem import load
from harness.problem.prototype import prototypes
from harness.problem.schema import document
from harness.shared.call import Style
from kernelmark.project.settings import Settings
from kernelmark.text.terminal import visible

SCHEMA = "problem.schema.json"
# A deadline is named in a comment of a line that the problem's hash leaves out: as a comment of its own, which the
# author activates, it would change the hash, and begin a new table.
PROBLEM = """\
#:schema ../problem.schema.json

title = "SLUG"  # one line for people
entry = "ENTRY"
parameters = ["rows", "cols"]
visibility = "public"  # of sources; or "after_deadline", "never". The next line may be deadline = 2027-01-31T23:59:00Z

[[tensors]]
name = "x"
role = "input"
shape = ["rows", "cols"]
dtype = "float32"

[[tensors]]
name = "y"
role = "output"
shape = ["rows", "cols"]
dtype = "float32"
CALL
[cost]  # the least that any kernel must do
bytes = "2 * rows * cols * sizeof(float32)"
flops = "rows * cols"

[[tests]]
name = "one element"
params = { rows = 1, cols = 1 }

[[tests]]
name = "primes"
params = { rows = 61, cols = 257 }

[[tests]]
name = "a large tail"
params = { rows = 3, cols = 4097 }

[[tests]]
name = "large magnitudes"
params = { rows = 32, cols = 100 }
fill = { x = { kind = "normal", scale = 1e4 } }

# Participants see whether it passed, and nothing else; the sizes differ from grading to grading.
[[tests]]
name = "hidden sizes"
draw = { rows = { low = 2, high = 64 }, cols = { low = 2, high = 600 } }
hidden = true

[[benchmarks]]
name = "256 × 256"
params = { rows = 256, cols = 256 }
devices = ["cpu"]

[[benchmarks]]
name = "4096 × 4096"
params = { rows = 4096, cols = 4096 }
devices = ["cuda"]
"""

REFERENCE = '''\
"""The definition of SLUG."""

import torch


def reference(x: torch.Tensor) -> torch.Tensor:
    """y [rows, cols] of x [rows, cols], in the dtype of x: float64 for the truth, and the case's own."""
    raise NotImplementedError("compute y from x, and return it")
'''

STATEMENT = """\
# SLUG

`y[r, c] = …` for every element.

| argument | role | shape | dtype |
|---|---|---|---|
| `x` | input | `[rows, cols]` | float32 |
| `y` | output | `[rows, cols]` | float32 |

```python
PYTHON
```

```c
PROTOTYPES
```

**What is hard.** …

**Precision.** …

**What the tests try.** One element, primes, a row a little longer than a power of two, magnitudes of 10⁴.

**Where it is used.** …
"""

EXPECTED = """\
# Submissions whose outcome is known; `kernelmark problems lint SLUG` grades them.
# Add a right one, one that is wrong at the edge of a tile, and one in too low a precision.

[nothing]
file = "nothing.py"
outcome = "wrong_answer"
message = "test one element: y: "
"""


@dataclass(frozen=True)
class Template:
    """What differs between the styles of a call: `call` is a table of problem.toml, `nothing` a wrong submission."""

    call: str
    python: str
    nothing: str
    entry: str = "SLUG"


TEMPLATES: dict[Style, Template] = {
    "writes": Template(
        call="",
        python="def SLUG(x, y): ...  # writes into y",
        nothing='''\
"""Wrong: writes nothing."""


def SLUG(x, y):
    pass
''',
    ),
    "returns": Template(
        call="""
[call]
style = "returns"  # SLUG(x) -> y
""",
        python="def SLUG(x): ...  # returns y",
        nothing='''\
"""Wrong: returns zeros, whatever x is."""

import torch


def SLUG(x):
    return torch.zeros_like(x)
''',
    ),
    "module": Template(
        entry="Model",
        call="""
[call]
style = "module"  # Model(cols)(x) -> y
init = [{ param = "cols" }]
""",
        python="""\
class Model(torch.nn.Module):
    def __init__(self, cols): ...
    def forward(self, x): ...  # returns y""",
        nothing='''\
"""Wrong: returns zeros, whatever x is."""

import torch


class Model(torch.nn.Module):
    def __init__(self, cols):
        super().__init__()

    def forward(self, x):
        return torch.zeros_like(x)
''',
    ),
    "tree": Template(
        call="""
[call]
style = "tree"  # SLUG((x, y)) -> y
data = { tuple = ["x", "y"] }
""",
        python="def SLUG(data): ...  # data is (x, y); writes into y, and returns it",
        nothing='''\
"""Wrong: returns y as it was."""


def SLUG(data):
    x, y = data
    return y
''',
    ),
}

FILES = {
    "problem.toml": PROBLEM,
    "reference.py": REFERENCE,
    "README.md": STATEMENT,
    "samples/expected.toml": EXPECTED,
    "samples/nothing.py": "NOTHING",
}


def write(settings: Settings, slug: str, style: Style = "writes") -> list[Path]:
    """Write the files of a problem that does not exist yet, all or none; returns their paths.

    The schema that the first line of `problem.toml` names is written beside the problems, unless it is there.

    `style` says how the problem's submissions are called.

    Raises:
        UsageError: the slug is not valid or is taken, or its directory cannot be written.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", slug):
        remedy = "use up to 64 lower-case letters, digits and '_', starting with a letter"
        raise UsageError(f"`{visible(slug)}`", "is not a valid slug", remedy)
    directory = settings.locate("problems") / slug
    new = [directory / name for name in FILES]
    try:
        if directory.exists():
            raise UsageError(str(directory), "exists already", "choose another slug, or remove it")
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".new-") as folder:
            made = Path(folder) / slug
            for name, text in FILES.items():
                (made / name).parent.mkdir(parents=True, exist_ok=True)
                (made / name).write_text(_filled(text, slug, TEMPLATES[style]), "utf-8")
            problem = load(made)  # a slug can still be a C++ keyword, or have a meaning in expressions
            each = [f"{of};  // .{suffix}" for suffix in ("cu", "cpp") for of in prototypes(problem, suffix).values()]
            statement = made / "README.md"
            statement.write_text(statement.read_text("utf-8").replace("PROTOTYPES", "\n".join(each)), "utf-8")
            schema = directory.parent / SCHEMA
            if not schema.exists():
                Path(folder, SCHEMA).write_text(document(), "utf-8")
                Path(folder, SCHEMA).rename(schema)
                new.append(schema)
            made.rename(directory)
    except ProblemError as error:
        raise UsageError(slug, f"is not a valid slug ({error.what})") from None
    except OSError as error:
        raise UsageError(str(directory), f"cannot be written ({error.strerror})", "make it writable") from None
    return new


def _filled(text: str, slug: str, template: Template) -> str:
    """A file's text for one problem; what is put in may hold the slug itself."""
    places = {"CALL": template.call, "PYTHON": template.python, "NOTHING": template.nothing, "ENTRY": template.entry}
    return re.sub(r"\b(CALL|PYTHON|NOTHING|ENTRY)\b", lambda found: places[found[1]], text).replace("SLUG", slug)
