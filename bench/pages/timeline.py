"""Timeline of an episode: actions, readings and remaining hypotheses step by step.

A benchmark describes each moment; bench.pages.filmstrip draws them, in the same way for every benchmark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from calibrant.bench.core.attribution import UNDEFINED_VERDICT
from calibrant.bench.pages.aligned import aligned
from calibrant.bench.pages.graphs import GraphEdge, GraphNode


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


# --- Timelines as text: a line a step ---------------------------------------------------------------------------------
HEADINGS = ["Step", "In place", "Reading", "Left", "Answers", "What it did"]


def timeline_text(timeline: Timeline) -> str:
    """Return the steps of an episode in words, then its decision."""
    decision = timeline.decision
    wrong = UNDEFINED_VERDICT if decision.correct is None else f"not right, the right answer was {decision.truth}"
    verdict = "right" if decision.correct else wrong
    rows = [_row(moment, timeline) for moment in timeline.moments]
    return "\n".join(
        [
            f"{timeline.system} on {timeline.item}",
            aligned(HEADINGS, rows),
            f"{decision.kind}: answered {decision.answer}; {verdict}. {decision.why}",
            f"Hypotheses: {timeline.in_words}.",
        ]
    )


def _row(moment: Moment, timeline: Timeline) -> list[str]:
    placed = " ".join(timeline.objects[place] for place in moment.objects)
    news = f"{moment.news}: {moment.remark}" if moment.news else moment.remark
    return [moment.caption, placed, moment.reading, str(moment.members), str(len(moment.answers)), news]
