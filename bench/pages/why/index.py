"""One page for many items: id, verdict, count and reason of each, and the pages of the first ones inside it."""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from calibrant.audits.why import number_text
from calibrant.bench.pages.design.page import design_page
from calibrant.bench.runs.audits import ReasonRecord

MAX_EMBEDDED = 200  # pages inside the index; a page has 20 to 120 kB
MAX_BYTES = 15_000_000  # of embedded pages together
MAX_PLAIN_BYTES = 1_000_000  # larger lists are compressed: 100,000 reasons have about 20 MB
HEADINGS = ("item", "verdict", "fit", "reason")
STATES = ("open", "decided", "empty", "uncounted", "unexplained")


@dataclass(frozen=True)
class IndexItem:
    """A line of the list.

    reason: in short; body: contents of its page, empty for none; verdict: by default the state of the reason
    cells: further columns
    """

    id: str
    reason: ReasonRecord
    body: Markup = field(default_factory=Markup)
    verdict: str = ""
    cells: tuple[str, ...] = ()


@dataclass(frozen=True)
class IndexText:
    """Texts around the list.

    title; crumb: name of the kind of page; command: that makes the page of one item, with ID and FILE in it
    columns: headings of the further cells; chips: short facts; sections: below the list; footer: after the version
    """

    title: str
    crumb: str
    command: str
    columns: tuple[str, ...] = ()
    chips: Sequence[tuple[str, str]] = ()
    sections: Markup = field(default_factory=Markup)
    footer: str = ""


def index_page(pool: str, items: Iterable[IndexItem], text: IndexText | None = None) -> str:
    """Return one HTML file of the items of a pool.

    At most MAX_EMBEDDED pages of MAX_BYTES together are embedded; ids in each have to be unique in the file.
    """
    if text is None:
        command = f"calibrant show {pool} ID --why --html FILE"
        text = IndexText(f"Why are items of \u201c{pool}\u201d ambiguous?", "Why is it ambiguous?", command)
    rows: list[list[str | int | None]] = []
    bodies: list[Markup] = []
    states: Counter[str] = Counter()
    size = 0
    for item in items:
        states[item.reason.state] += 1
        place = None
        if item.body and len(bodies) < MAX_EMBEDDED and size + len(item.body) <= MAX_BYTES:
            place = len(bodies)
            bodies.append(item.body)
            size += len(item.body)
        verdict = item.verdict or item.reason.state
        rows.append([place, item.id, verdict, item.reason.fit, item.reason.reason, *item.cells])
    packed, is_compressed = _packed(rows)
    content = {
        "text": text,
        "title": text.title,
        "crumbs": [text.crumb, pool],
        "summary": _summary(len(rows), states),
        "note": _note(len(rows), len(bodies), text.command),
        "bodies": bodies,
        "headings": (*HEADINGS, *text.columns),
        "rows": packed,
        "is_compressed": is_compressed,
    }
    return design_page("why/index.html", content)


def _packed(rows: Sequence[Sequence[str | int | None]]) -> tuple[Markup, bool]:
    """Return the rows as JSON for a script element, compressed and in base64 where they are long."""
    packed = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    if len(packed) > MAX_PLAIN_BYTES:
        compressed = gzip.compress(packed.encode("utf-8", "replace"), mtime=0)
        return Markup(base64.b64encode(compressed).decode("ascii")), True
    return Markup(packed.replace("<", "\\u003c").replace("&", "\\u0026")), False


def _summary(number: int, states: Counter[str]) -> str:
    parts = [f"{number_text(states[state])} {state}" for state in STATES if states[state]]
    return f"{number_text(number)} item{'s' * (number != 1)}: {', '.join(parts) or 'none'}."


def _note(number: int, embedded: int, command: str) -> str:
    if embedded == number:
        return "Every item has its page here."
    return f"{embedded} of {number_text(number)} items have their page here; for another: {command}"
