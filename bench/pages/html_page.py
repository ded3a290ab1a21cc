"""Pages that are one HTML file: filled in from bench/pages/templates, everything escaped, no network needed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from calibrant.bench.terminal import printable

_TEMPLATES = Path(__file__).resolve().parent / "templates"
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


def code_spans(text: str) -> Markup:
    """Return a text in which what stands between backticks is code; one backtick without another stays."""
    pieces = text.split("`")
    last = len(pieces) - 1
    marked = [
        Markup("<code>{}</code>").format(piece) if place % 2 and place < last else Markup.escape(piece)
        for place, piece in enumerate(pieces)
    ]
    if last % 2:
        marked[-1] = Markup("`") + marked[-1]
    return Markup("").join(marked)


@cache  # a board has hundreds of pages of one template
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"breakable": breakable, "code_spans": code_spans}
    return environment
