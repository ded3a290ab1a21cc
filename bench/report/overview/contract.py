"""Contract of a benchmark with the overview of a report: words, cost, levels of chance, and one answer in words."""

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
    """Chances of being right on one item; None where one is not finite, or not certified.

    guess: of an answer drawn before any evidence, all of them alike
    draw: share of what fits the system's evidence whose answer is right
    ceiling: largest share that one answer has among what fits
    ceiling_bound: no answer has a larger share, where `ceiling` is that of the best known one; None where it is exact
    """

    guess: float | None = None
    draw: float | None = None
    ceiling: float | None = None
    ceiling_bound: float | None = None

    @property
    def is_ceiling_exact(self) -> bool:
        return self.ceiling_bound is None


class LevelWords(NamedTuple):
    """Names of the levels, as the legend has them; empty for a level that the benchmark lacks."""

    guess: str = ""
    draw: str = ""
    ceiling: str = ""


class Cost(NamedTuple):
    """Cost of an answer.

    unit: plural, "moves"; key: of the metric whose mean `table --json` has; empty where it is seconds
    """

    unit: str
    key: str


class Move(NamedTuple):
    """Cells of one line about a step; `look` marks where the reader should look."""

    cells: tuple[str, ...]
    look: bool = False


@dataclass(frozen=True)
class Explanation:
    """One answer in words.

    sentences: what the evidence had decided, and what that says about the answer
    response, gold: as text; empty where they are not at hand
    differs: names before ` = ` in lines of both that state something else; None where both are compared as words
    title: instead of that of the answer's class; empty without one
    notes: (below the response, below gold); chips: (tone, text) of the verdict, and a sentence below them
    headings, moves: the last steps, or rows of another kind, named by `moves_title`; empty for answers without any
    remaining: hypotheses that were open when it was given, of answers of people; None where it is not counted
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
    """Words of a benchmark in a report.

    task: what an item asks, as an imperative; items: plural, "detectors"; hypotheses: what fits, plural
    decided: what decides, "by its own moves"; cost: None where there is none
    uncounted: which answers have no attribution whatever their evidence leaves; empty where none is left out by rule
    """

    task: str
    items: str
    hypotheses: str
    decided: str
    levels: LevelWords
    cost: Cost | None = None
    uncounted: str = ""


class AnswerGuide(Protocol):
    """Reader of one benchmark's answers for a report. Items are those of pools at hand; None without the pool."""

    @property
    def words(self) -> Words: ...

    def is_answered(self, score: Score) -> bool:
        """Return whether there is an answer at all."""
        ...

    def levels(self, item: Any, steps: Sequence[Step[Any]], score: Score) -> Levels:
        """Return the chances of being right, exact; None where they are not known."""
        ...

    def explain(
        self,
        item: Any | None,
        context: AnswerContext,
        answer: Mapping[str, Any] | str,
        steps: Sequence[Any],
        score: Score,
    ) -> Explanation:
        """Return one answer in words; `answer` is an object or a text, as it was given."""
        ...


GUIDE: Capability[AnswerGuide] = Capability("`report --format html`", "report:GUIDE")
_LEVELS: EvaluatorCache[Levels] = EvaluatorCache(1 << 16)  # of four numbers each


def answer_levels(
    guide: AnswerGuide, key: tuple[str, str], item: Any, steps: Sequence[Step[Any]], score: Score
) -> Levels:
    """Return the levels of an answer; equal steps on an item are traced once.

    key: digest of the item's pool, and its id
    """
    return _LEVELS.get((*key, steps_digest(steps)), lambda: guide.levels(item, steps, score))


def steps_digest(steps: Sequence[Step[Any]]) -> bytes:
    """Return a digest of the steps of an episode; empty without any."""
    return blake2b(msgspec.json.encode(steps), digest_size=16).digest() if steps else b""


# --- Whether there is an answer at all, as the first column of the benchmark's table counts it ------------------------


def is_answered(bench: Benchmark[Any], score: Mapping[str, Any], setting: str) -> bool:
    """Return whether there is an answer at all."""
    guide = bench.capability(GUIDE)
    if guide is not None:
        return guide.is_answered(score)
    return bench.metrics.sample(bench.metrics.verdict(score, setting, InvalidHandling.PUBLISHED)).valid
