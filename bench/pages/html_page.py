"""Pages that are one HTML file: filled in from bench/pages/templates, everything escaped, no network needed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from calibrant.bench.terminal import printable

_TEMPLATES = Path(__file__).resolve().parent / "templates"


def html_page(template: str, content: Mapping[str, Any]) -> str:
    """Return a template with its content; what the template asks for and is not there is an error, not a gap.

    Characters that act on a terminal, or reorder and hide text, are spelled out: pages are also read with `less`.
    """
    return printable(_environment().get_template(template).render(content))


@cache  # a board has hundreds of pages of one template
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
