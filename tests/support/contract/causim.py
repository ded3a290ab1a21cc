"""CauSim under the contract. An item has no actions; its evidence grows by what else is seen of its world."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice

from calibrant.bench.causim.api import FUNCTIONS
from calibrant.bench.protocols import protocols_of
from calibrant.dsl.causim.generated_functions import TOPOLOGIES
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import assignment_text, run, symbols
from calibrant.dsl.causim.reference import work_out, worlds
from calibrant.solvers.causim.exact import AnswerSet
from calibrant.solvers.causim.generation import sampled_items
from calibrant.solvers.causim.space import WorldSpace
from tests.support.contract.subject import Evidence, Settled, Subject

LARGEST = 300  # worlds that are run one by one


class Causim(Subject):
    name = "causim"
    interactive = False
    settles = 10

    def items(self) -> Sequence[CausimItem]:
        return _drawn(8)

    def every(self) -> Sequence[CausimItem]:
        return _drawn(4)

    def small(self) -> Sequence[CausimItem]:
        return [item for item in _drawn(8) if len(item.task.model) <= 4]

    def evidence(self, item: CausimItem, choices: Sequence[int]) -> Evidence:
        world = _values(item)
        names = sorted(world)
        return [(name, world[name]) for name in (names[choice % len(names)] for choice in choices)]

    def space(self, item: CausimItem) -> WorldSpace:
        return WorldSpace(item.task.model, item.task.question)

    def truth_fits(self, item: CausimItem, space: WorldSpace) -> bool:
        return space.fits(item.sealed.world)

    def experiments(self, item: CausimItem, evidence: Evidence) -> Sequence[str]:
        return sorted(_values(item))[:6]

    def listed(self, item: CausimItem, evidence: Evidence) -> int:
        model, question = item.task.model, item.task.question
        seen = {**question.fixed, **question.observed, **dict(evidence)}
        found = 0
        for noise, _ in worlds(model, question.fixed):
            values = {**noise, **run(model, noise, {})}
            found += all(values[name] == value for name, value in seen.items())
        return found

    def settled(self) -> Iterator[Settled]:
        exact = protocols_of(self.benchmark)["exact"]()
        for item in _drawn(12):
            if AnswerSet(item.task.model, item.task.question).worlds > LARGEST:
                continue
            answers = list(work_out(item.task.model, item.task.question).answers)
            if len(answers) == 1:
                answer = exact.answer(item.task).answer
                assert answer is not None
                right = self.benchmark.scoring.score(item, answer, ())["correct"] is True
                yield Settled(item.id, answers[0], assignment_text(symbols(answer)), right)

    def protocols(self) -> Mapping[str, object]:
        return {}

    def right(self, item: CausimItem, text: str) -> bool:
        return FUNCTIONS.score(item, text).correct is True


@cache
def _drawn(count: int) -> tuple[CausimItem, ...]:
    return tuple(item for topology in TOPOLOGIES for item in islice(sampled_items(3, topology), count))


def _values(item: CausimItem) -> dict[str, str]:
    """Noise and factual values of the world that the question was drawn from."""
    return {**item.sealed.world, **run(item.task.model, item.sealed.world, {})}
