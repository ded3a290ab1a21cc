"""Extended blickets under the contract.

Two exceptions, both of unreliable detectors: the truth is a member of the class that knows the noise, and a member of
that class may give either reading where its rule is satisfied.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from hypothesis import strategies as st

from calibrant.baselines.blickets.dialogue import read_reply
from calibrant.bench.protocols import protocols_of
from calibrant.dsl.blickets.episode import BlicketEpisode, steps_with_state
from calibrant.dsl.blickets.generation import EASY, SUITES, Later, Plan, sample_items
from calibrant.dsl.blickets.item import BlicketItem, Condition, Count, Form
from calibrant.dsl.blickets.reference import is_active
from calibrant.dsl.blickets.score import grade
from calibrant.dsl.episode import Action
from calibrant.solvers.blickets.chains import Chain, ChainSpace
from calibrant.solvers.blickets.conditions import MAX_SWITCH, RELIABILITIES, Switching
from calibrant.solvers.blickets.exact import after_step, class_of, space_after
from tests.support.benchmarks.blickets import (
    Names,
    actions,
    all_orders,
    lights,
    lights_in_order,
    named_rules,
    switchers,
)
from tests.support.contract.subject import Evidence, Settled, Subject

PLANS: dict[str, Plan] = {
    **{name: SUITES[name] for name in ("conjunctive", "disjunctive", "graded", "easy-3", "hard-3", "order")},
    **{name: SUITES[name] for name in ("stochastic", "several-switches", "switch-by-steps", "noisy-switch")},
    "edge": replace(SUITES["easy-3"], count=Count.EDGE),
    "start": replace(SUITES["hard-3"], random_start=True),
}
SMALL_PLANS = (
    Plan(Condition.CONJUNCTIVE, n=3),
    Plan(Condition.DISJUNCTIVE, n=3),
    Plan(Condition.MODERATOR, n=3, later=(EASY,)),
    Plan(Condition.MODERATOR, n=3, later=(Later(Form.DISJUNCTIVE, 2, 2, shared=1),), count=Count.EDGE),
    Plan(Condition.ORDER, n=3),
    Plan(Condition.ORDER, n=3, blickets=3),
    Plan(Condition.STOCHASTIC, n=3, p=0.7),
)


class Blickets(Subject):
    name = "blickets"
    interactive = True
    settles = 30

    def items(self) -> Sequence[BlicketItem]:
        return [item for plan in PLANS.values() for item in islice(sample_items(plan, 3), 3)]

    def every(self) -> Sequence[BlicketItem]:
        return [
            replace(item, id=f"{name}-{index}")
            for name, plan in SUITES.items()
            for index, item in enumerate(islice(sample_items(plan, 3), 2))
        ]

    def small(self) -> Sequence[BlicketItem]:
        return [item for plan in SMALL_PLANS for item in islice(sample_items(plan, 4), 2)]

    def evidence(self, item: BlicketItem, choices: Sequence[int]) -> Evidence:
        """Return steps that read something, with what was on the detector then."""
        steps = steps_with_state(item.task, _toggled(item, choices).steps)
        return [(placed, step) for placed, step in steps if step.reading is not None]

    def space(self, item: BlicketItem) -> Any:
        return class_of(item)

    def after(self, space: Any, experiment: Any, reading: Any) -> Any:
        return after_step(space, experiment, reading)

    def truth_fits(self, item: BlicketItem, space: Any) -> bool:
        first, *others = item.sealed.mechanisms
        if isinstance(space, ChainSpace):
            rules = tuple(mechanism.rule for mechanism in item.sealed.mechanisms)
            return space.fits(Chain(rules, item.sealed.switches, item.sealed.p))
        match item.condition:
            case Condition.MODERATOR:
                switch = item.sealed.switches[0]
                return bool(space.fits(Switching(first.rule.canonical, others[0].rule.canonical, switch)))
            case Condition.ORDER:
                return bool(space.fits(first.order))
            case Condition.STOCHASTIC:
                return bool(space.fits((first.rule.canonical, item.sealed.p)))
            case _:
                return bool(space.fits(first.rule.canonical))

    def experiments(self, item: BlicketItem, evidence: Evidence) -> Sequence[tuple[int, ...]]:
        placed: tuple[int, ...] = evidence[-1][0] if evidence else ()
        others = [tuple(i for i in placed if i != index) for index in range(item.task.n)]
        return [o if index in placed else (*placed, index) for index, o in enumerate(others)]

    def overlaps(self, item: BlicketItem) -> bool:
        return item.condition in (Condition.STOCHASTIC, Condition.NOISY_MODERATOR)

    def listed(self, item: BlicketItem, evidence: Evidence) -> int:
        objects: Names = item.task.objects
        edge = item.task.count is Count.EDGE
        seen = [(tuple(objects[i] for i in placed), is_active(step.reading)) for placed, step in evidence]
        match item.condition:
            case Condition.ORDER:
                orders = all_orders(objects)
                return sum(all(lights_in_order(o, p, contiguous=False) == lit for p, lit in seen) for o in orders)
            case Condition.STOCHASTIC:
                heard = [placed for placed, lit in seen if lit]
                return len(RELIABILITIES) * sum(all(lights(r, p) for p in heard) for r in named_rules(objects))
            case Condition.MODERATOR:
                numbers = _activations_before(seen, edge=edge)
                return sum(
                    all(lights(s.rule(k), p) == lit for k, (p, lit) in zip(numbers, seen, strict=True))
                    for s in switchers(objects, MAX_SWITCH)
                )
            case _:
                return sum(all(lights(r, p) == lit for p, lit in seen) for r in named_rules(objects))

    def settled(self) -> Iterator[Settled]:
        exact = protocols_of(self.benchmark)["exact"]()
        rng = random.Random(1)
        for item in (replace(one, task=replace(one.task, condition=one.condition)) for one in self.items()):
            for length in (0, 8, 20):
                episode = _toggled(item, [rng.randrange(item.task.n) for _ in range(length)])
                exact.answer(episode)
                verdicts = list(space_after(self.space(item), item.task, episode.steps).verdicts())
                found = grade(item, episode.steps)
                if len(verdicts) == 1:
                    submitted = None if found.answer is None else found.answer.canonical
                    yield Settled(item.id, verdicts[0], submitted, found.correct is True)

    def actions(self, item: BlicketItem) -> st.SearchStrategy[list[Action]]:
        return actions(item.task.n).map(list)

    def untrue(self, reading: Any) -> str:
        return "INACTIVE" if is_active(reading) else "ACTIVE"

    def right(self, item: BlicketItem, text: str) -> bool:
        episode = self.benchmark.play.open(item)
        action: Mapping[str, Any] | None = read_reply(text, item.task.objects).action
        if action is not None:
            episode.act(action)
        return self.benchmark.scoring.score(item, {}, episode.steps)["correct"] is True


def _toggled(item: BlicketItem, choices: Sequence[int]) -> BlicketEpisode:
    """Return an episode after legal moves, each of the object of a number."""
    episode = BlicketEpisode(item)
    for index in choices:
        verb = "remove" if index % item.task.n in episode.placed else "place"
        episode.act({verb: item.task.objects[index % item.task.n]})
    return episode


def _activations_before(seen: Sequence[tuple[Names, bool]], *, edge: bool) -> list[int]:
    numbers, activations, last = [], 0, False
    for _, lit in seen:
        numbers.append(activations)
        activations += lit and not (edge and last)
        last = lit
    return numbers
