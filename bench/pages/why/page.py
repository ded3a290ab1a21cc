"""The page of a `Why` of any benchmark."""

from __future__ import annotations

from markupsafe import Markup

from calibrant.audits.why import Why
from calibrant.bench.pages.design.page import design_page


def why_page(why: Why, body: Markup, pool: str) -> str:
    """Return one HTML file; body: what the benchmark makes of the reason."""
    crumbs = ["Why is it ambiguous?", pool, why.item]
    return design_page("why/why.html", {"title": why.title, "crumbs": crumbs, "body": body, "item": why.item})
