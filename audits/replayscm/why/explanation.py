"""Why a ReplaySCM task is open: count, open variables, the smallest differing pair, a witness, worlds that decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from math import comb
from random import Random
from typing import NamedTuple

import msgspec

from calibrant.audits.replayscm.ambiguity import restrict_to_grammar
from calibrant.audits.replayscm.why import smallest_pair
from calibrant.audits.replayscm.why.parts import (
    Context,
    Contradiction,
    DecidedVariable,
    Decider,
    Evidence,
    EvidenceWorld,
    Exclusion,
    FittingScm,
    OpenVariable,
    Pair,
    Reading,
    ReplayWhy,
    TableRow,
    WithoutWorld,
    Witness,
    differing_contexts,
    facts,
    reason,
    table_rows,
    target_menu,
    title,
    values_at,
    with_truth,
    witness,
)
from calibrant.audits.why import Count, State, spans
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.disclosure import HiddenOrder, HiddenRoots, natural
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from calibrant.solvers.outcome import Budget, BudgetSpent
from calibrant.solvers.replayscm.certified import certify
from calibrant.solvers.replayscm.exact import unsatisfied_words
from calibrant.solvers.replayscm.members import sample_member
from calibrant.solvers.replayscm.space import MAX_PARENTS, ModelClass, VersionSpace

# --- Two rows that no SCM of any class explains: equal in all possible parents, different in the variable


def smallest_contradiction(task: Task) -> Contradiction | None:
    """Return the first two contradicting rows, by variable and then by row; None without any, or with hidden roots."""
    roots = task.disclosure.roots
    for variable in (v for v in task.variables if roots is not None and v not in roots):
        parents = natural(task.disclosure.admissible_parents(variable))
        met: dict[tuple[int, ...], tuple[int, str]] = {}
        for world in task.training.worlds:
            if variable in world.intervention.targets:
                continue
            for unit, row in zip(world.units, world.rows(), strict=True):
                key, row_name = tuple(row[u] for u in parents), f"{world.id} {unit}"
                value, earlier = met.setdefault(key, (row[variable], row_name))
                if value != row[variable]:
                    return Contradiction(variable, earlier, row_name)
    return None


# --- The one SCM that fits: each mechanism row by row, and the parent sets that the evidence excludes -----------------
MAX_SETS = 6_000  # parent sets of a variable that are examined: 20 candidates, at most four of them parents
MAX_EXCLUDED = 6  # parent sets of a variable that are named, smallest first


def only_member(space: VersionSpace) -> Scm:
    """Return the SCM of a space that has exactly one, certified."""
    return certify(space.task, sample_member(space, Random(0), None))


def decided_variables(space: VersionSpace, model: Scm) -> tuple[DecidedVariable, ...]:
    """Return every mechanism of the only member, in its order, with its rows and the parent sets that they exclude."""
    return tuple(_decided(space, model, variable) for variable in model.order)


def _decided(space: VersionSpace, model: Scm, variable: str) -> DecidedVariable:
    parents = model.local_functions[variable].parents
    candidates = natural(space.task.disclosure.admissible_parents(variable))
    sizes = range(min(space.model_class.max_parents, len(candidates)) + 1)
    is_complete = sum(comb(len(candidates), size) for size in sizes) <= MAX_SETS
    exclusions = list(_exclusions(space, variable, parents)) if is_complete else []
    num_excluded = len(exclusions) if is_complete else None
    rows = table_rows(space.task, variable, model, model)
    return DecidedVariable(variable, parents, rows, tuple(exclusions[:MAX_EXCLUDED]), num_excluded)


def _exclusions(space: VersionSpace, variable: str, parents: tuple[str, ...]) -> Iterator[Exclusion]:
    """Yield the parent sets of the class that lack one of the parents, smallest first, each with what excludes it."""
    counts = space.local(space.index[variable]).counts
    candidates = natural(space.task.disclosure.admissible_parents(variable))
    for size in range(min(space.model_class.max_parents, len(candidates)) + 1):
        for names in combinations(candidates, size):
            if set(parents) <= set(names):
                continue
            rows = contradiction(space.task, variable, names)
            if rows is not None:
                yield Exclusion(names, *rows)
            elif space.assumed is None and counts.get(sum(1 << space.index[name] for name in names)):
                yield Exclusion(names)  # the rows admit it; the member is the only acyclic assignment


def contradiction(task: Task, variable: str, names: tuple[str, ...]) -> tuple[str, str] | None:
    """Return two rows with the variable free that agree in these variables and differ in it; None if there are none."""
    first: dict[tuple[int, ...], tuple[int, str]] = {}
    for world in task.training.worlds:
        if variable in world.intervention.targets:
            continue
        for unit, row in zip(world.units, world.rows(), strict=True):
            row_name = f"{world.id} {unit}"
            value, earlier = first.setdefault(tuple(row[name] for name in names), (row[variable], row_name))
            if value != row[variable]:
                return earlier, row_name
    return None


DEFAULT_PARENTS = 4  # most published items draw at most four parents
MAX_COMPARED = 6  # open variables for which a pair is searched
MAX_WORLDS_LEFT_OUT = 24  # worlds up to which each is left out in turn, if one SCM fits


class Limits(NamedTuple):
    """Limits of the work on a reason, None for no limit.

    parent_sets: parent sets that fit, of all variables, times root sets; beyond it nothing is counted
    terms: terms of the sums of one count, over all root sets; beyond it the count is bounded
    pair_sets: budget of the search for two SCMs that fit, in compared parent sets
    """

    parent_sets: int | None = None
    terms: int | None = None
    pair_sets: int | None = None


@dataclass
class Parts:
    """Parts of a reason in one class, filled in step by step.

    count, state: of the SCMs that fit; rows: table of the pair's first differing variable
    context: the row of the witness; never: open variable -> (rows never shown, all rows), see `OpenVariable`
    """

    space: VersionSpace
    choices: smallest_pair.Choices
    count: Count
    state: State
    limits: Limits
    pair: smallest_pair.FittingPair | None = None
    rows: tuple[TableRow, ...] = ()
    witness: Witness | None = None
    context: Context | None = None
    deciders: tuple[Decider, ...] = ()
    never: dict[str, tuple[int, int]] = field(default_factory=dict)


def explain(
    task: Task,
    item: str,
    *,
    max_parents: int = DEFAULT_PARENTS,
    gold: Scm | None = None,
    columns: tuple[str, ...] = (),
    limits: Limits = Limits(),  # noqa: B008  # immutable
) -> ReplayWhy:
    """Return the reason for a task; `BudgetSpent` beyond the limits of root sets and parent sets.

    If nothing fits, the next wider class that has an SCM is explained, up to six parents. Under an assumption with
    directions or relations there is no pair; with relations no single variable is decided or open. If no SCM satisfies
    an assumption, the conflicting statements are the reason.

    gold: the sealed SCM, None unless it is revealed; nothing else of the sealed part is read
    columns: order of the variables in rows of the item's file, for worlds to copy; () for that of the task
    """
    parts = count_fitting(task, max_parents, limits)
    while parts.state == "empty" and parts.space.model_class.max_parents < MAX_PARENTS:
        wider = count_fitting(task, parts.space.model_class.max_parents + 1, limits)
        if wider.state == "empty" and wider.space.model_class.max_parents == MAX_PARENTS:
            break
        parts = wider
    if parts.state in ("open", "uncounted") and not _has_functions_assumed(parts):
        _compare(parts)
    why = _in_file_order(_assemble(parts, item, max_parents), columns)
    if task.assumption is not None and parts.state == "empty":
        words = unsatisfied_words([task], parts.space.model_class.max_parents)
        why = msgspec.structs.replace(why, reason=spans(f"{words[0].upper()}{words[1:]}."), contradiction=None)
    return why if gold is None else with_truth(why, gold)


def _has_functions_assumed(parts: Parts) -> bool:
    """Return whether an assumption is about more than the arcs and the number of parents of single variables."""
    assumed = parts.space.assumed
    return assumed is not None and bool(assumed.relations or any(assumed.rising) or any(assumed.falling))


def count_fitting(task: Task, max_parents: int, limits: Limits) -> Parts:
    """Count the SCMs of a class that fit, the first step of every reason; `BudgetSpent` as in `explain`."""
    model_class = restrict_to_grammar(ModelClass(max_parents), task.grammar)
    space = VersionSpace(task, model_class)
    choices = smallest_pair.Choices(space)
    is_related = space.assumed is not None and space.assumed.relations
    if not choices.root_sets or (is_related and not space.has_member()):
        return Parts(space, choices, Count(lower="0", upper="0"), "empty", limits)
    _require_few_sets(choices, limits.parent_sets)
    if limits.terms is not None:
        space.terms = limits.terms // len(choices.root_sets)
    try:
        count = Count(lower=str(space.count), upper=str(space.count))
    except BudgetSpent:
        certified = space.bounds
        count = Count(lower=str(certified.lower), upper=str(certified.upper))
    state: State = "uncounted" if not count.is_exact else "decided" if count.lower == "1" else "open"
    return Parts(space, choices, count, state, limits)


MAX_FACTORS = 3  # variables of `count_factors`: each costs about the count of the whole task


def count_factors(task: Task, why: ReplayWhy, names: Sequence[str], limits: Limits) -> dict[str, Fraction]:
    """Return variable -> SCMs that fit by SCMs that fit without it; {} for more than MAX_FACTORS variables.

    why: of the task, without an assumption, under the same limits; a variable is left out if a count is not exact
    """
    factors = {}
    for name in names if len(names) <= MAX_FACTORS and why.count.is_exact else ():
        with suppress(BudgetSpent):
            reduced_count = count_fitting(_drop_variable(task, name), why.max_parents, limits).count
            if reduced_count.is_exact and reduced_count.lower != "0":
                factors[name] = Fraction(int(why.count.lower), int(reduced_count.lower))
    return factors


def _drop_variable(task: Task, name: str) -> Task:
    """Return the task without a variable that is in no knowledge of order; interventions on it are none."""

    def drop_name(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(variable for variable in names if variable != name)

    disclosure, names = task.disclosure, drop_name(task.variables)
    if isinstance(disclosure, HiddenRoots):
        disclosure = replace(disclosure, variables=names, certain=drop_name(disclosure.certain))
    elif isinstance(disclosure, HiddenOrder):
        disclosure = replace(disclosure, variables=names, roots=drop_name(disclosure.roots))
    worlds = []
    for world in task.training.worlds:
        intervention = world.intervention
        constants = {variable: bit for variable, bit in intervention.constants.items() if variable != name}
        columns = tuple(map(world.column, names))
        worlds.append(
            World(world.id, Intervention(constants, drop_name(intervention.assigned)), names, world.units, columns)
        )
    return replace(task, disclosure=disclosure, training=Panel(names, tuple(worlds)))


def _require_few_sets(choices: smallest_pair.Choices, max_sets: int | None) -> None:
    """Raise `BudgetSpent` if parent sets times root sets are more than `max_sets`."""
    num_sets = choices.num_parent_sets * len(choices.root_sets)
    if max_sets is not None and num_sets > max_sets:
        roots = f"{len(choices.root_sets):,} root sets with {choices.num_parent_sets:,} parent sets that fit"
        raise BudgetSpent(f"{roots}; {max_sets:,} pairs of them are gone through")


def _compare(parts: Parts) -> None:
    """Find the pair, its witness and worlds that decide, for the open variable that a single row splits best."""
    search = smallest_pair.PairSearch(parts.space, parts.choices, Budget(parts.limits.pair_sets))
    open_variables = [(entry.functions, name) for name, entry in parts.choices.by_variable.items() if entry.is_open]
    settling = _settling(parts)
    best: tuple[tuple[object, ...], smallest_pair.FittingPair, tuple[Decider, ...], Context | None] | None = None
    for number, name in sorted(open_variables, key=lambda entry: entry[0])[:MAX_COMPARED]:
        pair = search.differing_in(name)
        if search.budget.exhausted and best is not None:
            break
        if pair is None:
            continue
        rows = table_rows(parts.space.task, name, pair.first, pair.second)
        parts.never[name] = sum(row.observed is None for row in rows), len(rows)
        splits = settling.splits(name, pair.first, pair.second) if settling else []
        deciders = tuple(settling.deciders(splits)) if settling else ()
        context = splits[0].context if splits else _first_context(name, pair.first, pair.second)
        key = (not splits, *(splits[0].rank if splits else (0, 0, 0)), pair.size, number)
        if best is None or key < best[0]:
            best = key, pair, deciders, context
    if best is None:
        with suppress(BudgetSpent):
            parts.pair = search.differing_in_roots()
        _certify(parts)
        return
    _, parts.pair, parts.deciders, parts.context = best
    _certify(parts)
    parts.rows = table_rows(parts.space.task, parts.pair.differing[0], parts.pair.first, parts.pair.second)
    if parts.context is not None:
        parts.witness = witness(parts.pair.differing[0], parts.context, parts.pair.first, parts.pair.second)
        if not parts.deciders and parts.state == "open":
            with suppress(BudgetSpent):
                parts.deciders = (
                    smallest_pair.readings_of_pair(parts.space, parts.context, parts.pair.first, parts.pair.second),
                )


def _certify(parts: Parts) -> None:
    """Check by the reference that both SCMs of the pair replay the training worlds."""
    for model in (parts.pair.first, parts.pair.second) if parts.pair else ():
        certify(parts.space.task, model)


def _settling(parts: Parts) -> smallest_pair.Settling | None:
    """Return the search for splitting rows; None if roots are open or the count of a row may exceed the budget."""
    if parts.state != "open" or len(parts.choices.root_sets) != 1:
        return None
    (roots,) = parts.choices.root_sets
    num_terms = sum(3 ** len(component.endogenous) for component in parts.space.weights(roots).components())
    if parts.limits.terms is not None and num_terms * smallest_pair.MAX_SLOW_ROWS > parts.limits.terms:
        return None
    return smallest_pair.Settling(parts.space, parts.choices, int(parts.count.lower))


def _first_context(variable: str, first: Scm, second: Scm) -> Context | None:
    by_targets = differing_contexts(variable, first, second, target_menu(variable, first, second))
    return next((contexts[0] for contexts in by_targets if contexts), None)


def _assemble(parts: Parts, item: str, asked_parents: int) -> ReplayWhy:
    task, choices = parts.space.task, parts.choices
    is_related = parts.space.assumed is not None and parts.space.assumed.relations and parts.state != "decided"
    stated = () if parts.state == "empty" or is_related else task.variables
    open_names = tuple(v for v in stated if parts.state != "decided" and choices.by_variable[v].is_open)
    roots = task.disclosure.roots or ()
    decided = tuple(v for v in stated if v not in roots and v not in open_names)
    member = only_member(parts.space) if parts.state == "decided" and not _has_functions_assumed(parts) else None
    why = ReplayWhy(
        benchmark="replayscm",
        item=item,
        title=title(item, parts.state),
        state=parts.state,
        reason=(),
        facts=(),
        open=open_names,
        decided=decided,
        count=parts.count,
        class_in_words=parts.space.model_class.describe(task),
        max_parents=parts.space.model_class.max_parents,
        evidence=_evidence(task),
        columns=task.variables,
        pair=_pair(parts),
        witness=parts.witness,
        deciders=parts.deciders,
        variables=tuple(_open_variable(parts, name) for name in open_names),
        model=None if member is None else _fitting(member, None),
        mechanisms=() if member is None else decided_variables(parts.space, member),
        without=tuple(_without_each_world(parts)) if parts.state == "decided" else (),
        contradiction=smallest_contradiction(task) if parts.state == "empty" else None,
        certificate=None,
    )
    return msgspec.structs.replace(why, reason=reason(why, asked_parents), facts=facts(why))


def _in_file_order(why: ReplayWhy, columns: tuple[str, ...]) -> ReplayWhy:
    """Return the reason with worlds to copy and their readings in this order of the variables."""
    if not columns or columns == why.columns:
        return why
    positions = [why.columns.index(name) for name in columns]

    def reordered(decider: Decider) -> Decider:
        rows = ["".join(row[k] for k in positions) for row in decider.world["rows"]]
        readings = tuple(
            Reading("".join(entry.row[k] for k in positions), entry.remaining) for entry in decider.readings
        )
        return msgspec.structs.replace(decider, world=decider.world | {"rows": rows}, readings=readings)

    return msgspec.structs.replace(why, columns=columns, deciders=tuple(map(reordered, why.deciders)))


def _evidence(task: Task) -> Evidence:
    worlds = tuple(
        EvidenceWorld(
            world.id,
            str(world.intervention),
            tuple(v for v in task.variables if v in world.intervention.targets),
            world.units,
            tuple(world.row_texts()),
        )
        for world in task.training.worlds
    )
    return Evidence(task.variables, task.disclosure.roots, worlds)


def _pair(parts: Parts) -> Pair | None:
    if parts.pair is None:
        return None
    first, second = (_fitting(model, parts.context) for model in (parts.pair.first, parts.pair.second))
    return Pair(parts.pair.differing, first, second, parts.rows, parts.pair.least)


def _fitting(model: Scm, context: Context | None) -> FittingScm:
    return FittingScm(
        model.roots,
        {v: render(model.mechanisms[v]) for v in model.order},
        {v: local.parents for v, local in model.local_functions.items()},
        model.size,
        values_at(model, context) if context is not None else {},
    )


def _open_variable(parts: Parts, name: str) -> OpenVariable:
    options = parts.choices.by_variable[name]
    never, total = parts.never.get(name, (None, None))
    return OpenVariable(name, str(options.functions), len(options.parent_sets), options.may_be_root, never, total)


def _without_each_world(parts: Parts) -> Iterator[WithoutWorld]:
    """Yield how many SCMs fit without each training world; nothing beyond MAX_WORLDS_LEFT_OUT worlds."""
    task = parts.space.task
    worlds = task.training.worlds
    if not 1 < len(worlds) <= MAX_WORLDS_LEFT_OUT:
        return
    for index, world in enumerate(worlds):
        training = Panel(task.training.variables, worlds[:index] + worlds[index + 1 :])
        space = VersionSpace(replace(task, training=training), parts.space.model_class)
        try:
            remaining = str(space.count)
        except BudgetSpent:
            remaining = f"at least {space.bounds.lower}"
        yield WithoutWorld(world.id, remaining)
