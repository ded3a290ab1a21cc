"""Results of systems on the items of one benchmark: answers by class, chance levels and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from calibrant.bench.answers.rates import (
    Interval,
    Number,
    item_weights,
    natural,
    people_weights,
    sum_classes,
    weighted_sum,
)
from calibrant.bench.core.attribution import CLASSES, INVALID, NONE, RIGHT_CLASSES, answer_class, recorded_attribution
from calibrant.bench.core.metrics import InvalidHandling, MetricSet
from calibrant.bench.core.scoring import AnswerContext, participant_of
from calibrant.bench.core.verdict import MeanScore
from calibrant.bench.report.overview.contract import AnswerGuide, Levels
from calibrant.bench.report.rows import NamedAnswer
from calibrant.dsl.errors import in_one_line

NO_LEVELS = Levels()


@dataclass(frozen=True, slots=True)
class ItemKey:
    """An item of a pool."""

    digest: str
    id: str
    condition: str


@dataclass(slots=True)
class Outcome:
    """One scored answer.

    item: index in `Results.items`; kind: one of CLASSES, of equally good answers that of the chosen one
    shares: class -> share of the equally good answers; members: number of hypotheses that fit its evidence, or ""
    is_decided: whether its evidence left one answer; None if that is not counted
    weight: see `_set_weights`
    """

    item: int
    kind: str
    shares: Mapping[str, Number]
    is_decided: bool | None
    members: str
    cost: float | None
    context: AnswerContext
    score: Mapping[str, Any]
    weight: Number = 1
    levels: Levels = NO_LEVELS

    @property
    def is_right(self) -> bool:
        return self.kind in RIGHT_CLASSES

    @property
    def right(self) -> Number:
        """Share of the equally good answers that are right."""
        return sum((self.shares.get(kind, 0) for kind in RIGHT_CLASSES), start=0)

    @property
    def is_answered(self) -> bool:
        return self.kind not in (INVALID, NONE)


@dataclass
class SystemResult:
    """Answers of one system, weighted by item; those of a group of people, by participant (`_set_weights`)."""

    name: str
    outcomes: list[Outcome]

    @property
    def is_group(self) -> bool:
        """Whether it is a group of people."""
        return bool(participant_of(self.outcomes[0].context.system))

    @cached_property
    def num_items(self) -> int:
        return len({outcome.item for outcome in self.outcomes})

    @cached_property
    def counts(self) -> dict[str, Number]:
        """Number of items by class, which add up to `num_items`; fractions where an item has several answers."""
        return count_classes(self.outcomes)

    @cached_property
    def tally(self) -> dict[str, Number]:
        """Numbers by class for texts: of answers for a group of people, else of items."""
        return tally_classes(self.outcomes)

    def tallied(self, *kinds: str) -> Number:
        """Return the sum of `tally` over these classes."""
        return sum((self.tally[kind] for kind in kinds), start=0)

    @property
    def right(self) -> Number:
        return sum(self.counts[kind] for kind in RIGHT_CLASSES)

    @property
    def accuracy(self) -> float:
        return float(Fraction(self.right) / self.num_items)

    @property
    def chosen_accuracy(self) -> float | None:
        """Accuracy of the answers that a tie rule chose; None if it equals that of all equally good ones."""
        chosen = sum((outcome.weight for outcome in self.outcomes if outcome.is_right), start=0)
        return None if chosen == self.right or self.is_group else float(Fraction(chosen) / self.num_items)

    @property
    def is_counted(self) -> bool:
        """Whether some answer has an attribution."""
        return self.num_counted > 0

    @cached_property
    def num_counted(self) -> Number:
        """Number of items with an attribution, answered or not."""
        return sum((o.weight for o in self.outcomes if o.is_decided is not None), start=0)

    @cached_property
    def decided(self) -> Number:
        return sum((o.weight for o in self.outcomes if o.is_decided), start=0)

    def tally_decided(self) -> tuple[Number, Number]:
        """Return the numbers of decided and of counted items; of answers for a group of people."""
        counted = [outcome for outcome in self.outcomes if outcome.is_decided is not None]
        return self._tally(outcome for outcome in counted if outcome.is_decided), self._tally(counted)

    @property
    def counted_right(self) -> Number:
        return self.counts["earned"] + self.counts["lucky"]

    def _tally(self, outcomes: Iterable[Outcome]) -> Number:
        """Return the sum of weights; for a group of people, the number of answers."""
        return sum((1 if self.is_group else outcome.weight for outcome in outcomes), start=0)

    @cached_property
    def cost(self) -> float | None:
        """Mean cost over items with an answer; None if the cost of an answer is unknown."""
        costs = [(outcome.cost, outcome.weight) for outcome in self.outcomes if outcome.cost is not None]
        if not costs or any(outcome.cost is None and outcome.is_answered for outcome in self.outcomes):
            return None
        return float(weighted_sum(*zip(*costs, strict=True)) / sum(weight for _, weight in costs))

    @cached_property
    def levels(self) -> Levels:
        """Mean levels over items; a level is None if it is unknown for some answer."""
        level_list = [outcome.levels for outcome in self.outcomes]
        bound = None
        if not all(levels.is_ceiling_exact for levels in level_list):
            ends = (levels.ceiling if levels.is_ceiling_exact else levels.ceiling_bound for levels in level_list)
            bound = self._mean_level(list(ends))
        guess, draw, ceiling = (self._mean_level([levels[index] for levels in level_list]) for index in range(3))
        return Levels(guess, draw, ceiling, bound)

    def _mean_level(self, values: Sequence[float | None]) -> float | None:
        levels = [value for value in values if value is not None]
        if len(levels) < len(values):
            return None
        return float(weighted_sum(levels, [outcome.weight for outcome in self.outcomes]) / self.num_items)


def _set_weights(outcomes: Sequence[Outcome]) -> None:
    """Set weights that add up to the number of items, equal for every item; for people, equal for every participant."""
    participants = [participant_of(outcome.context.system) for outcome in outcomes]
    items = [outcome.item for outcome in outcomes]
    if len(set(participants)) > 1:
        shares, num_items = people_weights(participants), len(set(items))
        weights: list[Number] = [shares[participant] * num_items for participant in participants]
    else:
        weights = item_weights(items)
    for outcome, weight in zip(outcomes, weights, strict=True):
        outcome.weight = weight


def count_classes(outcomes: Iterable[Outcome]) -> dict[str, Number]:
    """Return the number of items by class."""
    shares = ((kind, outcome.weight * share) for outcome in outcomes for kind, share in outcome.shares.items())
    return dict.fromkeys(CLASSES, 0) | sum_classes(shares)


def tally_classes(outcomes: Sequence[Outcome]) -> dict[str, Number]:
    """Return a system's numbers by class for texts: of answers for people, whose weights differ, else of items."""
    if not outcomes or not participant_of(outcomes[0].context.system):
        return count_classes(outcomes)
    num_by_kind = Counter(outcome.kind for outcome in outcomes)
    return {kind: num_by_kind[kind] for kind in CLASSES}


@dataclass
class Results:
    """Results on one benchmark.

    name, title: of the benchmark; systems: best first; conditions: settings, or strata if there is one setting
    intervals: name of a system -> 95 % interval of its accuracy; None for too few items
    """

    name: str
    title: str
    guide: AnswerGuide
    systems: list[SystemResult]
    conditions: list[str]
    items: list[ItemKey]
    intervals: dict[str, Interval | None] = field(default_factory=dict)

    @property
    def num_items(self) -> int:
        return len(self.items)

    @property
    def num_answers(self) -> int:
        return sum(len(system.outcomes) for system in self.systems)

    @property
    def is_counted(self) -> bool:
        return any(system.is_counted for system in self.systems)

    @cached_property
    def items_by_condition(self) -> dict[str, int]:
        numbers = dict.fromkeys(self.conditions, 0)
        for item in self.items:
            numbers[item.condition] += 1
        return numbers

    @cached_property
    def outcomes_by_item(self) -> list[list[Outcome]]:
        by_item: list[list[Outcome]] = [[] for _ in self.items]
        for system in self.systems:
            for outcome in system.outcomes:
                by_item[outcome.item].append(outcome)
        return by_item

    def items_without(self, keep: str) -> list[int]:
        """Return the indices of items that no system's evidence decided, no system got right, or all systems missed.

        keep: "decided", "right" or "all-missed"
        """
        indices = []
        for index, outcomes in enumerate(self.outcomes_by_item):
            if keep == "decided":
                chosen = not any(o.is_decided for o in outcomes) and any(o.is_decided is False for o in outcomes)
            elif keep == "right":
                chosen = not any(o.is_right for o in outcomes)
            else:
                chosen = all(o.kind == "missed" for o in outcomes)
            if chosen:
                indices.append(index)
        return indices


def _class_of(score: Mapping[str, Any], setting: str, metrics: MetricSet) -> str:
    return answer_class(score, is_right=metrics.success.is_right(score, setting))


def _tie_shares(score: Mapping[str, Any], setting: str, metrics: MetricSet) -> dict[str, Number]:
    """Return class -> share of the equally good answers; empty for a single answer."""
    if not isinstance(score, MeanScore):
        return {}
    num_by_kind: Counter[str] = Counter()
    for times, part in score.parts:
        num_by_kind[_class_of(part, setting, metrics)] += times
    return {kind: Fraction(count, num_by_kind.total()) for kind, count in num_by_kind.items()}


def read_results(
    name: str,
    title: str,
    answers: Sequence[NamedAnswer],
    metrics: MetricSet,
    guide: AnswerGuide,
    *,
    with_times: bool = True,
) -> Results:
    """Group answers by system; the result does not depend on their order.

    answers: sorted by `named_answers`; with_times: use seconds as the cost of benchmarks that have no other
    """
    handling = InvalidHandling.PUBLISHED
    settings = {answer.context.setting for answer in answers}
    by_stratum = len(settings) == 1 and len({answer.context.stratum for answer in answers}) > 1
    costs = {metric.key: metric for metric in (*metrics.columns, *metrics.hidden)}
    cost = guide.words.cost
    cost_metric = costs.get(cost.key) if cost is not None else None
    keys: dict[tuple[str, str], ItemKey] = {}
    by_system: dict[str, list[tuple[tuple[str, str], Outcome]]] = {}
    conditions: dict[str, str] = {}
    for answer in answers:
        context, score = answer.context, answer.score
        if not metrics.success.is_defined(score, context.setting):
            continue
        key = context.pool_digest, context.instance
        if key not in keys:
            raw = context.stratum if by_stratum else context.setting
            condition = in_one_line(raw) or "all"
            conditions[condition] = context.setting
            keys[key] = ItemKey(context.pool_digest, context.instance, condition)
        if cost is None:
            spent = None
        elif cost_metric is None:
            spent = context.seconds if with_times else None
        else:
            spent = cost_metric.value(metrics.verdict(score, context.setting, handling))
        kind, attribution = _class_of(score, context.setting, metrics), recorded_attribution(score)
        shares = _tie_shares(score, context.setting, metrics) or {kind: 1}
        members = str(attribution.get("members", ""))
        outcome = Outcome(0, kind, shares, attribution.get("decided"), members, spent, context, score)
        by_system.setdefault(answer.system, []).append((key, outcome))
    order = sorted(
        conditions, key=lambda condition: (metrics.setting_order_key(conditions[condition]), natural(condition))
    )
    rank = {condition: index for index, condition in enumerate(order)}
    items = sorted(keys.values(), key=lambda item: (rank[item.condition], natural(item.id), item.digest))
    index_by_item = {(item.digest, item.id): index for index, item in enumerate(items)}
    systems = []
    for system, keyed_outcomes in by_system.items():
        for key, outcome in keyed_outcomes:
            outcome.item = index_by_item[key]
        _set_weights([outcome for _, outcome in keyed_outcomes])
        outcomes = sorted((outcome for _, outcome in keyed_outcomes), key=lambda o: (o.item, o.context.sample))
        systems.append(SystemResult(system, outcomes))
    systems.sort(key=lambda s: (-s.accuracy, -s.counts["earned"] / s.num_items, natural(s.name)))
    return Results(name, title, guide, systems, order, items)
