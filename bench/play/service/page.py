"""The one page of play: it asks the server for the state and shows it."""

from __future__ import annotations

import json
from functools import lru_cache

from markupsafe import Markup

from calibrant.bench.pages.design.page import design_page


@lru_cache(maxsize=64)
def play_page(title: str, participant: str, plan: str = "") -> str:
    """Return the page.

    participant: an id to begin with, where the address has one; plan: of a static page, everything that it shows
    """
    embedded = json.dumps({"participant": participant, "plan": json.loads(plan) if plan else None})
    # `</` and `<!--` would end the script element
    content = {"title": title, "crumbs": [title], "embedded": Markup(embedded.replace("<", "\\u003c"))}
    return design_page("play/play.html", content)
