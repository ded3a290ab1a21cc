"""The page "this person beside the ideal learner": a bar of classes, a table, and every item step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from calibrant.audits.why import number_text
from calibrant.bench.core.attribution import KIND_MEANINGS
from calibrant.bench.pages.design.page import design_page
from calibrant.bench.pages.filmstrip import timeline_content
from calibrant.bench.play.review.items import ReviewedItem
from calibrant.bench.report.overview.contract import Explanation
from calibrant.dsl.errors import CalibrantError

BAR = ("earned", "lucky", "right", "short", "missed", "wrong", "unjudged")  # accuracy is where right ends
GLYPHS = {"earned": "\u2713", "lucky": "\u2248", "right": "\u2713", "short": "\u25cb", "missed": "\u2717"}
GLYPHS |= {"wrong": "\u2717", "unjudged": "\u25cb"}
DASH = "\N{EN DASH}"


def review_page(title: str, participant: str, items: Sequence[ReviewedItem]) -> str:
    """Return the page about a participant's ended items, in the order in which they were begun."""
    counts = Counter(_class_of(item) for item in items)
    content = {
        "title": f"{participant} beside the ideal learner",
        "crumbs": [title, participant],
        "heading": _heading(items, counts),
        "bar": [{"kind": kind, "number": counts[kind]} for kind in BAR if counts[kind]],
        "bar_label": ", ".join(f"{counts[kind]} {kind}" for kind in BAR if counts[kind]),
        "legend": list(_legend(counts)),
        "rows": [_row(number, item) for number, item in enumerate(items, 1)],
        "items": [_item(number, item, participant) for number, item in enumerate(items, 1)],
    }
    return design_page("play/review.html", content)


def _class_of(item: ReviewedItem) -> str:
    return item.kind or {True: "right", False: "wrong", None: "unjudged"}[item.is_right]


def _heading(items: Sequence[ReviewedItem], counts: Counter[str]) -> str:
    right = sum(item.is_right is True for item in items)
    earned = f", {counts['earned']} of them earned" if any(item.kind for item in items) else ""
    return f"{right} of {sum(item.is_right is not None for item in items)} right{earned}"


def _legend(counts: Counter[str]) -> Iterator[dict[str, str]]:
    for kind in ("earned", "lucky", "short", "missed"):
        decided, _, right = KIND_MEANINGS[kind].partition(" and ")
        yield {"kind": kind, "text": f"{GLYPHS[kind]} {kind}: {decided}, {right}"}
    for kind in ("right", "wrong"):
        if counts[kind]:
            yield {"kind": kind, "text": f"{GLYPHS[kind]} {kind}: what the evidence had decided is not counted"}
    if counts["unjudged"]:
        yield {"kind": "unjudged", "text": f"{GLYPHS['unjudged']} unjudged: nothing is held out"}


def _row(number: int, item: ReviewedItem) -> dict[str, Any]:
    kind, row = _class_of(item), item.row()
    return {
        "number": number,
        "anchor": f"item-{number}",
        "benchmark": row["kind"],
        "item": row["item"],
        "kind": kind,
        "worth": f"{GLYPHS[kind]} {kind}",
        "left": f"{number_text(int(row['left']))} left" if row["left"] else DASH,
        "moves": DASH if row["moves"] is None else f"{row['moves']:,}",
        "ideal": DASH if row["ideal"] is None else f"{row['ideal']:,}",
    }


def _item(number: int, item: ReviewedItem, participant: str) -> dict[str, Any]:
    explanation = item.explanation
    content = _row(number, item) | {"timelines": [], "texts": [], "explanation": explanation}
    content["remaining"] = item.remaining
    content["response"] = "no answer" if explanation is None or item.record.outcome != "found" else explanation.response
    content["sentence"] = " ".join(filter(None, (_answer_sentence(item, explanation), _ideal_sentence(item))))
    try:
        timelines = item.timelines(participant)
        content["timelines"] = [timeline_content(t, f"item-{number}-{k}") for k, t in enumerate(timelines)]
        content["texts"] = [] if timelines else item.texts(participant)
    except CalibrantError as error:
        content["sentence"] += f" The steps cannot be shown: {error}."
    return content


def _answer_sentence(item: ReviewedItem, explanation: Explanation | None) -> str:
    """Return what the evidence had decided about the answer."""
    if item.record.outcome == "found":
        return "" if explanation is None else " ".join(explanation.sentences)
    decided = item.attribution.get("decided")
    if decided is None:
        return "No answer was given."
    return f"No answer was given; the evidence had left {'one answer' if decided else 'several answers'}."


def _ideal_sentence(item: ReviewedItem) -> str:
    """Return what the ideal learner could do: with the same evidence, and with moves of its own choice."""
    ceiling, parts = item.levels.ceiling, []
    if ceiling is not None:
        parts.append(f"With the same evidence the best answer is right with probability {ceiling:.3g}.")
    if item.ideal is not None:
        ideal = item.ideal.describe()
        parts.append(f"The ideal learner, run exact, chose its own moves and {ideal}; here there were {item.moves:,}.")
    return " ".join(parts)
