"""Values of a variable over the parents of two SCMs, a row in which they differ, and what only gold tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import combinations, islice, product
from typing import NamedTuple

import msgspec

from calibrant.audits.replayscm.why.parts import Decider, FittingScm, ReplayWhy, TableRow, Witness
from calibrant.audits.why import Fact
from calibrant.dsl.formulas.table import projection
from calibrant.dsl.formulas.text import ALL_OPERATORS, parse, render
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.evaluator import MAX_LAID_ROWS, Candidate, lay_out
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.reference import replay_row
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.world import Column, Intervention, World

# --- Values of a variable, row by row over the parents of two SCMs; and a row in which the two differ -----------------
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
    local = model.local_functions[variable]
    row = sum(values[u] << i for i, u in enumerate(local.parents))
    return local.table.bits >> row & 1


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


def differing_contexts(
    variable: str, first: Scm, second: Scm, menu: Sequence[Mapping[str, int]], limit: int = 1
) -> Iterator[list[Context] | None]:
    """Yield for each set of targets the first root assignments under which the variable differs between two SCMs.

    Roots that neither SCM needs for the variable are 0. None where more than MAX_ROOTS other roots are needed.
    """
    parents: dict[str, frozenset[str]] = dict.fromkeys(first.variables, frozenset())
    for model in (first, second):
        parents |= {v: parents[v] | mechanism.mentioned for v, mechanism in model.mechanisms.items()}
    every = _ancestors(variable, parents, {})
    models = [Candidate(m.mechanisms, tuple(v for v in m.order if v in every)) for m in (first, second)]
    together = [u for u in first.roots if u in every]
    length = MAX_LAID_ROWS >> len(together) if len(together) <= MAX_ROOTS else 1
    for start in range(0, len(menu), length):
        chunk = menu[start : start + length]
        needed = [[u for u in together if u not in cut and u in _ancestors(variable, parents, cut)] for cut in chunk]
        roots = together if length > 1 else needed[0]
        if len(roots) > MAX_ROOTS:
            yield None
            continue
        layout = lay_out(first.variables, roots, chunk)
        columns = [layout.simulate(model)[variable] for model in models]
        for number, (targets, names) in enumerate(zip(chunk, needed, strict=True)):
            rows = layout.block(columns[0] ^ columns[1], number)
            for i, u in enumerate(roots):
                if u not in names:
                    rows &= ~projection(i, len(roots)).bits
            yield [_context(first, targets, roots, row) for row in islice(_ones(rows), limit)]


def _context(model: Scm, targets: Mapping[str, int], roots: Sequence[str], row: int) -> Context:
    values = {u: row >> i & 1 for i, u in enumerate(roots)}
    return Context(dict(targets), {u: values.get(u, 0) for u in model.roots if u not in targets})


def _ones(rows: Column) -> Iterator[int]:
    while rows:
        yield (rows & -rows).bit_length() - 1
        rows &= rows - 1


def _ancestors(variable: str, parents: Mapping[str, Set[str]], cut: Mapping[str, int]) -> set[str]:
    """Return the variable and all that it is computed from, past targets only if one is the variable itself."""
    waiting, reached = [variable], {variable}
    while waiting:
        name = waiting.pop()
        if name not in cut or name == variable:
            waiting += parents[name] - reached
            reached |= parents[name]
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
    """Return the values of all variables by the reference: targets as set, roots as given, the rest computed."""
    world = World("context", Intervention(context.targets), model.variables, (), ())
    return replay_row(model, world, context.roots)


def witness(variable: str, context: Context, first: Scm, second: Scm) -> Witness:
    """Return the row of a context as a witness that two SCMs differ in a variable."""
    first_values, second_values = values_at(first, context), values_at(second, context)
    differing = tuple(u for u in natural(first.variables) if first_values[u] != second_values[u])
    needs_set = bool(context.targets) and not _differs_untouched(variable, first, second)
    return Witness(context.targets, context.roots, differing, needs_set)


def _differs_untouched(variable: str, first: Scm, second: Scm) -> bool:
    contexts = next(differing_contexts(variable, first, second, [{}]))
    return contexts is None or bool(contexts)  # too many roots: claim nothing


# --- Facts that only the gold SCM tells, added to a reason ------------------------------------------------------------


def with_truth(why: ReplayWhy, gold: Scm) -> ReplayWhy:
    """Return the reason with the gold SCM, what its readings leave, and which of the pair has its function."""
    facts = [Fact(_pair_words(why, gold), "gold")] if why.pair is not None else []
    mechanisms = {name: render(gold.mechanisms[name]) for name in gold.order}
    deciders = tuple(_with_reading(decider, why.columns, gold) for decider in why.deciders)
    return msgspec.structs.replace(why, true_mechanisms=mechanisms, sealed=tuple(facts), deciders=deciders)


def _pair_words(why: ReplayWhy, gold: Scm) -> str:
    assert why.pair is not None
    variable = why.pair.differing[0]
    equal = [
        letter
        for letter, model in (("A", why.pair.first), ("B", why.pair.second))
        if _has_function(model, variable, gold)
    ]
    return f"true {variable}: that of {equal[0]}" if equal else f"true {variable}: neither A nor B"


def _has_function(model: FittingScm, variable: str, gold: Scm) -> bool:
    if variable not in model.mechanisms or variable not in gold.mechanisms:
        return variable not in model.mechanisms and variable not in gold.mechanisms
    fitting = scm(model.roots, {name: parse(text, ALL_OPERATORS) for name, text in model.mechanisms.items()})
    return fitting.local_functions[variable] == gold.local_functions[variable]


def _with_reading(decider: Decider, variables: Sequence[str], gold: Scm) -> Decider:
    """Return a decider with what the gold SCM's reading leaves."""
    targets = decider.world.get("constants", {})
    (pattern,) = decider.world["rows"]
    roots = {name: int(bit) for name, bit in zip(variables, pattern, strict=True) if bit != "?" and name not in targets}
    if not set(gold.roots) <= roots.keys() | targets.keys():
        return decider
    values = values_at(gold, Context(dict(targets), roots))
    row = "".join(str(values[name]) for name in variables)
    remaining = next((reading.remaining for reading in decider.readings if reading.row == row), None)
    return msgspec.structs.replace(decider, sealed=remaining)
