"""Pages that are one HTML file, plain or in the design system: everything escaped, no network needed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from calibrant.bench.pages.tokens import TOKENS, token_rules
from calibrant.bench.terminal import printable
from calibrant.bench.version import program_version
from calibrant.dsl.text import plural

if TYPE_CHECKING:
    from jinja2 import Environment

# --- Pages that are one HTML file: filled in from bench/pages/templates, everything escaped, no network needed --------
_TEMPLATES = Path(__file__).resolve().parent / "templates"
_WORD_END = re.compile(r"(?<=[a-z|_])(?=[A-Z])|(?<=[|_])(?=[a-z])")
MAX_UNBROKEN = 8  # characters: ten columns of such names fit a page of 1280


def html_page(template: str, content: Mapping[str, Any]) -> str:
    """Return a template with its content; what the template asks for and is not there is an error, not a gap.

    Characters that act on a terminal, or reorder and hide text, are spelled out: pages are also read with `less`.
    """
    return printable(_environment().get_template(template).render(content))


def breakable(name: str) -> Markup:
    """Return a name that may be broken every MAX_UNBROKEN characters: a column of it is no wider."""
    parts = [name[k : k + MAX_UNBROKEN] for k in range(0, len(name), MAX_UNBROKEN)]
    return Markup("<wbr>").join(parts)


def between_words(heading: str) -> Markup:
    """Return a heading that may be broken between its words, such as HeldoutExact or Right|undecided."""
    return Markup("<wbr>").join(_WORD_END.split(heading))


def code_spans(text: str) -> Markup:
    """Return a text in which what stands between backticks is code; one backtick without another stays."""
    pieces = text.split("`")
    last = len(pieces) - 1
    marked = [
        Markup("<code>{}</code>").format(piece) if index % 2 and index < last else Markup.escape(piece)
        for index, piece in enumerate(pieces)
    ]
    if last % 2:
        marked[-1] = Markup("`") + marked[-1]
    return Markup("").join(marked)


@cache  # a board has hundreds of pages of one template
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # 40 ms, and most commands write no page

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"between_words": between_words, "breakable": breakable, "code_spans": code_spans}
    environment.filters["plural"] = plural
    return environment


# --- Pages in the design system: one HTML file each, with main, skip link, theme button and print rules ---------------
DARK = "@media screen and (prefers-color-scheme:dark)"
_COLOUR = re.compile(r"var\(--([a-z0-9-]+)\)")


def design_page(template: str, content: Mapping[str, Any]) -> str:
    """Render a template that extends `design/base.html`; content: as `html_page`, `title` and `crumbs` at least."""
    shared = {
        "tokens": Markup(token_rules()),
        "program": program_version(),
        "position": "",
        "previous": "",
        "next": "",
        "lang": "en",
    }
    return html_page(template, shared | dict(content))


def standalone_svg(svg: str) -> str:
    """Return an SVG element as a file of its own, with the rules of drawings inside.

    Colours are numbers, since programs that convert SVG know no custom properties; a browser takes the dark ones where
    the reader prefers them.
    """
    start = svg.index(">") + 1
    rules = html_page("design/drawing.css", {}) + "svg{background:var(--paper)}"
    body = _coloured(svg[start:], "light")
    inline = "".join(
        f'[style*="{name}:{token.light}"]{{{name}:{token.dark}!important}}'
        for token in TOKENS.values()
        for name in ("fill", "stroke")
        if f"{name}:{token.light}" in body
    )
    style = f"<style>{_coloured(rules, 'light')}\n{DARK}{{\n{_coloured(rules, 'dark')}\n{inline}}}</style>"
    return printable(f"{svg[:start]}{style}{body}\n")


def _coloured(text: str, theme: str) -> str:
    return _COLOUR.sub(lambda match: str(getattr(TOKENS[match[1]], theme)), text)


# --- Parts of pages of reasons, as data: a table, and an item in steps for a class ------------------------------------


@dataclass(frozen=True)
class WhyTable:
    """A table of an explanation.

    caption: meaning of the rows; rows: texts; look: numbers of the rows to look at
    chart: an SVG above the table, empty for none; numeric: columns that are numbers; sealed: columns that only gold
    tells
    """

    title: str
    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    look: frozenset[int] = frozenset()
    chart: str = ""
    numeric: frozenset[int] = frozenset()
    sealed: frozenset[int] = frozenset()


@dataclass(frozen=True)
class LessonModel:
    """A hypothesis that fits, for a class; lines: formulas or rules; chart: an SVG, empty for none."""

    title: str
    lines: tuple[str, ...]
    chart: str = ""


@dataclass(frozen=True)
class Lesson:
    """A reason in four steps for a class: what is known, a vote, what fits, what settles it.

    intro: sentences above the evidence; code: a program beside it; words: plain word and technical term
    choices: of the vote; answer: index of the one that the evidence supports, None where that was not counted
    heading, verdict, models, comparison: of the step that answers; advice: heading and sentences of the last step
    """

    item: str
    intro: tuple[str, ...]
    evidence: WhyTable
    words: tuple[tuple[str, str], ...]
    question: str
    choices: tuple[str, ...]
    answer: int | None
    heading: str
    verdict: tuple[str, ...]
    models: tuple[LessonModel, ...] = ()
    comparison: WhyTable | None = None
    advice: tuple[str, ...] = ()
    code: str = ""
