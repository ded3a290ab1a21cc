"""The page of a `Why` of any benchmark."""

from __future__ import annotations

from markupsafe import Markup

from calibrant.audits.why import Why
from calibrant.bench.pages.design.page import design_page


def why_page(why: Why, body: Markup, pool: str, kind: str = "Why is it ambiguous?") -> str:
    """Return one HTML file; body: what the benchmark makes of the reason; kind: of page, the first crumb."""
    crumbs = [kind, pool, why.item]
    return design_page("why/why.html", {"title": why.title, "crumbs": crumbs, "body": body, "item": why.item})
