"""Which cells of the evidence a draft fits; a formula is judged by the observed values of what it mentions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from calibrant.bench.core.words import Draft, Position, WordsError
from calibrant.bench.replayscm.people.draft import read_formula, variables_to_explain
from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.replayscm.item import Problem


class _Table(NamedTuple):
    """Rows of a world; free: the variables that were not set."""

    rows: list[Mapping[str, int]]
    targets: frozenset[str]


def draft_formulas(item: Problem, draft: Draft) -> dict[str, Formula]:
    """Return the formulas of a draft that can be read."""
    formulas = {}
    for name, text in draft.get("formulas", {}).items():
        try:
            formulas[name] = read_formula(item, name, text)
        except WordsError:
            continue
    return formulas


def draft_problems(item: Problem, draft: Draft) -> dict[str, str]:
    """Return by variable why its formula cannot be read."""
    problems = {}
    for name, text in draft.get("formulas", {}).items():
        try:
            read_formula(item, name, text)
        except WordsError as error:
            problems[name] = str(error).removeprefix(f"{name}: ")
    return problems


def draft_graph(item: Problem, draft: Draft) -> dict[str, list[str]] | None:
    """Return the variables that each formula mentions; None before one is written."""
    formulas = draft_formulas(item, draft)
    if not formulas:
        return None
    names = dict.fromkeys([*item.task.variables, *(n for f in formulas.values() for n in f.variables)])
    return {name: list(formulas[name].variables) if name in formulas else [] for name in names}


def draft_cells(item: Problem, position: Position) -> dict[str, Any]:
    """Return by variable how many free cells its formula fits, of how many, and the [world, row] of the others."""
    formulas = draft_formulas(item, position.draft)
    judged: dict[str, Any] = {}
    for name in variables_to_explain(item, position.draft):
        formula = formulas.get(name)
        if formula is None or not formula.mentioned <= set(item.task.variables):
            continue
        wrong, total = [], 0
        for number, table in enumerate(_tables(item, position)):
            if name in table.targets:
                continue
            total += len(table.rows)
            for k, row in enumerate(table.rows):
                if formula.evaluate(lambda v, row=row: row[v], 1) != row[name]:  # type: ignore[misc]
                    wrong.append([number, k])
        judged[name] = {"right": total - len(wrong), "total": total, "wrong": wrong}
    return judged


def _tables(item: Problem, position: Position) -> Iterator[_Table]:
    for world in item.task.training.worlds:
        yield _Table(list(world.rows()), world.intervention.targets)
    extension = item.task.extension
    for step in position.steps:
        if step.reading is not None and extension is not None:
            rows = [dict(zip(extension.variables, map(int, row), strict=True)) for row in step.reading["rows"]]
            yield _Table(list(rows), frozenset(step.action.get("do", {})))
