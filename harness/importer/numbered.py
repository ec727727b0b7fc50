"""Folds entries of dicts that differ only in a number, so that data with more of them in some cases has one structure.

case 1: {"w0": tensor, "w1": tensor}    becomes    {"w{index}": 2 tensors}
case 2: {"w0": tensor}                  becomes    {"w{index}": 1 tensor}
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from harness.importer.values import ImportRefused, Tree, tensor_facts
from harness.shared.call import INDEX

_NUMBER = re.compile(r"(?<![0-9])(?:0|[1-9][0-9]{0,4})(?![0-9])")


def folded(trees: Sequence[Tree]) -> list[Tree]:
    """The descriptions of the data of all cases, with entries folded if their number differs between cases.

    In every case, the members of a folded entry are tensors with the same dtype, shape and strides, which occur only
    there and are numbered from 0 without gaps. The id of the entry is that of its first member.
    """
    return _folded(trees, [Counter(facts["id"] for facts in tensor_facts(tree)) for tree in trees])


def check_result(result: Tree, data: Tree, folded_data: Tree) -> None:
    """Check that the result does not contain a member of a folded entry of the data.

    Raises:
        ImportRefused: it does.
    """
    single = {facts["id"] for facts in tensor_facts(folded_data) if "count" not in facts}
    members = {facts["id"] for facts in tensor_facts(data)} - single
    if any(facts["id"] in members for facts in tensor_facts(result)):
        raise ImportRefused(
            "its result holds a tensor of its data that is numbered, whose number differs between cases"
        )


def _folded(trees: Sequence[Tree], counts: Sequence[Mapping[str, int]]) -> list[Tree]:
    kinds = {kind for tree in trees for kind in tree}
    if len(kinds) != 1 or not kinds <= {"list", "tuple", "dict", "fields"}:
        return [*trees]
    [kind] = kinds
    listed = kind in ("list", "tuple")
    tables: Sequence[dict[Any, Any]] = [dict(enumerate(tree[kind])) if listed else tree[kind] for tree in trees]
    if kind == "dict":
        tables = _with_templates(tables, counts)
    if any([*table] != [*tables[0]] for table in tables):
        return [*trees]
    inner = {key: _folded([table[key] for table in tables], counts) for key in tables[0]}
    folded_tables = [{key: over_cases[number] for key, over_cases in inner.items()} for number in range(len(trees))]
    return [{kind: [*table.values()] if listed else table} for table in folded_tables]


def _with_templates(tables: Sequence[Tree], counts: Sequence[Mapping[str, int]]) -> Sequence[Tree]:
    if any(INDEX in key for table in tables for key in table):
        return tables  # such a key would be ambiguous
    most = max((len(_NUMBER.findall(key)) for table in tables for key in table), default=0)
    for place in range(most):
        groups = [_groups(table, place) for table in tables]
        for template in groups[0]:
            keys = [group.get(template, {}) for group in groups]
            if len({len(own) for own in keys}) > 1 and all(map(_is_list, tables, keys, counts)):
                tables = [_with_template(table, template, own) for table, own in zip(tables, keys, strict=True)]
    return tables


def _groups(table: Tree, place: int) -> dict[str, dict[int, str]]:
    """Group the keys by their text without the number at one place, and then by that number."""
    groups: dict[str, dict[int, str]] = {}
    for key in table:
        numbers = [*_NUMBER.finditer(key)]
        if place < len(numbers) and INDEX not in key:
            start, end = numbers[place].span()
            groups.setdefault(key[:start] + INDEX + key[end:], {})[int(numbers[place][0])] = key
    return groups


def _is_list(table: Tree, keys: Mapping[int, str], counts: Mapping[str, int]) -> bool:
    """Whether the values of these keys are similar tensors that occur only there, numbered without gaps."""
    members = [table[key].get("tensor") for key in keys.values()]
    if sorted(keys) != [*range(len(keys))] or None in members:
        return False
    alike = {(facts["dtype"], *facts["shape"], *facts["strides"]) for facts in members}
    return len(alike) == 1 and all(counts[facts["id"]] == 1 for facts in members)


def _with_template(table: Tree, template: str, keys: Mapping[int, str]) -> Tree:
    """The table with several entries replaced by one, at the place of the first."""
    entry = {"tensor": {**table[keys[0]]["tensor"], "count": len(keys)}}
    replaced, made = {*keys.values()}, Tree()
    for key, value in table.items():
        if key in replaced:
            made.setdefault(template, entry)
        else:
            made[key] = value
    return made
