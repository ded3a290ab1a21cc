"""Scoring of one file of answers against one pool, item by item: nothing that the file states about itself counts.

Items that the file leaves out count as wrong, several answers to an item by their mean.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from calibrant.bench.core.attribution import KEY, KINDS
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.scoring import Prediction
from calibrant.bench.report.overview.presence import is_answered
from calibrant.bench.report.pool_attribution import expected_rates
from calibrant.bench.report.scored_answers import STEPS
from calibrant.bench.scoring.predictions import Predictions
from calibrant.bench.scoring.scorer import PoolScorer
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr

MAX_SAMPLES = 64  # answers to one item
MAX_ANSWER_CHARS, MAX_REASON_CHARS = 4_000, 300
NO_LINE = "no line is about this item"
Expected = Mapping[str, float | None]  # rates of guessers: `draw` and `best`, null where they are not known
REASON_FIELDS = ("problem", "parseError", "failureExplanation", "why")  # of verdicts, the first that states something


class ItemResult(msgspec.Struct, frozen=True):
    """Answers of a system to one item.

    id: public id; right: mean over its answers; answered: whether one of them is an answer
    kinds: attribution of each answer, null where it is not known; reason: why it is not right, of the first answer
    answer: the first one, as text; num_steps: of its episode
    chance, best: of the guessers with the same evidence, means over the answers; null where they are not known
    unit: of clustering, which items of one latent model share
    """

    id: str
    setting: str
    right: float
    answered: bool
    num_samples: int
    kinds: tuple[str | None, ...]
    reason: str = ""
    answer: str = ""
    num_steps: int = 0
    chance: float | None = None
    best: float | None = None
    unit: str = ""


class CellResult(msgspec.Struct, frozen=True):
    """Answers of a system to a pool, an entry for every item of the pool, by public id."""

    items: tuple[ItemResult, ...]

    @property
    def rate(self) -> float:
        return _mean([item.right for item in self.items])

    @property
    def num_answered(self) -> int:
        return sum(item.answered for item in self.items)

    @property
    def chance(self) -> float | None:
        return self._level("chance")

    @property
    def best(self) -> float | None:
        return self._level("best")

    @property
    def kinds(self) -> dict[str, float]:
        """Return the share of items in each class of attribution, several answers by their mean; `none`: not known."""
        counts = Counter((kind or "none", len(item.kinds)) for item in self.items for kind in item.kinds)
        shares = dict.fromkeys((*KINDS, "none"), Fraction())
        for (kind, num_answers), times in counts.items():
            shares[kind] += Fraction(times, num_answers * len(self.items))
        return {kind: float(share) for kind, share in shares.items()}

    def _level(self, name: str) -> float | None:
        return _mean_or_none([getattr(item, name) for item in self.items])


class _Answer(NamedTuple):
    """One scored answer."""

    right: bool
    answered: bool
    kind: str | None
    reason: str
    text: str
    num_steps: int
    expected: Expected


class PoolJudge:
    """Scores files against a pool; evaluators and levels of items are cached."""

    def __init__(self, pool: Path) -> None:
        self._pool = pool
        self.scorer = PoolScorer([pool])
        self.of: Benchmark[Any] = self.scorer.benchmark
        (self._items,) = self.scorer.items
        self._expected: dict[str, Expected] = {}

    def fresh(self) -> PoolJudge:
        """Return a judge of the same pool that replays and scores everything anew; only levels of items are shared."""
        judge = PoolJudge(self._pool)
        judge._expected = self._expected
        return judge

    @cached_property
    def ids(self) -> Mapping[str, str]:
        """Return the public id of each item, in their order."""
        public = self._items.public
        assert public is not None
        return dict(sorted(((name, public.public(name)) for name in self._items.instances), key=lambda pair: pair[1]))

    def score_file(self, file: Path) -> CellResult:
        """Score a file; `CalibrantError` names the first line that cannot be scored or is forged."""
        answers: dict[str, list[_Answer]] = {name: [] for name in self.ids}
        models: set[str | None] = set()
        for prediction in Predictions(file, self.scorer):
            models.add(prediction.model)
            if len(models) > 1:
                names = ", ".join(sorted(map(short_repr, models)))
                raise CalibrantError(f"{file.name}: lines of several models: {names}; a submission is of one")
            listed = answers[prediction.instance]
            if len(listed) == MAX_SAMPLES:
                raise CalibrantError(f"{file.name}: more than {MAX_SAMPLES} answers to {self.ids[prediction.instance]}")
            listed.append(self._score(prediction))
        return CellResult(tuple(self._result(name, listed) for name, listed in answers.items()))

    def _score(self, prediction: Prediction) -> _Answer:
        scored = self.scorer.score(prediction)
        item, score, setting = self.scorer.item(prediction), scored.line, scored.context.setting
        attribution = score.get(KEY)
        if attribution is None:
            attribution = self.of.attribution(item, {}, prediction.steps, score)
        is_answer_right = self.is_right(score, setting)
        text = prediction.answer if isinstance(prediction.answer, str) else json.dumps(prediction.answer)
        stated = next((str(score[name]) for name in REASON_FIELDS if score.get(name)), "")
        return _Answer(
            is_answer_right,
            is_answered(self.of, score, setting),
            None if attribution is None else str(attribution["kind"]),
            "" if is_answer_right else in_one_line(stated)[:MAX_REASON_CHARS],
            text[:MAX_ANSWER_CHARS],
            len(prediction.steps),
            self._expected_rates(item, prediction.steps, {**score, KEY: attribution}),
        )

    def is_right(self, score: Mapping[str, Any], setting: str) -> bool:
        """Return whether an answer is right (bench.core.metrics.Success)."""
        return self.of.metrics.success.is_right(score, setting)

    def _expected_rates(self, item: Any, steps: Sequence[Any], score: Mapping[str, Any]) -> Expected:
        """Return what guessers with the same evidence expect, as `table --attribution` has it; once for each item."""
        if self.of.is_interactive(item):
            return expected_rates(self.of, item, {**score, STEPS: steps})
        if item.id not in self._expected:
            self._expected[item.id] = expected_rates(self.of, item, score)
        return self._expected[item.id]

    def _result(self, name: str, answers: Sequence[_Answer]) -> ItemResult:
        item = self.scorer.item(Prediction(self._items.digest, name, None, 0, ""))
        unit = self.of.metrics.unit_of(item)
        if not answers:
            score = self.of.scoring.score(item, self.of.scoring.no_answer(item), ())
            expected = self._expected_rates(item, (), score)
            levels = (expected["draw"], expected["best"])
            return ItemResult(self.ids[name], item.setting, 0.0, False, 0, (None,), NO_LINE, "", 0, *levels, unit)
        first = answers[0]
        return ItemResult(
            id=self.ids[name],
            setting=item.setting,
            right=_mean([float(answer.right) for answer in answers]),
            answered=any(answer.answered for answer in answers),
            num_samples=len(answers),
            kinds=tuple(answer.kind for answer in answers),
            reason=first.reason,
            answer=first.text,
            num_steps=first.num_steps,
            chance=_mean_or_none([answer.expected["draw"] for answer in answers]),
            best=_mean_or_none([answer.expected["best"] for answer in answers]),
            unit=unit,
        )


@lru_cache(maxsize=16)
def judge_of(pool: Path) -> PoolJudge:
    """Return the judge of a pool file that does not change meanwhile; one for each process."""
    return PoolJudge(pool)


def _mean(values: Sequence[float]) -> float:
    """Return the exact mean, rounded once; values are mostly few different ones, of which fractions are slow."""
    total = sum((Fraction(value) * times for value, times in Counter(values).items()), Fraction())
    return float(total / len(values)) if values else 0.0


def _mean_or_none(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return _mean(numbers) if len(numbers) == len(values) else None
