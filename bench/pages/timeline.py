"""Timeline of an episode: actions, readings and remaining hypotheses step by step.

A benchmark describes each moment; they are drawn in the same way for every benchmark: as text, and as HTML with a strip
of all moments, a scene and the remaining answers, which a reader steps through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from math import log
from typing import Any, TypeAlias

from markupsafe import Markup

from calibrant.audits.why import number_text
from calibrant.bench.core.attribution import UNDEFINED_VERDICT
from calibrant.bench.pages.graphs import GraphEdge, GraphNode, draw_ring
from calibrant.bench.pages.page import design_page
from calibrant.bench.pages.terminal_tables import aligned
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.text import plural


class Light(StrEnum):
    """Reaction of the environment: a reading of either kind, a refusal, a submission, or nothing yet."""

    ON = "on"
    OFF = "off"
    REFUSED = "refused"
    SUBMITTED = "submitted"
    NONE = "none"


class News(StrEnum):
    """Information in a step."""

    TOLD = "informative"  # something that was possible before is not any more
    SHIFTED = "shifts the odds"
    NOTHING = "nothing new"
    NONE = ""  # nothing was read


@dataclass(frozen=True)
class Moment:
    """The state after one step; the first moment of a timeline is that before any.

    caption: the step's number and what was done; reading: what the environment said
    things: numbers of the things in place, in order; touched: those that the step was about
    members: hypotheses of the class that are left
    answers: shares of the answers that are left, by number; empty where they are not listed
    remark: what the step did to the hypotheses, in words
    behind: what a solver is not told: the mechanism behind the reading; marked: numbers of the things that it names
    """

    caption: str
    reading: str
    light: Light
    objects: tuple[int, ...]
    touched: tuple[int, ...]
    members: int
    answers: Mapping[int, float]
    news: News
    remark: str
    behind: str = ""
    marked: tuple[int, ...] = ()


@dataclass(frozen=True)
class AnswerGroup:
    """Answers that are shown together; answers are numbered through all groups."""

    title: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Decision:
    """End of an episode.

    said, truth: the answer and the right one, in words; given, right: their numbers among the answers, if they have one
    correct: the benchmark's verdict, None where nothing is held out; kind: earned, missed, lucky or short
    why: what that means here
    """

    answer: str
    truth: str
    correct: bool | None
    kind: str
    why: str
    answer_number: int | None = None
    right: int | None = None


@dataclass(frozen=True)
class StateGraph:
    """Graph of the states that an agent moves between, as it was from some moment on.

    nodes: those that were just added are marked; edges: between nodes that are there
    """

    title: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


@dataclass(frozen=True)
class Timeline:
    """One episode.

    item, system: what and whose it is; place: what the things stand on
    things: their names; labels: of one or two letters, to stand on them
    groups: the possible answers; in_words: the class of the hypotheses
    decided: the first moment in which one answer is left; changed: moments after which the mechanism is another one
    graphs: of states of agents that have one, before and after each change
    """

    item: str
    system: str
    place: str
    objects: tuple[str, ...]
    labels: tuple[str, ...]
    groups: tuple[AnswerGroup, ...]
    moments: tuple[Moment, ...]
    in_words: str
    decision: Decision
    decided: int | None = None
    changed: tuple[int, ...] = field(default=())
    graphs: tuple[StateGraph, ...] = ()


TimelineMaker: TypeAlias = Callable[[Any, Sequence[Step[Any]], str], Timeline]
"""Makes the timeline of an episode: (item, steps, system); `TranscriptError` if the item does not answer so."""


# --- Timelines as text: a line a step ---------------------------------------------------------------------------------
HEADINGS = ["Step", "In place", "Reading", "Left", "Answers", "What it did"]


def timeline_text(timeline: Timeline) -> str:
    """Return the steps of an episode in words, then its decision."""
    decision = timeline.decision
    wrong = UNDEFINED_VERDICT if decision.correct is None else f"not right, the right answer was {decision.truth}"
    verdict = "right" if decision.correct else wrong
    rows = [_text_row(moment, timeline) for moment in timeline.moments]
    return "\n".join(
        [
            f"{timeline.system} on {timeline.item}",
            aligned(HEADINGS, rows),
            f"{decision.kind}: answered {decision.answer}; {verdict}. {decision.why}",
            f"Hypotheses: {timeline.in_words}.",
        ]
    )


def _text_row(moment: Moment, timeline: Timeline) -> list[str]:
    placed = " ".join(timeline.objects[place] for place in moment.objects)
    news = f"{moment.news}: {moment.remark}" if moment.news else moment.remark
    return [moment.caption, placed, moment.reading, str(moment.members), str(len(moment.answers)), news]


# --- Timelines as HTML ------------------------------------------------------------------------------------------------
MAX_LARGE_ANSWERS = 80  # more answers are drawn small
MAX_NAMED_ANSWERS = 8  # so many are named in words, more are counted


def timeline_page(title: str, timelines: Sequence[Timeline]) -> str:
    """Return one HTML file with every timeline; it needs no network, and all texts are escaped."""
    contents = [timeline_content(timeline, f"episode-{index}") for index, timeline in enumerate(timelines)]
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
        "rows": [_step_content(moment, index, timeline, names) for index, moment in enumerate(timeline.moments)],
        "scene": _scene(timeline),
        "strip": _strip(timeline),
        "graphs": [
            (graph.title, Markup(draw_ring(graph.nodes, graph.edges, graph.title, f"{anchor}-graph-{index}")))
            for index, graph in enumerate(timeline.graphs)
        ],
    }


def _step_content(moment: Moment, number: int, timeline: Timeline, names: Sequence[str]) -> dict[str, Any]:
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


# --- Scene --------------------------------------------------------------------------------------------------------

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


# --- Strip: all moments at once -----------------------------------------------------------------------------------

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
