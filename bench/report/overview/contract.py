"""Contract of a benchmark with the overview of a report: its vocabulary, cost, chance levels, and explained answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import Capability
from calibrant.bench.core.metrics import InvalidHandling
from calibrant.bench.core.scoring import EvaluatorCache

if TYPE_CHECKING:
    from calibrant.bench.core.scoring import AnswerContext
    from calibrant.bench.report.capabilities import Remaining
    from calibrant.dsl.episode import Step


Score = Mapping[str, Any]


class Levels(NamedTuple):
    """Chances of being right on one item; a level is None if it is not finite or not certified.

    guess: chance of an answer drawn uniformly before any evidence
    draw: share of right answers among the hypotheses that fit the system's evidence
    ceiling: share of these hypotheses that give the most frequent answer, or the most frequent one that is known
    ceiling_bound: upper bound of that share; None if `ceiling` is exact
    """

    guess: float | None = None
    draw: float | None = None
    ceiling: float | None = None
    ceiling_bound: float | None = None

    @property
    def is_ceiling_exact(self) -> bool:
        return self.ceiling_bound is None


class LevelWords(NamedTuple):
    """Names of the levels in the legend; empty for a level that the benchmark lacks."""

    guess: str = ""
    draw: str = ""
    ceiling: str = ""


class Cost(NamedTuple):
    """Cost of an answer.

    unit: plural noun, such as "moves"; key: key of its metric; empty if the cost is seconds
    """

    unit: str
    key: str


class Move(NamedTuple):
    """Cells of one line about a step. is_highlighted: whether the line is."""

    cells: tuple[str, ...]
    is_highlighted: bool = False


@dataclass(frozen=True)
class Explanation:
    """Explanation of one answer.

    sentences: whether the evidence decided the question, and so whether the answer was earned
    response, gold: texts; empty if unavailable
    differs: left sides of the lines `name = ...` in which response and gold differ; None: compare them word by word
    title: replaces the title of the answer's class; empty for none
    response_note, gold_note: texts below response and gold
    chips: (tone, text) of the verdict; verdict_note: sentence below the chips
    headings, moves: table of the last steps, or of other rows if `moves_title` names them; empty for no table
    remaining: hypotheses still consistent when a person answered; None if not counted
    """

    sentences: tuple[str, ...]
    response: str
    gold: str = ""
    differs: tuple[str, ...] | None = None
    title: str = ""
    response_note: str = ""
    gold_note: str = ""
    chips: tuple[tuple[str, str], ...] = ()
    verdict_note: str = ""
    headings: tuple[str, ...] = ()
    moves: tuple[Move, ...] = ()
    moves_title: str = ""
    remaining: Remaining | None = None


@dataclass(frozen=True)
class Words:
    """Vocabulary of a benchmark in a report.

    task: an item's question, as an imperative; items, hypotheses: plural nouns, such as "detectors"
    decided: phrase on how evidence decides, such as "by its own moves"; cost: None if answers have no cost
    uncounted: text on the answers that never have an attribution; empty if there are none
    """

    task: str
    items: str
    hypotheses: str
    decided: str
    levels: LevelWords
    cost: Cost | None = None
    uncounted: str = ""


class AnswerGuide(Protocol):
    """Reader of one benchmark's answers for a report. Items are None where their pool was not given."""

    @property
    def words(self) -> Words: ...

    def is_answered(self, score: Score) -> bool:
        """Return whether the response holds an answer."""
        ...

    def levels(self, item: Any, steps: Sequence[Step[Any]], score: Score) -> Levels:
        """Return the exact chances of being right."""
        ...

    def explain(
        self,
        item: Any | None,
        context: AnswerContext,
        answer: Mapping[str, Any] | str,
        steps: Sequence[Any],
        score: Score,
    ) -> Explanation:
        """Return the explanation of an answer, which is an object or a text, as it was given."""
        ...


GUIDE: Capability[AnswerGuide] = Capability("`report --format html`", "report:GUIDE")
_LEVELS: EvaluatorCache[Levels] = EvaluatorCache(1 << 16)  # 2^16 entries of four numbers


def answer_levels(
    guide: AnswerGuide, key: tuple[str, str], item: Any, steps: Sequence[Step[Any]], score: Score
) -> Levels:
    """Return the levels of an answer, computed once for equal steps on an item.

    key: (digest of the item's pool, id of the item)
    """
    return _LEVELS.get((*key, steps_digest(steps)), lambda: guide.levels(item, steps, score))


def steps_digest(steps: Sequence[Step[Any]]) -> bytes:
    """Return a digest of the steps of an episode; empty without any."""
    return blake2b(msgspec.json.encode(steps), digest_size=16).digest() if steps else b""


# --- Whether there is an answer at all, as the first column of the benchmark's table counts it ------------------------


def is_answered(bench: Benchmark[Any], score: Mapping[str, Any], setting: str) -> bool:
    """Return whether a response holds an answer, by the guide, else by the field `valid` of the sample."""
    guide = bench.capability(GUIDE)
    if guide is not None:
        return guide.is_answered(score)
    return bench.metrics.sample(bench.metrics.verdict(score, setting, InvalidHandling.PUBLISHED)).valid
