"""The one page of play: it asks the server for the state and shows it."""

from __future__ import annotations

import json
from functools import lru_cache

from markupsafe import Markup

from calibrant.bench.pages.design.page import design_page
from calibrant.bench.pages.design.tokens import contrast_rules


@lru_cache(maxsize=64)
def play_page(title: str, participant: str, plan: str = "", offered: str = "", *, is_listed: bool = False) -> str:
    """Return the page.

    participant: an id to begin with, where the address has one; plan: of a static page, everything that it shows
    offered: an id of the study's list that nobody uses yet; is_listed: there is a list, so that other ids are refused
    """
    content = {
        "participant": participant,
        "offered": offered,
        "listed": is_listed,
        "plan": json.loads(plan) if plan else None,
    }
    embedded = json.dumps(content)
    # `</` and `<!--` would end the script element
    page = {"title": title, "crumbs": [title], "embedded": Markup(embedded.replace("<", "\\u003c"))}
    page["contrast"] = Markup(contrast_rules())
    return design_page("play/play.html", page)
