"""Rules that the readings of an episode left open, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from calibrant.bench.blickets.guide import rule_text
from calibrant.bench.report.people.remaining import Hypothesis, Remaining, first_entries
from calibrant.dsl.blickets.item import BlicketItem, condition_of
from calibrant.dsl.episode import Step
from calibrant.solvers.blickets.conditions import OrderSpace
from calibrant.solvers.blickets.exact import DetectorSpace, class_of, space_after
from calibrant.solvers.blickets.space import OneRule

BY_RULE = "by the rule in force at the end"


def list_remaining(item: BlicketItem, steps: Sequence[Step[Any]], limit: int) -> Remaining | None:
    """List rules, or orders; of detectors that switch or are noisy the hypotheses by the rule in force at the end."""
    if condition_of(item.sealed) is None:
        return None
    space = space_after(class_of(item), item.task, steps)
    is_single = isinstance(space, OneRule | OrderSpace)
    noun = ("rule", "rules") if isinstance(space, OneRule) else ("hypothesis", "hypotheses")
    listed = first_entries(_entries(item, space), limit)
    return Remaining(noun, space.count, listed, "" if is_single else BY_RULE)


def _entries(item: BlicketItem, space: DetectorSpace) -> Iterator[Hypothesis]:
    """Yield rules in a fixed order; of noisy detectors the most probable first."""
    objects = item.task.objects
    if isinstance(space, OrderSpace):
        for order in space.members():
            yield Hypothesis(f"conjunctive, placed in the order {' '.join(objects[k] for k in order)}")
        return
    verdicts = space.verdicts()
    if item.sealed.p == 1:
        for rule, number in verdicts.items():
            yield Hypothesis(rule_text(rule.as_json(objects)), number)
        return
    posterior = space.posterior()
    for rule in sorted(verdicts, key=lambda rule: -posterior.get(rule, 0.0)):
        yield Hypothesis(rule_text(rule.as_json(objects)), verdicts[rule], posterior.get(rule, 0.0))
