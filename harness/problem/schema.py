"""The JSON Schema of `problem.toml`, for editors that complete and check it while it is written; trusted, no torch.

`python -m harness.problem.schema` prints it; `problems/problem.schema.json` is that output, and a test fails when it is
out of date. It has the keys and their types; only `load` checks that keys agree with each other.
"""

from __future__ import annotations

import json
from typing import Any

from harness.problem.spec import ProblemFile


def json_schema() -> dict[str, Any]:
    """The schema, in draft 2020-12."""
    schema = ProblemFile.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "problem.toml"}


def document() -> str:
    """The schema as the text of its file."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(document(), end="")
