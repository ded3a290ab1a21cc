"""Timelines drawn: a strip of all moments, a scene and the answers that are left, stepped through by a reader."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import log
from typing import Any

from calibrant.bench.pages.html_page import html_page
from calibrant.bench.pages.timeline import Moment, News, Timeline
from calibrant.bench.version import program_version


def timeline_page(title: str, timelines: Sequence[Timeline]) -> str:
    """One file that needs no network, with every timeline. All texts are escaped."""
    shown = [timeline_content(one, f"episode-{number}") for number, one in enumerate(timelines)]
    return html_page("timeline.html", {"title": title, "timelines": shown, "program": program_version()})


def timeline_content(timeline: Timeline, anchor: str) -> dict[str, Any]:
    """Return what the template `timeline_part.html` needs. anchor: its id in the page."""
    names = [name for group in timeline.groups for name in group.names]
    numbered, start = [], 0
    for group in timeline.groups:
        numbered.append({"title": group.title, "names": list(enumerate(group.names, start))})
        start += len(group.names)
    return {
        "anchor": anchor,
        "item": timeline.item,
        "system": timeline.system,
        "place": timeline.place,
        "in_words": timeline.in_words,
        "groups": numbered,
        "small": len(names) > MANY_ANSWERS,
        "decision": timeline.decision,
        "rows": [_row(one, number, timeline, names) for number, one in enumerate(timeline.moments)],
        "scene": _scene(timeline),
        "strip": _strip(timeline),
    }


MANY_ANSWERS = 80  # above that they are drawn small
FEW = 8  # so many answers are named in words


def _row(moment: Moment, number: int, timeline: Timeline, names: Sequence[str]) -> dict[str, Any]:
    left = list(moment.answers)
    return {
        "moment": moment,
        "things": " ".join(map(str, moment.things)),
        "touched": " ".join(map(str, moment.touched)),
        "marked": " ".join(map(str, moment.marked)),
        "shares": " ".join(f"{place}:{share:.3g}" for place, share in moment.answers.items()),
        "placed": " ".join(timeline.things[place] for place in moment.things),
        "members": f"{moment.members:,}",
        "left": "; ".join(names[place] for place in left) if 0 < len(left) <= FEW else f"{len(left)} answers",
        "ends": number == len(timeline.moments) - 1,
    }


# --- the scene --------------------------------------------------------------------------------------------------------

TOKEN = 54  # from one thing to the next


def _scene(timeline: Timeline) -> dict[str, Any]:
    """Return where each thing stands while it is out of place; in place they stand side by side in their order."""
    number = len(timeline.things)
    width = max(360, TOKEN * number + 40)
    left = (width - TOKEN * number) / 2 + TOKEN / 2
    homes = [
        {"name": name, "label": label, "x": left + TOKEN * k}
        for k, (name, label) in enumerate(zip(timeline.things, timeline.labels, strict=True))
    ]
    return {"width": width, "token": TOKEN, "things": homes}


# --- the strip: all moments at once -----------------------------------------------------------------------------------

LABELS, ROW, LAMP, CHART, TOP = 98, 15, 22, 70, 18
LONGEST = 9  # letters of a name beside its row
WIDEST, COLUMN, MARGIN = 1100, 44, 12
NOTE = 96  # the width of what is written at a line


def _strip(timeline: Timeline) -> dict[str, Any]:
    """Things by moments, what was read, and the hypotheses left on a logarithmic scale."""
    moments = timeline.moments
    column = min(COLUMN, (WIDEST - LABELS) / len(moments))
    width = LABELS + column * len(moments) + MARGIN
    lamps = TOP + ROW * len(timeline.things)
    floor = lamps + LAMP + CHART
    most = max(moment.members for moment in moments)
    return {
        "width": round(width, 1),
        "height": floor + 20,
        "column": round(column, 2),
        "labels": LABELS,
        "top": TOP,
        "floor": floor,
        "radius": round(min(6.5, column * 0.42), 2),
        "lamps": lamps + LAMP / 2,
        "names": [
            {"name": _beside(name, label), "y": TOP + ROW * k + ROW / 2 + 4}
            for k, (name, label) in enumerate(zip(timeline.things, timeline.labels, strict=True))
        ],
        "cells": list(_cells(timeline, column)),
        "lights": [
            {"light": moment.light, "x": round(LABELS + column * (k + 0.5), 1)} for k, moment in enumerate(moments)
        ],
        "bars": [_bar(moment, most, LABELS + column * k, column) for k, moment in enumerate(moments)],
        "most": f"{most:,}",
        "decided": None if timeline.decided is None else _line(column, timeline.decided, width),
        "changed": [_line(column, k + 1, width) for k in timeline.changed],
        "ticks": [
            {"x": round(LABELS + column * (k + 0.5), 1), "number": k} for k in range(0, len(moments), _every(column))
        ],
    }


def _beside(name: str, label: str) -> str:
    """Return what stands beside a thing's row: the end of a long name, and its label where that is not in it."""
    short = name if len(name) <= LONGEST else "\N{HORIZONTAL ELLIPSIS}" + name[-LONGEST:]
    return short if short.endswith(label) else f"{short} ({label})"


def _cells(timeline: Timeline, column: float) -> list[dict[str, Any]]:
    """A bar for every stretch of moments in which a thing is in place."""
    found = []
    for thing in range(len(timeline.things)):
        inside = [thing in moment.things for moment in timeline.moments]
        edges = [k for k, (one, other) in enumerate(pairwise([False, *inside, False])) if one != other]
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            found.append(
                {
                    "x": round(LABELS + column * start + 1, 1),
                    "y": TOP + ROW * thing + 2,
                    "width": round(column * (end - start) - 2, 1),
                    "height": ROW - 4,
                }
            )
    return found


def _bar(moment: Moment, most: int, x: float, column: float) -> dict[str, Any]:
    height = CHART - 8 if most < 2 else (CHART - 8) * log(moment.members or 1) / log(most)
    kind = "none" if not moment.members else "one" if len(moment.answers) == 1 else "many"
    return {
        "x": round(x + 1, 1),
        "width": round(column - 2, 1),
        "height": round(max(height, 3), 1),
        "kind": kind,
        "told": moment.news is News.TOLD,
    }


def _line(column: float, moment: int, width: float) -> dict[str, Any]:
    """A line before a moment. left: whether what is written at it has to stand on its left"""
    x = LABELS + column * moment
    return {"x": round(x, 1), "left": x + NOTE > width}


def _every(column: float) -> int:
    return 1 if column > 18 else 5 if column > 8 else 10
