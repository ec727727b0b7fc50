"""Renders HTML: the templates' environment, Markdown, and highlighted source.

Every page is rendered here. Trusted code over hostile text, with three rules for all templates: every value is escaped;
invisible characters (controls, direction marks) are written as their codes; and an undefined name is an error. Only
HTML that this module renders from Markdown and source is inserted unescaped.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from harness.languages import LANGUAGES
from harness.problem import schedule
from leaderboard.publishing.site import paths
from leaderboard.publishing.site.boards import paired, speedup
from leaderboard.publishing.site.charts.tiny import bar, spark
from leaderboard.record.pooling import NO_RANK
from leaderboard.standings.ranking import ACROSS_CARDS
from leaderboard.text.kernels import HEAD, LEFT
from leaderboard.text.plural import counted
from leaderboard.text.units import date, duration, interval, percent, ratio, utc
from leaderboard.text.visible import parameters, visible

HERE = Path(__file__).parent
_LONGEST = 400  # maximum length of one value, in characters: nothing honest is longer
_LEXERS = {language.suffix: language.lexer for language in LANGUAGES.values()}
_FORMATTER = HtmlFormatter(nowrap=True)
_SOURCE_BYTES = 160_000  # maximum size of highlighted HTML: the page's JSON has the whole source


def lines(text: str, limit: int = 4000) -> Markup:
    """Several lines of untrusted text, escaped; only newlines and tabs keep their meaning."""
    cut = text if len(text) <= limit else f"{text[: limit // 2]}\n…\n{text[-limit // 2 :]}"
    return escape(plain(cut))


def sources(texts: Mapping[str, str], language: str) -> list[tuple[str, Markup, bool]]:
    """Highlighted sources by name, and whether each is complete; together they have as much room as one page allows."""
    shown, room = [], _SOURCE_BYTES
    for name, text in texts.items():
        highlighted, whole = source(text, language, room)
        shown.append((name, highlighted, whole))
        room = max(0, room - len(highlighted))
    return shown


def source(text: str, language: str, room: int = _SOURCE_BYTES) -> tuple[Markup, bool]:
    """A highlighted source with numbered lines, cut to `room` bytes, and whether it is complete."""
    rows = str(_highlighted(text, language)).splitlines()
    shown, size = 0, 0
    for row in rows:
        size += len(row) + 32
        if size > room:
            break
        shown += 1
    numbered = (f'<span class="ln" data-n="{number}"></span>{row}' for number, row in enumerate(rows[:shown], start=1))
    return Markup("\n".join(numbered)), shown == len(rows)


def markdown(text: str, level: int = 1) -> Markup:
    """Render an organizers' document: no HTML, no images, external links only; headings begin below `level`."""
    options = {"html": False, "highlight": lambda fenced, language, _: str(_highlighted(fenced, language))}
    parser = MarkdownIt("commonmark", options).enable("table").disable("image")
    tokens = parser.parse(plain(text))
    return Markup(parser.renderer.render(list(_adapted(tokens, level)), parser.options, {}))


def difference(one: str, other: str, names: tuple[str, str]) -> tuple[str, ...]:
    """The unified diff of two sources, as lines."""
    if one.endswith("\n") and other.endswith("\n"):
        one, other = one[:-1], other[:-1]  # otherwise an empty last line would be part of the diff
    before, after = map(visible, names)
    return tuple(difflib.unified_diff(_split(one), _split(other), before, after, lineterm=""))


def _split(text: str) -> list[str]:
    return [visible(line.expandtabs(4)) for line in text.split("\n")]


def plain(text: str) -> str:
    """Multi-line text with invisible characters written as their codes."""
    rows = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(map(visible, row.split("\t"))) for row in rows)


@lru_cache(maxsize=64)  # several runs can have the same source, and highlighting is the slowest part of a page
def _highlighted(text: str, language: str) -> Markup:
    try:
        lexer = _lexer(_LEXERS.get(language, language))
    except ClassNotFound:
        return lines(text, len(text))
    return Markup(highlight(plain(text).rstrip("\n"), lexer, _FORMATTER))


@cache
def _lexer(name: str) -> Lexer:
    return get_lexer_by_name(name, stripnl=False, ensurenl=False)


def _adapted(tokens: Sequence[Token], level: int) -> Sequence[Token]:
    """Drop the title, which the page has, put headings below the page's own, and make tables scrollable."""
    if len(tokens) > 2 and tokens[0].type == "heading_open" and tokens[0].tag == "h1":
        tokens = tokens[3:]
    adapted: list[Token] = []
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, int(token.tag[1]) + level)}"
        if token.type == "table_open":
            region = '<div class="scroll" tabindex="0" role="region" aria-label="table">'
            adapted.append(Token("html_block", "", 0, content=region))
        adapted.append(token)
        if token.type == "table_close":
            adapted.append(Token("html_block", "", 0, content="</div>"))
        if str(token.attrs.pop("style", "")).endswith("right"):
            token.attrSet("class", "r")
        if token.type in {"fence", "code_block"}:  # they scroll, so they must be reachable by keyboard
            token.attrSet("tabindex", "0")
        for child in token.children or []:
            href = child.attrGet("href") if child.type == "link_open" else None
            if href is not None and not str(href).startswith(("https://", "http://", "#")):
                child.attrs.pop("href")  # links to a file of the repository, which the site does not have
    return adapted


def templates(compiled: Path, **shared: Any) -> Environment:
    """The templates, with the values that all their pages share.

    Compiled templates are stored in a folder for the next process: compiling takes longer than many builds.
    """
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=FileSystemBytecodeCache(str(compiled)),
    )
    environment.filters.update(
        ns=duration,
        interval=lambda score: _halves(interval(score)),
        median=lambda score: _halves(interval(score))[0],
        bounds=lambda score: _halves(interval(score))[1],
        ratio=lambda value: _halves(ratio(value)),
        ratio_median=lambda value: _halves(ratio(value))[0],
        ratio_bounds=lambda value: _halves(ratio(value))[1],
        date=date,
        moment=_moment,
        deadline=schedule.shown,
        words=lambda value: str(value).replace("_", " "),
        lines=lines,
        code=code,
        percent=percent,
        params=parameters,
    )
    environment.globals.update(
        paths=paths,
        no_rank=NO_RANK,
        across_cards=ACROSS_CARDS,
        nbsp=Markup("&nbsp;"),
        kernels_head=HEAD,
        kernels_left=LEFT,
        bar=bar,
        counted=counted,
        spark=spark,
        paired_baseline=paired,
        speedup=speedup,
        **shared,
    )
    return environment


def _shown(value: Any) -> Any:
    """A value as a template prints it: HTML from this module unchanged, other text made visible and cut."""
    if not isinstance(value, str) or isinstance(value, Markup) or (len(value) <= _LONGEST and value.isprintable()):
        return value
    return visible(value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…")


def code(text: str) -> Markup:
    """Untrusted text in one line, escaped; text between two backticks is shown as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(_shown(text)))))


def _halves(text: str) -> tuple[str, str]:
    """The median and the interval of a text such as `57.3 µs [57.1, 57.6]`, which pages show apart."""
    median, _, bounds = text.partition(" [")
    return median, f"[{bounds}"


def _moment(moment: datetime) -> str:
    return f"{utc(moment):%Y-%m-%d %H:%M} UTC"
