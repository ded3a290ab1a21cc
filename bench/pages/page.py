"""Self-contained HTML pages, plain or in the design system, with all content escaped."""

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

# --- Self-contained HTML pages from bench/pages/templates, with all content escaped -----------------------------------
_TEMPLATES = Path(__file__).resolve().parent / "templates"
_WORD_END = re.compile(r"(?<=[a-z|_])(?=[A-Z])|(?<=[|_])(?=[a-z])")
MAX_UNBROKEN_CHARS = 8  # ten columns of names broken so fit into 1280 pixels


def html_page(template: str, content: Mapping[str, Any]) -> str:
    """Render a template; a name that the content lacks is an error, not a gap.

    Control characters, and those that reorder or hide text, are spelled out, for pages are also read with `less`.
    """
    return printable(_environment().get_template(template).render(content))


def breakable(name: str) -> Markup:
    """Return a name that browsers may break every MAX_UNBROKEN_CHARS characters."""
    parts = [name[k : k + MAX_UNBROKEN_CHARS] for k in range(0, len(name), MAX_UNBROKEN_CHARS)]
    return Markup("<wbr>").join(parts)


def between_words(heading: str) -> Markup:
    """Return a heading that browsers may break between its words, as in HeldoutExact or Right|undecided."""
    return Markup("<wbr>").join(_WORD_END.split(heading))


def code_spans(text: str) -> Markup:
    """Mark text between backticks as code; an unpaired backtick stays."""
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
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # takes 40 ms, and most commands write no page

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
    """Render a template that extends `design/base.html`. content: at least `title` and `crumbs`."""
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
    """Return an SVG element as a file, with the rules of drawings inside.

    Colours are literal, for converters of SVG do not support custom properties; browsers switch to the dark ones if the
    reader prefers them.
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


# --- Data of pages on reasons: a table, and a lesson in steps ---------------------------------------------------------


@dataclass(frozen=True)
class WhyTable:
    """A table of an explanation.

    caption: meaning of the rows; rows: texts; look: indices of highlighted rows
    chart: an SVG above the table, empty for none; numeric: indices of columns of numbers; sealed: indices of columns
    with sealed content
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
    """A fitting hypothesis in a lesson. lines: formulas or rules; chart: an SVG, empty for none."""

    title: str
    lines: tuple[str, ...]
    chart: str = ""


@dataclass(frozen=True)
class Lesson:
    """A reason as a lesson in four steps: the evidence, a vote, the fitting hypotheses, the deciding experiment.

    intro: sentences above the evidence; code: a program beside it; words: pairs of plain word and technical term
    choices: of the vote; answer: index of the choice that the evidence supports, None if that was not counted
    heading, verdict, models, comparison: of the third step; advice: heading and sentences of the last step
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
