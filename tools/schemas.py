"""Writes docs/schemas: the JSON Schema of every document that a command prints for programs, or reads: `make schemas`.

From 0.1.0 on fields are only added. Refused is a change that removes a field, makes it optional, or gives it another
type: `lost` lists such fields. A document that a command reads may gain types and optional fields, and lose nothing.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, get_origin

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from harness.problem import Problem
from harness.verdict import Check, Verdict
from harness.verdict.roofline import Calibration
from kernelmark.authoring.lint import LintDocument
from kernelmark.commands.cli import CacheDocument
from kernelmark.commands.exporting import ExportDocument
from kernelmark.commands.login import ServerDocument
from kernelmark.commands.look import DiffDocument
from kernelmark.course.listing import SubmittedDocument
from kernelmark.course.regrade import DueDocument
from kernelmark.course.report import GradedDocument
from kernelmark.diagnostics.audits import AuditDocument
from kernelmark.diagnostics.doctor import Diagnostic
from kernelmark.diagnostics.selftest import SelfTestDocument
from kernelmark.grading.fleet.cluster.dispatcher import FleetDocument
from kernelmark.grading.fleet.lines import JobLine, ResultLine
from kernelmark.project.documents import VERSION, ErrorDocument
from kernelmark.record.importing import ImportedLedger
from kernelmark.server.record.repairing import LedgerRepair
from kernelmark.service.accounts import NewToken, Tokens
from kernelmark.service.organizing import Accounts, Audit, Invitations, NewInvitations, Pauses, Pins, Workers
from kernelmark.service.submissions import QueueDocument, SubmissionStatus
from kernelmark.text.problem import ProblemNotes
from kernelmark.text.problems import ProblemList
from kernelmark.text.standings import RunSummary
from kernelmark.text.words import Word
from leaderboard.record.inspection import Inspection
from leaderboard.record.moderation import Moderation, RecordedEvent
from leaderboard.record.similar import Pair
from leaderboard.standings.ranking import Table

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FOLDER = Path(__file__).resolve().parent.parent / "docs" / "schemas"


DOCUMENTS: dict[str, Any] = {
    "accounts": Accounts,
    "acts": Audit,
    "audit": list[AuditDocument],
    "brakes": Pauses,
    "board": list[Table],
    "cache": CacheDocument,
    "calibration": Calibration,
    "check": Check,
    "diff": DiffDocument,
    "doctor": list[Diagnostic],
    "due": list[DueDocument],
    "explain": list[Word],
    "error": ErrorDocument,
    "events": list[RecordedEvent],
    "export": ExportDocument,
    "fleet": FleetDocument,
    "grade": list[GradedDocument],
    "handins": list[SubmittedDocument],
    "import-ledger": list[ImportedLedger],
    "invitations": Invitations,
    "job-result": ResultLine,
    "lint": list[LintDocument],
    "new-invitations": NewInvitations,
    "moderation": Moderation,
    "pins": Pins,
    "problem": (Problem, ProblemNotes),
    "problems": ProblemList,
    "queue": QueueDocument,
    "repair-ledger": list[LedgerRepair],
    "runs": list[RunSummary],
    "self-test": SelfTestDocument,
    "servers": list[ServerDocument],
    "similar": list[Pair],
    "submission": SubmissionStatus,
    "submissions": list[SubmissionStatus],
    "token": NewToken,
    "tokens": Tokens,
    "verdict": Verdict,
    "verify": list[Inspection],
    "workers": Workers,
}
"""The type of each document, by its name; a list is printed as its `items`, and two as one with the fields of both."""

INPUTS: dict[str, Any] = {"job": JobLine}
"""The type of each document that a command reads."""


class Printed(GenerateJsonSchema):
    """The schema of what is printed: what may be null may also be left out."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        """Whether it is always printed."""
        return super().field_is_required(field, total) and field["schema"]["type"] != "nullable"

    def field_title_should_be_set(self, schema: Any) -> bool:
        """No: the name of a field says as much."""
        return False


def schema(name: str) -> dict[str, Any]:
    """The schema of a document; that of a printed one allows fields of later versions."""
    if name in INPUTS:
        made = TypeAdapter(INPUTS[name]).json_schema(schema_generator=Printed)
        return {"$schema": DIALECT, **made, "title": f"kernelmark {name}"}
    kind = DOCUMENTS[name]
    head = {
        "$schema": {"const": f"docs/schemas/{name}.json", "type": "string"},
        "version": {"const": VERSION, "type": "integer"},
    }
    whole: dict[str, Any] = {
        "$schema": DIALECT,
        "title": f"kernelmark {name}",
        "type": "object",
        "properties": {**head},
        "required": [*head],
        "$defs": {},
    }
    for part in kind if isinstance(kind, tuple) else (kind,):
        made = TypeAdapter(part).json_schema(mode="serialization", schema_generator=Printed)
        whole["$defs"] |= made.pop("$defs", {})
        if get_origin(part) is list:
            made = {"properties": {"items": made}, "required": ["items"]}
        whole["properties"] |= {field: part for field, part in made["properties"].items() if field not in head}
        whole["required"] += [field for field in made.get("required", ()) if field not in head]
    opened: dict[str, Any] = _open(whole)
    return opened


def _open(node: Any) -> Any:
    """A part of a schema that allows additional properties."""
    if isinstance(node, dict):
        return {key: _open(value) for key, value in node.items() if (key, value) != ("additionalProperties", False)}
    return [_open(value) for value in node] if isinstance(node, list) else node


def lost(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """A line for each field of the old schema on which a program can no longer rely with the new one."""
    before, after = _fields(old), _fields(new)
    return [
        f"{path}: was {' or '.join(sorted(said))}, now {' or '.join(sorted(after.get(path, {'gone'})))}"
        for path, said in before.items()
        if not after.get(path, {"gone"}) <= said
    ]


def refused(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """A line for each field of an input's new schema that refuses what the old one allows."""
    before, after = _fields(old), _fields(new)
    gone = [
        f"{path}: was {' or '.join(sorted(said))}, now {' or '.join(sorted(after.get(path, {'gone'})))}"
        for path, said in before.items()
        if not said <= after.get(path, set())
    ]
    return gone + [f".{name}: is now required" for name in new["required"] if name not in old["required"]]


def faults(name: str) -> list[str]:
    """What the committed schema of a document, if there is one, promises and the present type does not keep."""
    file = FOLDER / f"{name}.json"
    compare = refused if name in INPUTS else lost
    return compare(json.loads(file.read_text(encoding="utf-8")), schema(name)) if file.exists() else []


def _fields(whole: dict[str, Any]) -> dict[str, set[str]]:
    """Every field by its path, with the types that it may have, and "absent" if it is not always printed."""
    found = defaultdict[str, set[str]](set)

    def visit(node: dict[str, Any], path: str, inside: tuple[str, ...] = ()) -> None:
        if (name := node.get("$ref", "").rpartition("/")[2]) and name not in inside:
            visit(whole["$defs"][name], path, (*inside, name))
        for part in (*node.get("anyOf", ()), *node.get("oneOf", ())):
            visit(part, path, inside)
        found[path].update([node["type"]] if "type" in node else ())
        within = [node.get("items"), node.get("additionalProperties"), *node.get("prefixItems", ())]
        for part in within:
            if isinstance(part, dict):
                visit(part, f"{path}[]", inside)
        for key, part in node.get("properties", {}).items():
            found[f"{path}.{key}"].update(() if key in node.get("required", ()) else ["absent"])
            visit(part, f"{path}.{key}", inside)

    visit(whole, "")
    return found


def text(name: str) -> str:
    """A schema as its file holds it."""
    return json.dumps(schema(name), indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write every schema, or none if one of them would lose something."""
    FOLDER.mkdir(exist_ok=True)
    if broken := [f"{name}.json: {fault}" for name in (*DOCUMENTS, *INPUTS) for fault in faults(name)]:
        sys.exit("\n".join((*broken, "fields are only added")))
    for name in (*DOCUMENTS, *INPUTS):
        (FOLDER / f"{name}.json").write_text(text(name), encoding="utf-8")


if __name__ == "__main__":
    main()
