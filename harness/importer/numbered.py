"""Folds entries of dicts that differ in a number, so that data with more of them in some cases has one structure.

case 1: {"w0": tensor, "w1": tensor}    becomes    {"w{index}": 2 tensors}
case 2: {"w0": tensor}                  becomes    {"w{index}": 1 tensor}
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.importer.values import Refusal
from harness.shared.call import INDEX

_NUMBER = re.compile(r"(?<![0-9])(?:0|[1-9][0-9]{0,4})(?![0-9])")
Tree = dict[str, Any]


def folded(trees: Sequence[Tree]) -> Sequence[Tree]:
    """The descriptions of the data of all cases, with every entry folded whose number of members differs between them.

    The members of such an entry are tensors that are alike in dtype, shape and strides, and numbered from 0 without a
    gap, in every case. The entry has the ids of all its members, which `renumbered` replaces by one.
    """
    counts = [Counter(each["id"] for each in _tensors(tree)) for tree in trees]
    return _folded(trees, counts)


def renumbered(data: Sequence[Tree], results: Sequence[Tree]) -> tuple[list[Tree], list[dict[int, int]]]:
    """The cases with ids in the order of their tensors, one for a folded entry; and for each case the former ids.

    Raises:
        Refusal: a result holds a member of a folded entry.
    """
    cases, former = list[Tree](), list[dict[int, int]]()
    for parts in zip(data, results, strict=True):
        given: dict[int, int] = {}
        members = {number for each in _tensors(parts[0]) for number in each.get("ids", ())}
        if any(each["id"] in members for each in _tensors(parts[1])):
            raise Refusal("its result holds a tensor of its data that is numbered, whose number differs between cases")
        told, result = (_renumbered(part, given) for part in parts)
        cases.append({"data": told, "result": result})
        former.append({new: old for old, new in given.items()})
    return cases, former


def _folded(trees: Sequence[Tree], counts: Sequence[Mapping[int, int]]) -> Sequence[Tree]:
    kinds = {kind for tree in trees for kind in tree}
    if len(kinds) != 1 or not kinds <= {"list", "tuple", "dict", "fields"}:
        return trees
    [kind] = kinds
    insides = [tree[kind] for tree in trees]
    if kind in ("list", "tuple"):
        if len({len(inside) for inside in insides}) != 1:
            return trees
        members = [_folded(each, counts) for each in zip(*insides, strict=True)]
        return [{kind: [each[number] for each in members]} for number in range(len(trees))]
    tables = _with_templates(insides, counts) if kind == "dict" else insides
    if any([*table] != [*tables[0]] for table in tables):
        return trees
    inner = {key: _folded([table[key] for table in tables], counts) for key in tables[0]}
    return [{kind: {key: each[number] for key, each in inner.items()}} for number in range(len(trees))]


def _with_templates(tables: Sequence[Tree], counts: Sequence[Mapping[int, int]]) -> Sequence[Tree]:
    if any(INDEX in key for table in tables for key in table):
        return tables  # what such a key means would not be known
    most = max((len(_NUMBER.findall(key)) for table in tables for key in table), default=0)
    for place in range(most):
        groups = [_groups(table, place) for table in tables]
        for template in groups[0]:
            keys = [group.get(template, {}) for group in groups]
            if len({len(each) for each in keys}) > 1 and all(map(_one_list, tables, keys, counts)):
                tables = [_with_template(table, template, own) for table, own in zip(tables, keys, strict=True)]
    return tables


def _groups(table: Tree, place: int) -> dict[str, dict[int, str]]:
    """The keys by what they have in common when the number at one place is left out, and then by that number."""
    groups: dict[str, dict[int, str]] = {}
    for key in table:
        numbers = [*_NUMBER.finditer(key)]
        if place < len(numbers) and INDEX not in key:
            start, end = numbers[place].span()
            groups.setdefault(key[:start] + INDEX + key[end:], {})[int(numbers[place][0])] = key
    return groups


def _one_list(table: Tree, keys: Mapping[int, str], counts: Mapping[int, int]) -> bool:
    """Whether the values of these keys are tensors that are alike, each in this place only, numbered without a gap."""
    told = [table[key].get("tensor") for key in keys.values()]
    if sorted(keys) != [*range(len(keys))] or None in told:
        return False
    alike = {(each["dtype"], *each["shape"], *each["strides"]) for each in told}
    return len(alike) == 1 and all(counts[each["id"]] == 1 for each in told)


def _with_template(table: Tree, template: str, keys: Mapping[int, str]) -> Tree:
    """The table with one entry in the place of the first of several."""
    members = [table[keys[number]]["tensor"] for number in sorted(keys)]
    entry = {"tensor": {**members[0], "count": len(members), "ids": [each["id"] for each in members]}}
    ours, made = {*keys.values()}, Tree()
    for key, each in table.items():
        if key not in ours:
            made[key] = each
        else:
            made.setdefault(template, entry)
    return made


def _renumbered(tree: Any, given: dict[int, int]) -> Any:
    """The description with an id for each tensor that is met; `given` has the new ids by the old ones."""
    if isinstance(tree, list):
        return [_renumbered(each, given) for each in tree]
    if not isinstance(tree, dict):
        return tree
    if isinstance(told := tree.get("tensor"), dict) and "shape" in told:
        kept = {key: value for key, value in told.items() if key != "ids"}
        return {"tensor": {**kept, "id": given.setdefault(told["id"], len(given))}}
    return {key: _renumbered(each, given) for key, each in tree.items()}


def _tensors(tree: Any) -> Iterator[dict[str, Any]]:
    """The descriptions of the tensors in a description, in order."""
    [(kind, inside)] = tree.items()
    if kind == "tensor":
        yield inside
    elif isinstance(inside, list | dict):
        for each in inside if isinstance(inside, list) else inside.values():
            yield from _tensors(each)
