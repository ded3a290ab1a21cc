"""One page for many items: id, verdict, count and reason of each, and the pages of the first ones inside it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from markupsafe import Markup

from calibrant.audits.why import Why, number_text
from calibrant.bench.pages.design.page import design_page

MAX_EMBEDDED = 200  # pages inside the index; a page has 20 to 120 kB
MAX_BYTES = 15_000_000  # of embedded pages together


def index_page(pool: str, items: Iterable[tuple[Why, Markup | None]]) -> str:
    """Return one HTML file; items: reasons with the contents of their pages, None where that was not made.

    At most MAX_EMBEDDED pages of MAX_BYTES together are embedded; ids in each have to be unique in the file.
    """
    rows: list[list[str | int | None]] = []
    bodies: list[Markup] = []
    states: Counter[str] = Counter()
    size = 0
    for why, body in items:
        states[why.state] += 1
        place = None
        if body is not None and len(bodies) < MAX_EMBEDDED and size + len(body) <= MAX_BYTES:
            place = len(bodies)
            bodies.append(body)
            size += len(body)
        rows.append([why.item, why.state, why.count.in_words(), why.reason_text, place])
    packed = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    content = {
        "title": f"Why are items of \u201c{pool}\u201d ambiguous?",
        "crumbs": ["Why is it ambiguous?", pool],
        "summary": _summary(len(rows), states),
        "note": _note(len(rows), len(bodies), pool),
        "bodies": bodies,
        "rows": Markup(packed.replace("<", "\\u003c").replace("&", "\\u0026")),
    }
    return design_page("why/index.html", content)


def _summary(number: int, states: Counter[str]) -> str:
    parts = [
        f"{number_text(states[state])} {state}" for state in ("open", "decided", "empty", "uncounted") if states[state]
    ]
    return f"{number_text(number)} item{'s' * (number != 1)}: {', '.join(parts) or 'none'}."


def _note(number: int, embedded: int, pool: str) -> str:
    if embedded == number:
        return "Every item has its page here."
    command = f"calibrant show {pool} ID --why --html FILE"
    return f"{embedded} of {number_text(number)} items have their page here; for another: {command}"
