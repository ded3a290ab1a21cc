"""Timelines as HTML: a strip of all moments, a scene and the remaining answers, which a reader steps through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import Any

from markupsafe import Markup

from calibrant.audits.why import number_text
from calibrant.bench.pages.capabilities import TimelineMaker
from calibrant.bench.pages.graphs import draw_ring
from calibrant.bench.pages.page import design_page
from calibrant.bench.pages.timeline import Moment, News, Timeline, timeline_text
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.text import plural

MAX_LARGE_ANSWERS = 80  # more answers are drawn small
MAX_NAMED_ANSWERS = 8  # so many are named in words, more are counted


def timeline_page(title: str, timelines: Sequence[Timeline]) -> str:
    """Return one HTML file with every timeline; it needs no network, and all texts are escaped."""
    contents = [timeline_content(timeline, f"episode-{number}") for number, timeline in enumerate(timelines)]
    return design_page("timeline.html", {"title": title, "crumbs": ["episodes", title], "timelines": contents})


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
        "small": len(names) > MAX_LARGE_ANSWERS,
        "decision": timeline.decision,
        "rows": [_row(moment, number, timeline, names) for number, moment in enumerate(timeline.moments)],
        "scene": _scene(timeline),
        "strip": _strip(timeline),
        "graphs": [
            (graph.title, Markup(draw_ring(graph.nodes, graph.edges, graph.title, f"{anchor}-graph-{number}")))
            for number, graph in enumerate(timeline.graphs)
        ],
    }


def _row(moment: Moment, number: int, timeline: Timeline, names: Sequence[str]) -> dict[str, Any]:
    answers = list(moment.answers)
    is_named = 0 < len(answers) <= MAX_NAMED_ANSWERS
    return {
        "moment": moment,
        "things": " ".join(map(str, moment.objects)),
        "touched": " ".join(map(str, moment.touched)),
        "marked": " ".join(map(str, moment.marked)),
        "shares": " ".join(f"{place}:{share:.3g}" for place, share in moment.answers.items()),
        "placed": " ".join(timeline.objects[place] for place in moment.objects),
        "members": number_text(moment.members),
        "left": "; ".join(names[place] for place in answers) if is_named else plural(len(answers), "answers"),
        "ends": number == len(timeline.moments) - 1,
    }


# --- the scene --------------------------------------------------------------------------------------------------------

OBJECT_WIDTH = 54  # from one object to the next, in pixels as all sizes here


def _scene(timeline: Timeline) -> dict[str, Any]:
    """Return the home of each object, where it lies while it is not in place.

    Objects in place stand side by side in the order of placing; the script of the page moves them.
    """
    number = len(timeline.objects)
    width = max(360, OBJECT_WIDTH * number + 40)
    first_x = (width - OBJECT_WIDTH * number) / 2 + OBJECT_WIDTH / 2
    homes = [
        {"name": name, "label": label, "x": first_x + OBJECT_WIDTH * k}
        for k, (name, label) in enumerate(zip(timeline.objects, timeline.labels, strict=True))
    ]
    return {"width": width, "token": OBJECT_WIDTH, "things": homes}


# --- the strip: all moments at once -----------------------------------------------------------------------------------

# heights from the top: margin, a row for each object, the row of readings, the chart of remaining hypotheses
TOP, ROW, LAMP, CHART = 18, 15, 22, 70
# widths: names of the rows, a moment at most, margin on the right; MAX_WIDTH of the whole strip
LABELS, COLUMN, MARGIN, MAX_WIDTH = 98, 44, 12, 1100
MAX_NAME_CHARS = 9  # letters of a name beside its row
NOTE_WIDTH = 116  # of the words at a line, in the widest of the usual fonts


def _strip(timeline: Timeline) -> dict[str, Any]:
    """Return objects by moments, the readings, and the remaining hypotheses on a logarithmic scale."""
    moments = timeline.moments
    column = min(COLUMN, (MAX_WIDTH - LABELS) / len(moments))
    width = LABELS + column * len(moments) + MARGIN
    lamps = TOP + ROW * len(timeline.objects)
    floor = lamps + LAMP + CHART
    max_members = max(moment.members for moment in moments)
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
            {"name": _row_label(name, label), "y": TOP + ROW * k + ROW / 2 + 4}
            for k, (name, label) in enumerate(zip(timeline.objects, timeline.labels, strict=True))
        ],
        "cells": list(_cells(timeline, column)),
        "lights": [
            {"light": moment.light, "x": round(LABELS + column * (k + 0.5), 1)} for k, moment in enumerate(moments)
        ],
        "bars": [_bar(moment, max_members, LABELS + column * k, column) for k, moment in enumerate(moments)],
        "most": number_text(max_members),
        "decided": None if timeline.decided is None else _line(column, timeline.decided, width),
        "changed": [_line(column, k + 1, width) for k in timeline.changed],
        "ticks": [
            {"x": round(LABELS + column * (k + 0.5), 1), "number": k}
            for k in range(0, len(moments), _tick_step(column))
        ],
    }


def _row_label(name: str, label: str) -> str:
    """Return the label of an object's row: the end of a long name, and its short label where that is not in it."""
    short = name if len(name) <= MAX_NAME_CHARS else "\N{HORIZONTAL ELLIPSIS}" + name[-MAX_NAME_CHARS:]
    return short if short.endswith(label) else f"{short} ({label})"


def _cells(timeline: Timeline, column: float) -> list[dict[str, Any]]:
    """Return a bar for every stretch of moments in which an object is in place."""
    cells = []
    for number in range(len(timeline.objects)):
        inside = [number in moment.objects for moment in timeline.moments]
        # a stretch begins and ends where presence changes, so that edges alternate between start and end
        edges = [k for k, (before, after) in enumerate(pairwise([False, *inside, False])) if before != after]
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            cells.append(
                {
                    "x": round(LABELS + column * start + 1, 1),
                    "y": TOP + ROW * number + 2,
                    "width": round(column * (end - start) - 2, 1),
                    "height": ROW - 4,
                }
            )
    return cells


def _bar(moment: Moment, max_members: int, x: float, column: float) -> dict[str, Any]:
    """Return the bar of a moment: its height by the logarithm of the remaining hypotheses, its kind by the answers."""
    full = CHART - 8
    # one hypothesis at most in all moments has no logarithm to divide by
    height = full if max_members < 2 else full * log(max(1, moment.members)) / log(max_members)
    kind = "one" if len(moment.answers) == 1 else "many"
    if not moment.members:
        kind = "none"
    return {
        "x": round(x + 1, 1),
        "width": round(column - 2, 1),
        "height": round(max(height, 3), 1),
        "kind": kind,
        "told": moment.news is News.TOLD,
    }


def _line(column: float, moment: int, width: float) -> dict[str, Any]:
    """Return a line before a moment.

    left: whether its words stand on its left, for want of room on the right
    """
    x = LABELS + column * moment
    return {"x": round(x, 1), "left": x + NOTE_WIDTH > width}


def _tick_step(column: float) -> int:
    """Return the moments from one number under the strip to the next: two digits take 18 pixels."""
    if column > 18:
        return 1
    return 5 if column > 8 else 10


# --- Views of episodes that have a timeline: as text, and as a page that a reader steps through -----------------------


@dataclass(frozen=True)
class TimelineViews:
    """Implements EpisodeViews (bench.pages.capabilities) by timelines."""

    timeline: TimelineMaker

    def text(self, item: Any, steps: Sequence[Step[Any]], system: str) -> str:
        return timeline_text(self.timeline(item, steps, system))

    def page(self, item: Any, episodes: Sequence[tuple[str, Sequence[Step[Any]]]]) -> str:
        return timeline_page(in_one_line(item.id), [self.timeline(item, steps, name) for name, steps in episodes])
