"""The page of a `Why` of any benchmark."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from markupsafe import Markup, escape

from calibrant.audits.why import Why
from calibrant.bench.pages.design.page import design_page

POOL = Markup('<span class="pool">POOL</span>')  # stands for the path in commands of a body; no escaped text is this


def with_pool(body: Markup, pool: Path) -> Markup:
    """Return the body of a page with the path of the pool in its commands."""
    return body.replace(POOL, escape(quote(str(pool))))


def why_page(why: Why, body: Markup, pool: str, kind: str = "Why is it ambiguous?") -> str:
    """Return one HTML file; body: what the benchmark makes of the reason; kind: of page, the first crumb."""
    crumbs = [kind, pool, why.item]
    return design_page("why/why.html", {"title": why.title, "crumbs": crumbs, "body": body, "item": why.item})
