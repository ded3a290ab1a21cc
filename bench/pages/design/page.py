"""Pages in the design system: one HTML file each, with main, skip link, theme button and print rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from calibrant.bench.pages.design.tokens import TOKENS, token_rules
from calibrant.bench.pages.html_page import html_page
from calibrant.bench.terminal import printable
from calibrant.bench.version import program_version

DARK = "@media screen and (prefers-color-scheme:dark)"
_COLOUR = re.compile(r"var\(--([a-z0-9-]+)\)")


def design_page(template: str, content: Mapping[str, Any]) -> str:
    """Render a template that extends `design/base.html`; content: as `html_page`, `title` and `crumbs` at least."""
    shared = {"tokens": Markup(token_rules()), "program": program_version(), "position": "", "previous": "", "next": ""}
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
