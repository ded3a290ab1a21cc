"""Checks of extended items: gold and seed give the rows, and forecasts are of the held-out worlds."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.audits.replayscm.extended.attribution import heldout_requests
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.episode import task_class
from calibrant.dsl.replayscm.extensions.extension import is_flipped
from calibrant.dsl.replayscm.extensions.reference import replay_row
from calibrant.dsl.replayscm.extensions.scores import check_map
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.submission import Rejection
from calibrant.dsl.replayscm.world import World

MEASURED = "flips follow from sealed.seed: leave it out for measured rows"


def row_difference(problem: Problem, worlds: Sequence[World], *, is_noisy: bool) -> str | None:
    """Return where gold's rows, with the flips that the seed fixes, differ; empty if nowhere.

    None where that cannot be computed: no gold, or noise without a seed or with rates that are not stated
    """
    gold, seed = problem.sealed.gold, problem.sealed.seed
    scm_class = task_class(problem.task)
    rates = problem.sealed.rates if is_noisy else {}
    is_silent = scm_class.noise.is_silent or not is_noisy
    if gold is None or not worlds or (not is_silent and (seed is None or not rates)):
        return None
    for number, world in enumerate(worlds):
        targets = world.intervention.targets
        for row, values in enumerate(world.rows()):
            clamped = {v: values[v] for v in targets}
            flipped = frozenset(
                v
                for v, rate in rates.items()
                if v not in targets and seed is not None and is_flipped(seed, number, row, v, rate)
            )
            computed = replay_row(scm_class, gold.local_functions, values, clamped, flipped)
            for variable in scm_class.endogenous:
                if computed[variable] != values[variable]:
                    replayed, expected = computed[variable], values[variable]
                    reason = f"world {world.id}, row {row}: {variable} is {expected}, computed {replayed}"
                    return reason if is_silent else f"{reason}; {MEASURED}"
    return ""


def gold_rejection(problem: Problem) -> str | None:
    """Return why gold is no legal answer; empty if it is one, None without gold."""
    gold = problem.sealed.gold
    if gold is None:
        return None
    texts = {v: render(mechanism) for v, mechanism in gold.mechanisms.items()}
    checked = check_map(task_class(problem.task), problem.task.grammar, {"mechanisms": texts})
    return checked.reason if isinstance(checked, Rejection) else ""


def training_difference(problem: Problem) -> str | None:
    """Return where gold does not give the training rows."""
    return row_difference(problem, problem.task.training.worlds, is_noisy=True)


def heldout_difference(problem: Problem) -> str | None:
    """Return where gold does not give the held-out rows, which are clean."""
    return row_difference(problem, problem.sealed.heldout.worlds, is_noisy=False)


def forecast_difference(problem: Problem) -> str | None:
    """Return how the worlds to forecast differ from the held-out ones; None where nothing is to be forecast."""
    extension = problem.task.extension
    if extension is None or not extension.forecast_worlds:
        return None
    scm_class = task_class(problem.task)
    heldout = [(dict(do), tuple(contexts)) for do, contexts in heldout_requests(problem, scm_class)]
    stated = [
        (dict(world.constants), tuple(_number(context) for context in world.contexts))
        for world in extension.forecast_worlds
    ]
    if len(stated) != len(heldout):
        return f"{len(stated)} worlds to forecast, {len(heldout)} held out"
    for number, (forecast, true) in enumerate(zip(stated, heldout, strict=True)):
        # an intervention overwrites the values of the roots that it sets
        free = [i for i, root in enumerate(scm_class.roots) if root not in forecast[0]]
        if forecast[0] != true[0] or _bits(forecast[1], free) != _bits(true[1], free):
            return f"world {number} to forecast is not the held-out one"
    return ""


def _number(context: str) -> int:
    return int(context[::-1] or "0", 2)  # the first character is the first root, bit 0


def _bits(contexts: Sequence[int], places: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the bits at these places of each context."""
    return [tuple(context >> place & 1 for place in places) for context in contexts]
