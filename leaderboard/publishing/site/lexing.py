"""Pygments' lexers, several times as fast: they try only the rules that can match at the next character.

A lexer tries the rules of its state in turn, some forty for each token of Python, and most cannot match there. Which
characters a match can begin with follows from the parsed expression. A rule is only left out where it is certain not
to match, so the tokens are the same. Trusted code over hostile text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any

from pygments.lexer import Lexer, RegexLexer

Rule = tuple[Any, Any, Any]
"""A function that matches at a place in a text, what a match means, and the state after it."""

_ASCII = frozenset(map(chr, range(128)))
_NO_WIDTH = {_constants.AT, _constants.ASSERT, _constants.ASSERT_NOT}
_ONE = {_constants.LITERAL, _constants.NOT_LITERAL, _constants.IN, _constants.ANY}
_REPEATED = {_constants.MAX_REPEAT, _constants.MIN_REPEAT}


def quickened(lexer: Lexer) -> Lexer:
    """The same lexer, faster if its rules are regular expressions."""
    if isinstance(lexer, RegexLexer):
        lexer._tokens = {state: _Rules(rules) for state, rules in lexer._tokens.items()}
    return lexer


class _Rules:
    """The rules of one state; iterating yields, in order, those that can match where the lexer is."""

    def __init__(self, rules: list[Rule]) -> None:
        self._rules, self._at, self._next = rules, dict[str, list[Rule]](), ""
        self._looking = self._look, None, None

    def __iter__(self) -> Iterator[Rule]:
        yield self._looking  # the lexer tries it as a rule, which tells where it is
        found = self._at.get(self._next)
        yield from self._beginning_with(self._next) if found is None else found

    def _look(self, text: str, place: int) -> None:
        self._next = text[place : place + 1]

    def _beginning_with(self, character: str) -> list[Rule]:
        if character not in _ASCII:
            return self._rules
        self._at[character] = [rule for rule in self._rules if character in _first_characters(rule[0].__self__)]
        return self._at[character]


@cache
def _first_characters(expression: re.Pattern[str]) -> frozenset[str]:
    """The ASCII characters that a match can begin with; all of them if it can be empty."""
    found, empty = _begin(_parser.parse(expression.pattern, expression.flags), expression.flags)
    return _ASCII if empty else found


def _begin(items: Iterable[tuple[Any, Any]], flags: int) -> tuple[frozenset[str], bool]:
    """The ASCII characters that a match of these items in turn can begin with, and whether it can be empty."""
    found = frozenset[str]()
    for kind, value in items:
        if kind in _NO_WIDTH:
            continue
        if kind in _ONE:
            one, empty = _matching(kind, value, flags), False
        elif kind is _constants.SUBPATTERN:
            one, empty = _begin(value[3], flags | value[1])
        elif kind is _constants.BRANCH:
            branches = [_begin(branch, flags) for branch in value[1]]
            one, empty = frozenset().union(*(first for first, _ in branches)), any(empty for _, empty in branches)
        elif kind in _REPEATED:
            one, empty = _begin(value[2], flags)
            empty = empty or value[0] == 0
        else:
            one, empty = _ASCII, True
        found |= one
        if not empty:
            return found, False
    return found, True


def _matching(kind: Any, value: Any, flags: int) -> frozenset[str]:
    """The ASCII characters that one item of an expression matches."""
    state = _parser.State()
    state.flags = flags
    matches = _compiler.compile(_parser.SubPattern(state, [(kind, value)]), flags).match
    return frozenset(filter(matches, _ASCII))
