"""The page of a `Why` of any benchmark."""

from __future__ import annotations

from markupsafe import Markup

from calibrant.audits.why import Why
from calibrant.bench.pages.design.page import design_page


def why_page(why: Why, body: Markup, pool: str, public_id: str = "") -> str:
    """Return one HTML file.

    body: what the benchmark makes of the reason; public_id: of the item, where it is named by another one
    """
    content = {
        "title": why.title,
        "crumbs": ["Why is it ambiguous?", pool, why.item],
        "body": body,
        "item": why.item,
        "public_id": public_id,
    }
    return design_page("why/why.html", content)
