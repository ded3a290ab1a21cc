"""Logic models under the contract. An item has no actions; its evidence grows by answers of the true model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from calibrant.audits.logic.generation import SUITES, LogicPlan, generate_items
from calibrant.bench.core.registry import benchmark
from calibrant.bench.logic.api import FUNCTIONS
from calibrant.bench.protocols import protocols_of
from calibrant.dsl.logic import reference
from calibrant.dsl.logic.files.midas import candidate_experiments
from calibrant.dsl.logic.item import Experiment, LogicItem, fit_limit, model_size
from calibrant.dsl.logic.score import parse_answer
from calibrant.solvers.logic.family import LogicFamily
from tests.support.contract.subject import Evidence, Settled, Subject

SMALL = LogicPlan(nodes=4, layers=2, in_degree=2, stimuli=2, readouts=2, inhibitors=1, experiments=3, noise=0.2)


def _family(item: LogicItem) -> LogicFamily:
    """Return the models that fit an item of measurements; trajectories have a space of another type."""
    space = FUNCTIONS.version_space(item)
    assert isinstance(space, LogicFamily)
    return space


class Logic(Subject):
    name = "logic"
    interactive = False
    settles = 5

    def items(self) -> Sequence[LogicItem]:
        return (*_drawn(3), *_small())

    def every(self) -> Sequence[LogicItem]:
        return _drawn(2)

    def small(self) -> Sequence[LogicItem]:
        return _small()

    def evidence(self, item: LogicItem, choices: Sequence[int]) -> Evidence:
        candidates = _experiments(item)
        assert item.sealed is not None
        chosen = [candidates[choice % len(candidates)] for choice in choices[:4]]
        return [(x, reference.predict(item.sealed.gold, item.task.setup, x)) for x in chosen]

    def space(self, item: LogicItem) -> LogicFamily:
        return _family(item)

    def truth_fits(self, item: LogicItem, space: LogicFamily) -> bool:
        return item.sealed is not None and space.fits(item.sealed.gold)

    def experiments(self, item: LogicItem, evidence: Evidence) -> Sequence[Experiment]:
        return _experiments(item)[:4]

    def listed(self, item: LogicItem, evidence: Evidence) -> int:
        task = item.task
        points = [(reference.misfit(model, task), model_size(model), model) for model in reference.all_models(task)]
        least = min((misfit, size) for misfit, size, _ in points)
        misfit_limit, extra = fit_limit(least[0], task.tolerance.fit), task.tolerance.size
        assert misfit_limit is not None
        assert extra is not None
        return sum(
            misfit <= misfit_limit
            and size <= least[1] + extra
            and all(reference.predict(model, task.setup, x) == reading for x, reading in evidence)
            for misfit, size, model in points
        )

    def settled(self) -> Iterator[Settled]:
        exact = protocols_of(self.benchmark)["exact"]()
        for item in _drawn(3):
            tables = list(_family(item).verdicts())
            if len(tables) == 1:
                answer = exact.answer(item.task).answer
                assert answer is not None
                model = parse_answer(answer, item.task)
                assert isinstance(model, frozenset)
                submitted = tuple(reference.predict(model, item.task.setup, x) for x in item.task.questions)
                right = self.benchmark.scoring.score(item, answer, ())["correct"] is True
                yield Settled(item.id, tables[0], submitted, right)

    def protocols(self) -> Mapping[str, object]:
        return {}

    def right(self, item: LogicItem, text: str) -> bool:
        return FUNCTIONS.score(item, text).correct is True


@cache
def _drawn(count: int) -> tuple[LogicItem, ...]:
    return tuple(benchmark("logic").suites.draw(tuple(SUITES), 4, count))


@cache
def _small() -> tuple[LogicItem, ...]:
    return tuple(generate_items(SMALL, 2, 6))


def _experiments(item: LogicItem) -> list[Experiment]:
    setup = item.task.setup
    return candidate_experiments(setup, max_stimuli=len(setup.stimuli), max_inhibitors=1)
