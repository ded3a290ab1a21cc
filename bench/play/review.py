"""Review of a participant's ended items beside the ideal learner (`run exact`), and the page about them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from calibrant.audits.why import number_text
from calibrant.bench.core.attribution import KEY, KIND_MEANINGS, NO_ANSWER, share_key, share_words
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import WORDS
from calibrant.bench.pages.capabilities import EPISODE_VIEWS, REVEALED_VIEWS, TIMELINES
from calibrant.bench.pages.page import design_page
from calibrant.bench.pages.timeline import Timeline, timeline_content
from calibrant.bench.play.folder import PlayFolder
from calibrant.bench.play.game import ItemKey
from calibrant.bench.report.capabilities import Remaining, RemainingLists
from calibrant.bench.report.overview.contract import GUIDE, Explanation, Levels
from calibrant.bench.report.sources import context_of
from calibrant.bench.runs.records import Record
from calibrant.bench.runs.workers import ExactEpisode, exact_episode
from calibrant.bench.scoring.scorer import steps_of
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError

# --- One ended item of a participant beside the ideal learner ---------------------------------------------------------
IDEAL = "the ideal learner"


@dataclass(frozen=True)
class ReviewedItem:
    """One ended item, computed from its record alone; sealed facts are part of it.

    item: under its public id for participants, under the pool's own id for researchers
    record: the participant's record
    ideal: episode of the ideal learner, None for a question
    attribution: of the answer (bench.core.attribution); empty if it is not counted
    """

    benchmark: Benchmark[Any]
    item: Any
    record: Record
    ideal: ExactEpisode | None
    attribution: Mapping[str, Any]

    @property
    def steps(self) -> Sequence[Step[Any]]:
        """The participant's steps; empty for a question."""
        return () if self.record.steps is msgspec.UNSET else steps_of(self.record.steps)

    @property
    def is_right(self) -> bool | None:
        """Whether the answer is right; None where nothing is held out."""
        return self.benchmark.metrics.success.judge(self.record.score, self.record.setting)

    @property
    def kind(self) -> str:
        """Class of the answer (`person_class`)."""
        return person_class(self.record, self.attribution)

    @property
    def moves(self) -> int | None:
        return None if self.record.steps is msgspec.UNSET else sum(step.cost for step in self.steps)

    @property
    def ideal_moves(self) -> int | None:
        return None if self.ideal is None else self.ideal.num_moves

    def row(self) -> dict[str, Any]:
        """Return the item's row of the table, for JSON."""
        return {
            "item": self.item.id,
            "kind": self.benchmark.require(WORDS).kind[0].capitalize(),
            "right": self.is_right,
            "class": self.kind,
            "left": str(self.attribution.get("members", "")),
            "moves": self.moves,
            "ideal": self.ideal_moves,
        }

    @property
    def levels(self) -> Levels:
        """Chances of being right with the same evidence."""
        guide = self.benchmark.capability(GUIDE)
        return Levels() if guide is None else guide.levels(self.item, self.steps, self._score)

    @property
    def explanation(self) -> Explanation | None:
        """Explanation of the answer beside gold; None if the benchmark has no guide."""
        guide = self.benchmark.capability(GUIDE)
        if guide is None:
            return None
        explained: Explanation = guide.explain(
            self.item, context_of(self.record), self.record.answer, self.steps, self._score
        )
        return explained

    @property
    def remaining(self) -> Remaining | None:
        """Hypotheses that fitted when it was answered; None if they are not counted."""
        return RemainingLists(self.benchmark).get(self.record.pool_digest, self.item, self.steps)

    @property
    def _score(self) -> dict[str, Any]:
        return {**self.record.score, KEY: dict(self.attribution)} if self.attribution else dict(self.record.score)

    def timelines(self, name: str) -> list[Timeline]:
        """Return the timelines of the participant's and the ideal learner's episode; [] for a question."""
        make = self.benchmark.capability(TIMELINES)
        if make is None or self.ideal is None:
            return []
        return [make(self.item, self.steps, name), make(self.item, self.ideal.steps, IDEAL)]

    def texts(self, name: str) -> list[tuple[str, str]]:
        """Return (title, text) of both episodes if the benchmark has no timelines; [] for a question."""
        views = self.benchmark.capability(REVEALED_VIEWS) or self.benchmark.capability(EPISODE_VIEWS)
        if views is None or self.ideal is None:
            return []
        return [
            (title, views.text(self.item, steps, title))
            for title, steps in ((name, self.steps), (IDEAL, self.ideal.steps))
        ]


class Reviews:
    """Cache of reviews of a folder, and of ideal episodes, which all participants share."""

    def __init__(self, folder: PlayFolder) -> None:
        self._folder = folder
        self._reviews: dict[tuple[str, ItemKey], ReviewedItem] = {}
        self._ideal: dict[ItemKey, ExactEpisode | None] = {}
        self._lock = threading.Lock()

    def get(self, participant: str, item: ItemKey) -> ReviewedItem:
        """Return an item that a participant ended, beside the ideal learner."""
        game, key = self._folder.game(participant, item), (participant, item)
        record, verdict = self._folder.record(participant, game), self._folder.verdict(participant, game)
        with self._lock:
            if item not in self._ideal:
                self._ideal[item] = exact_episode(game.pool.benchmark, game.pool.item(item.instance))
            if key not in self._reviews:
                attribution = verdict["attribution"] or {}
                self._reviews[key] = ReviewedItem(
                    game.pool.benchmark, game.shown, record, self._ideal[item], attribution
                )
            return self._reviews[key]


# --- The review page: a bar of classes, a table, and every item step by step ------------------------------------------
# classes in the order of the bar, right answers first
BAR = ("earned", "lucky", "right", "short", "missed", "wrong", "invalid", "no_answer", "unjudged")
GLYPHS = {"earned": "\u2713", "lucky": "\u2248", "right": "\u2713", "short": "\u25cb", "missed": "\u2717"}
GLYPHS |= {"wrong": "\u2717", "invalid": "\u2717", "no_answer": "\u25cb", "unjudged": "\u25cb"}
DASH = "\N{EN DASH}"


def review_page(title: str, participant: str, items: Sequence[ReviewedItem]) -> str:
    """Return the page about a participant's ended items, in the order in which they were begun."""
    counts = Counter(_class_of(item) for item in items)
    content = {
        "title": f"{participant} beside the ideal learner",
        "crumbs": [title, participant],
        "heading": _heading(items, counts),
        "bar": [{"kind": kind, "number": counts[kind]} for kind in BAR if counts[kind]],
        "bar_label": ", ".join(f"{counts[kind]} {share_words(kind)}" for kind in BAR if counts[kind]),
        "legend": list(_legend(counts)),
        "rows": [_row(number, item) for number, item in enumerate(items, 1)],
        "items": [_item(number, item, participant) for number, item in enumerate(items, 1)],
    }
    return design_page("play/review.html", content)


def person_class(record: Record, attribution: Mapping[str, Any]) -> str:
    """Return the share that a person's answer counts in (bench.core.attribution.SHARES); empty if uncounted."""
    share = share_key({**record.score, KEY: attribution, NO_ANSWER: record.outcome != "found"})
    return "" if share in (None, "uncounted") else str(share)


def _class_of(item: ReviewedItem) -> str:
    return item.kind or {True: "right", False: "wrong", None: "unjudged"}[item.is_right]


def _heading(items: Sequence[ReviewedItem], counts: Counter[str]) -> str:
    right = sum(item.is_right is True for item in items)
    earned = f", {counts['earned']} of them earned" if any(item.attribution for item in items) else ""
    return f"{right} of {sum(item.is_right is not None for item in items)} right{earned}"


def _legend(counts: Counter[str]) -> Iterator[dict[str, str]]:
    for kind in ("earned", "lucky", "short", "missed"):
        decided, _, right = KIND_MEANINGS[kind].partition(" and ")
        yield {"kind": kind, "text": f"{GLYPHS[kind]} {kind}: {decided}, {right}"}
    for kind in ("right", "wrong"):
        if counts[kind]:
            yield {"kind": kind, "text": f"{GLYPHS[kind]} {kind}: what the evidence had decided is not counted"}
    if counts["invalid"]:
        yield {"kind": "invalid", "text": f"{GLYPHS['invalid']} invalid: not a valid answer"}
    if counts["no_answer"]:
        yield {"kind": "no_answer", "text": f"{GLYPHS['no_answer']} no answer: ended without one"}
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
        "worth": f"{GLYPHS[kind]} {share_words(kind)}",
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
    """Return the sentence on whether the evidence decided the answer."""
    if item.record.outcome == "found":
        return "" if explanation is None else " ".join(explanation.sentences)
    decided = item.attribution.get("decided")
    if decided is None:
        return "No answer was given."
    return f"No answer was given; the evidence had left {'one answer' if decided else 'several answers'}."


def _ideal_sentence(item: ReviewedItem) -> str:
    """Return the sentence on the ideal learner, with the same evidence and with its own moves."""
    ceiling, parts = item.levels.ceiling, []
    if ceiling is not None:
        parts.append(f"With the same evidence the best answer is right with probability {ceiling:.3g}.")
    if item.ideal is not None:
        ideal = item.ideal.describe()
        parts.append(f"The ideal learner, run exact, chose its own moves and {ideal}; here there were {item.moves:,}.")
    return " ".join(parts)
