"""Pages in the design system: one HTML file each, with main, skip link, theme button and print rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from calibrant.bench.pages.design.tokens import token_rules
from calibrant.bench.pages.html_page import html_page
from calibrant.bench.version import program_version


def design_page(template: str, content: Mapping[str, Any]) -> str:
    """Render a template that extends `design/base.html`; content: as `html_page`, `title` and `crumbs` at least."""
    shared = {"tokens": Markup(token_rules()), "program": program_version(), "position": "", "previous": "", "next": ""}
    return html_page(template, shared | dict(content))


def standalone_svg(svg: str, extra_rules: str = "") -> str:
    """Return an SVG element as a file of its own: tokens of both themes inside, text in the design's fonts."""
    start = svg.index(">") + 1
    rules = f"<style>{token_rules()}svg{{background:var(--paper)}}{extra_rules}</style>"
    return svg[:start] + rules + svg[start:] + "\n"
