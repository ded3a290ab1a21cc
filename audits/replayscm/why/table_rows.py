"""Values of a variable, row by row over the parents of two SCMs; and a row in which the two differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

from calibrant.audits.replayscm.why.parts import TableRow, Witness
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.table import projection
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.evaluator import compute
from calibrant.dsl.replayscm.problem import Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Column

MAX_ROOTS = 12  # every assignment of the roots is simulated
MAX_TARGETS = 3  # targets of a witness beside the parents themselves
MAX_UNION = 8  # parents of both SCMs together of which every row is listed


def union_parents(variable: str, *models: Scm) -> tuple[str, ...]:
    """Return the functional parents of a variable in any of the models, natural order."""
    return natural({u for model in models for u in model.local_functions[variable].parents})


def table_rows(task: Task, variable: str, first: Scm, second: Scm) -> tuple[TableRow, ...]:
    """Every row over the union of the parents, or those that are shown or differ where there are too many."""
    parents = union_parents(variable, first, second)
    visible, clamped = _places(task, variable, parents)
    every = len(parents) <= MAX_UNION
    keys = list(product((0, 1), repeat=len(parents))) if every else sorted({*visible, *clamped})
    rows = []
    for key in keys:
        values = dict(zip(parents, key, strict=True))
        places = visible.get(key, [])
        rows.append(
            TableRow(
                values,
                places[0][1] if places else None,
                local_value(first, variable, values),
                local_value(second, variable, values),
                tuple(place for place, _ in places),
                tuple(clamped.get(key, [])),
            )
        )
    return tuple(rows)


def local_value(model: Scm, variable: str, values: Mapping[str, int]) -> int:
    """Return the value of a mechanism where its functional parents have these values."""
    formula = model.mechanisms[variable]
    return int(evaluate(formula, {u: values.get(u, 0) for u in formula.mentioned}))


Key = tuple[int, ...]


def _places(
    task: Task, variable: str, parents: Sequence[str]
) -> tuple[dict[Key, list[tuple[str, int]]], dict[Key, list[str]]]:
    """Return where each row over the parents is shown: with the variable free and its value there, or set."""
    visible: dict[Key, list[tuple[str, int]]] = {}
    clamped: dict[Key, list[str]] = {}
    for world in task.training.worlds:
        for unit, row in zip(world.units, world.rows(), strict=True):
            key, place = tuple(row[u] for u in parents), f"{world.id} {unit}"
            if variable in world.intervention.targets:
                clamped.setdefault(key, []).append(place)
            else:
                visible.setdefault(key, []).append((place, row[variable]))
    return visible, clamped


class Context(NamedTuple):
    """Variables that are set, and values of the roots that are not."""

    targets: dict[str, int]
    roots: dict[str, int]


def differing_contexts(variable: str, first: Scm, second: Scm, targets: Mapping[str, int]) -> list[Context]:
    """Return the root assignments under which the variable differs between two SCMs if these targets are set.

    Roots that neither SCM needs for the variable are 0. `ValueError` for more than MAX_ROOTS other roots.
    """
    needed = [u for u in first.roots if u not in targets and u in _ancestors(variable, (first, second), targets)]
    if len(needed) > MAX_ROOTS:
        raise ValueError(f"{len(needed)} roots matter; every assignment of at most {MAX_ROOTS} is simulated")
    columns = [_simulate(model, needed, targets)[variable] for model in (first, second)]
    differing = columns[0] ^ columns[1]
    contexts = []
    for row in range(1 << len(needed)):
        if differing >> row & 1:
            roots = {u: row >> needed.index(u) & 1 if u in needed else 0 for u in first.roots if u not in targets}
            contexts.append(Context(dict(targets), roots))
    return contexts


def _simulate(model: Scm, roots: Sequence[str], targets: Mapping[str, int]) -> dict[str, Column]:
    every = (1 << (1 << len(roots))) - 1
    values = {u: projection(roots.index(u), len(roots)).bits if u in roots else 0 for u in model.roots}
    values |= {u: every if bit else 0 for u, bit in targets.items()}
    for u in model.order:
        if u not in targets:
            values[u] = compute(model.mechanisms[u], values, every)
    return values


def _ancestors(variable: str, models: Sequence[Scm], cut: Mapping[str, int]) -> set[str]:
    waiting, reached = [variable], {variable}
    while waiting:
        name = waiting.pop()
        if name in cut and name != variable:
            continue
        for model in models:
            for u in model.mechanisms[name].mentioned if name in model.mechanisms else ():
                if u not in reached:
                    reached.add(u)
                    waiting.append(u)
    return reached


def target_menu(variable: str, first: Scm, second: Scm) -> list[dict[str, int]]:
    """Interventions to look at, fewest targets first: none, each variable with each value, the parents of both SCMs."""
    names = [u for u in natural(first.variables) if u != variable]
    parents = union_parents(variable, first, second)
    menu: list[dict[str, int]] = [{}, *({u: bit} for u in names for bit in (0, 1))]
    for number in range(2, min(MAX_TARGETS, len(parents)) + 1):
        menu += [
            dict(zip(chosen, bits, strict=True))
            for chosen in combinations(parents, number)
            for bits in product((0, 1), repeat=number)
        ]
    if len(parents) > MAX_TARGETS:
        table = table_rows_that_differ(variable, first, second)
        menu += [dict(zip(parents, key, strict=True)) for key in table[:1]]
    return menu


def table_rows_that_differ(variable: str, first: Scm, second: Scm) -> list[Key]:
    """Return the rows over the union of the parents in which two SCMs give different values."""
    parents = union_parents(variable, first, second)
    keys = product((0, 1), repeat=len(parents))
    return [
        key
        for key in keys
        if local_value(first, variable, values := dict(zip(parents, key, strict=True)))
        != local_value(second, variable, values)
    ]


def values_at(model: Scm, context: Context) -> dict[str, int]:
    """Return the values of all variables by the reference's rules.

    Targets are as set, roots as given, the rest computed.
    """
    values: dict[str, int] = {}
    for u in (*model.roots, *model.order):
        if u in context.targets:
            values[u] = context.targets[u]
        elif u in model.mechanisms:
            values[u] = int(evaluate(model.mechanisms[u], values))
        else:
            values[u] = context.roots[u]
    return values


def witness(variable: str, context: Context, first: Scm, second: Scm) -> Witness:
    """Return the row of a context as a witness that two SCMs differ in a variable."""
    first_values, second_values = values_at(first, context), values_at(second, context)
    differing = tuple(u for u in natural(first.variables) if first_values[u] != second_values[u])
    needs_set = bool(context.targets) and not _differs_untouched(variable, first, second)
    return Witness(context.targets, context.roots, differing, needs_set)


def _differs_untouched(variable: str, first: Scm, second: Scm) -> bool:
    try:
        return bool(differing_contexts(variable, first, second, {}))
    except ValueError:  # too many roots: claim nothing
        return True
