"""ReplaySCM's other questions as people answer them: alternatives with their experiment, and forecasts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from calibrant.dsl.formulas.text import infix, render
from calibrant.dsl.replayscm.extensions.extension import ForecastWorld, Question
from calibrant.dsl.replayscm.item import Problem, TaskKind
from calibrant.dsl.replayscm.world import World
from calibrant.solvers.outcome import Found
from calibrant.solvers.replayscm.alternative import AlternativeAnswer, find_alternative

NUM_ROWS = 2  # of a forecast


def alternative_of(item: Problem) -> Problem:
    """Return the question for an SCM that differs from the gold of an item."""
    return replace(item, task=replace(item.task, kind=TaskKind.ALTERNATIVE, reference=item.sealed.gold))


def forecast_of(item: Problem, worlds: Sequence[World]) -> Problem:
    """Return the question for held-out worlds of a passive extended item."""
    extension = item.task.extension
    assert extension is not None
    asked_for = tuple(
        ForecastWorld(
            dict(world.intervention.constants),
            tuple("".join(str(row[root]) for root in extension.roots) for row in world.rows()),
        )
        for world in worlds
    )
    asked = replace(extension, question=Question.FORECAST, forecast_worlds=asked_for)
    heldout = replace(item.sealed.heldout, worlds=tuple(worlds))
    return replace(item, task=replace(item.task, extension=asked), sealed=replace(item.sealed, heldout=heldout))


def short_forecast_of(item: Problem) -> Problem:
    """Return the question for the first held-out world of a passive extended item, in its first rows."""
    world = item.sealed.heldout.worlds[0]
    columns = tuple(c & (1 << NUM_ROWS) - 1 for c in world.columns)
    return forecast_of(item, [replace(world, units=world.units[:NUM_ROWS], columns=columns)])


def solved_alternative(item: Problem) -> AlternativeAnswer:
    solved = find_alternative(item.task)
    assert isinstance(solved, Found)
    return solved.value


def alternative_lines(answer: AlternativeAnswer) -> Iterator[str]:
    experiment, witness = answer.separation.experiment, answer.witness
    yield from (f"{name} = {infix(formula)}" for name, formula in answer.model.mechanisms.items())
    yield f"experiment {experiment.variable} = {experiment.value}"
    yield "witness " + ", ".join(f"{name} = {bit}" for name, bit in witness["rootAssignment"].items())
    yield from (f"differs {d['variable']} {d['reference']} {d['alternative']}" for d in witness["differences"])


def alternative_action(item: Problem, answer: AlternativeAnswer) -> dict[str, Any]:
    mechanisms, variables = answer.model.mechanisms, item.task.variables
    differences = sorted(answer.witness["differences"], key=lambda d: variables.index(d["variable"]))
    return {
        "alternative": {"mechanisms": {name: render(mechanisms[name]) for name in mechanisms}},
        "experiment": answer.separation.experiment.to_dict(),
        "witness": {"rootAssignment": dict(answer.witness["rootAssignment"]), "differences": differences},
    }


def alternative_choices(item: Problem, answer: AlternativeAnswer) -> Iterator[tuple[str, int]]:
    """Yield lists of the page and the entries that state experiment, witness and differences."""
    experiment = answer.separation.experiment
    yield "experiment", 1 + 2 * item.task.variables.index(experiment.variable) + experiment.value
    yield from ((f"witness-{name}", 1 + bit) for name, bit in answer.witness["rootAssignment"].items())
    yield from ((f"differs-{d['variable']}", 1 + d["reference"]) for d in answer.witness["differences"])


def forecast_chances(item: Problem) -> Mapping[tuple[int, int, str], int]:
    """Return the true bits by world, row and variable, from 1: the best forecast."""
    extension = item.task.extension
    assert extension is not None
    return {
        (1, number, name): row[name]
        for number, row in enumerate(item.sealed.heldout.worlds[0].rows(), 1)
        for name in extension.variables
        if name not in extension.roots and name not in extension.forecast_worlds[0].constants
    }


def forecast_action(item: Problem) -> dict[str, Any]:
    rows: dict[int, dict[str, int]] = {}
    for (_, row, name), bit in forecast_chances(item).items():
        rows.setdefault(row, {})[name] = bit
    return {"forecast": [list(rows.values())]}
