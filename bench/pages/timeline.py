"""Timeline of an episode: actions, readings and remaining hypotheses step by step.

A benchmark describes each moment; all benchmarks share the drawing as text, and as HTML with a strip of all moments, a
scene and the remaining answers, which a reader steps through.
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
    """Reaction of the environment: a positive or negative reading, a refusal, a submission, or none yet."""

    ON = "on"
    OFF = "off"
    REFUSED = "refused"
    SUBMITTED = "submitted"
    NONE = "none"


class News(StrEnum):
    """Effect of a step on the set of remaining hypotheses."""

    TOLD = "informative"  # some hypothesis was excluded
    SHIFTED = "shifts the odds"
    NOTHING = "nothing new"
    NONE = ""  # there was no reading


@dataclass(frozen=True)
class Moment:
    """The state after a step; the first moment of a timeline is that before all steps.

    caption: number and action of the step; reading: the environment's response
    objects: indices of the objects in place, in order of placing; touched: indices of the objects of the step
    members: number of remaining hypotheses of the class
    answers: index of a remaining answer -> its share; empty if they are not listed
    remark: sentence on the effect of the step on the hypotheses
    behind: the sealed mechanism behind the reading; marked: indices of the objects that it names
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
    """Answers that are shown together; their indices are counted through all groups."""

    title: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Decision:
    """End of an episode.

    answer, truth: texts of the given and of the right answer; answer_number, right: their indices, None if not listed
    correct: the benchmark's verdict, None where nothing is held out; kind: as in attributions, or `no answer`
    why: sentence on the kind
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
    """Transition graph of an agent's states, valid from some moment on.

    nodes: new ones are marked
    """

    title: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


@dataclass(frozen=True)
class Timeline:
    """One episode.

    place: where objects are placed, such as a detector
    objects: their names; labels: one or two letters for each, written on it
    groups: the possible answers; in_words: the class of the hypotheses
    decided: index of the first moment with one remaining answer; None if there is none
    changed: indices of moments after which the mechanism changed
    graphs: state graphs of agents that have one, before and after each change
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
"""(item, steps, system) -> timeline; `TranscriptError` if the item's readings differ from those of the steps."""


# --- Timelines as text: a line for each step --------------------------------------------------------------------------
HEADINGS = ["Step", "In place", "Reading", "Left", "Answers", "What it did"]


def timeline_text(timeline: Timeline) -> str:
    """Return the steps of an episode as a table, then its decision."""
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
MAX_LARGE_ANSWERS = 80  # of a timeline; more answers are drawn small
MAX_NAMED_ANSWERS = 8  # remaining answers that are listed by name; more are counted


def timeline_page(title: str, timelines: Sequence[Timeline]) -> str:
    """Return one self-contained HTML file with every timeline."""
    contents = [timeline_content(timeline, f"episode-{index}") for index, timeline in enumerate(timelines)]
    return design_page("timeline.html", {"title": title, "crumbs": ["episodes", title], "timelines": contents})


def timeline_content(timeline: Timeline, anchor: str) -> dict[str, Any]:
    """Return the content of the template `timeline_part.html`. anchor: its id in the page."""
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

OBJECT_WIDTH = 54  # pixels between objects; all sizes here are in pixels


def _scene(timeline: Timeline) -> dict[str, Any]:
    """Return the position of each object while it is not in place.

    The page's script moves objects in place side by side, in the order of placing.
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
NOTE_WIDTH = 116  # of the text at a line, in the widest of the usual fonts


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
    """Return the label of an object's row: the end of a long name, followed by its short label unless it ends so."""
    short = name if len(name) <= MAX_NAME_CHARS else "\N{HORIZONTAL ELLIPSIS}" + name[-MAX_NAME_CHARS:]
    return short if short.endswith(label) else f"{short} ({label})"


def _cells(timeline: Timeline, column: float) -> list[dict[str, Any]]:
    """Return a bar for every run of moments in which an object is in place."""
    cells = []
    for index in range(len(timeline.objects)):
        is_in_place = [index in moment.objects for moment in timeline.moments]
        # a stretch begins and ends where presence changes, so that edges alternate between start and end
        edges = [k for k, (before, after) in enumerate(pairwise([False, *is_in_place, False])) if before != after]
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            cells.append(
                {
                    "x": round(LABELS + column * start + 1, 1),
                    "y": TOP + ROW * index + 2,
                    "width": round(column * (end - start) - 2, 1),
                    "height": ROW - 4,
                }
            )
    return cells


def _bar(moment: Moment, max_members: int, x: float, column: float) -> dict[str, Any]:
    """Return the bar of a moment: height by the logarithm of remaining hypotheses, kind by remaining answers."""
    full = CHART - 8
    # max_members of 1 has the logarithm 0
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
    """Return the vertical line before a moment.

    left: whether its text stands on its left because it does not fit on the right
    """
    x = LABELS + column * moment
    return {"x": round(x, 1), "left": x + NOTE_WIDTH > width}


def _tick_step(column: float) -> int:
    """Return the step between numbers below the strip; two digits take 18 pixels."""
    if column > 18:
        return 1
    return 5 if column > 8 else 10


# --- Views of episodes by timelines -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TimelineViews:
    """Implementation of EpisodeViews (bench.pages.capabilities) by timelines."""

    timeline: TimelineMaker

    def text(self, item: Any, steps: Sequence[Step[Any]], system: str) -> str:
        return timeline_text(self.timeline(item, steps, system))

    def page(self, item: Any, episodes: Sequence[tuple[str, Sequence[Step[Any]]]]) -> str:
        return timeline_page(in_one_line(item.id), [self.timeline(item, steps, name) for name, steps in episodes])
