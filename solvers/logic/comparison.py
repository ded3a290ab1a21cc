"""Audit of another tool's list of models: members, models outside, certainties that the family does not share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import fsum
from typing import Protocol

from calibrant.dsl.logic import reference
from calibrant.dsl.logic.files.networks import ListedModel
from calibrant.dsl.logic.item import Clause, Edge, Model, Task, merge_nodes, model_size

MSE_TOLERANCE = 1e-4  # lists print four decimals


class Counted(Protocol):
    """A family as a comparison uses it."""

    @property
    def task(self) -> Task: ...
    @property
    def count(self) -> int: ...
    def clauses(self) -> Mapping[Clause, int]: ...
    def edges(self) -> Mapping[Edge, int]: ...
    def fits(self, member: Model) -> bool: ...
    def models(self) -> Iterable[Model]: ...
    def condition(self, clause: Clause, *, present: bool = True) -> Counted: ...


@dataclass(frozen=True, slots=True)
class OutsideModel:
    """A model of the list that is no member.

    rule: first rule broken, "" if only the limits are exceeded
    """

    number: int
    rule: str
    misfit: int | None
    size: int


@dataclass(frozen=True, slots=True)
class Overclaim:
    """A clause or edge that the list has always or never and the family does not.

    claimed: "always" or "never"; count: members that have it; witness: a member that contradicts the list
    """

    part: Clause | Edge
    claimed: str
    count: int
    witness: Model


@dataclass(frozen=True, slots=True)
class Misstatement:
    """A number of the list that is another one.

    number: of the model; field: mse or size
    """

    number: int
    field: str
    stated: float
    actual: float


@dataclass(frozen=True)
class Comparison:
    """Common part of a list and a family; models are numbered from 0 in the order of the list.

    num_listed: entries; num_distinct: different models; num_members: different members in it
    share: num_members / count of the family
    max_difference: greatest difference between the weighted frequency of a clause in the list and its share
    unknown_edges: edges of the list that the class lacks
    models: of the list, with merged_nodes put in: those that the prior's compression merged
    """

    num_listed: int
    num_distinct: int
    num_members: int
    share: Fraction
    outside_class: tuple[OutsideModel, ...]
    outside_limits: tuple[OutsideModel, ...]
    overclaims: tuple[Overclaim, ...]
    misstatements: tuple[Misstatement, ...]
    unknown_edges: tuple[Edge, ...]
    max_difference: Fraction
    max_difference_clause: Clause | None
    models: tuple[Model, ...]
    merged_nodes: tuple[str, ...]


def compare_models(family: Counted, listed: Sequence[ListedModel]) -> Comparison:
    """Return what a list of models has in common with a family, and where it claims more."""
    task = family.task
    judged = [_merge(entry.model, task) for entry in listed]
    models = [entry.model if model is None else model for entry, model in zip(listed, judged, strict=True)]
    distinct = set(models)
    # by the reference, not the lattice: the share of a foreign list must not rest on the count that it is held against
    members = {model for model in distinct if family.fits(model)}
    outside_class, outside_limits, misstatements = [], [], []
    for number, (entry, model) in enumerate(zip(listed, judged, strict=True)):
        rule = reference.CONSTANT if model is None else reference.broken_rule(model, task)
        size = model_size(models[number])
        misfit = None if rule else reference.misfit(models[number], task)
        if rule:
            outside_class.append(OutsideModel(number, rule, None, size))
        elif model not in members:
            outside_limits.append(OutsideModel(number, "", misfit, size))
        misstatements += _misstatements(number, entry, task)
    edges = sorted({edge for model in distinct for clause in model for edge in clause.edges} - set(task.edges))
    weighted = [replace(entry, model=model) for entry, model in zip(listed, models, strict=True)]
    difference, clause = _max_difference(family, weighted)
    names = {name for entry in listed for clause in entry.model for name in (clause.target, *clause.sources)}
    return Comparison(
        len(listed),
        len(distinct),
        len(members),
        Fraction(len(members), family.count) if family.count else Fraction(0),
        tuple(outside_class),
        tuple(outside_limits),
        tuple(_overclaims(family, distinct)),
        tuple(misstatements),
        tuple(edges),
        difference,
        clause,
        tuple(models),
        tuple(sorted(names & task.merged_nodes)),
    )


def _merge(model: Model, task: Task) -> Model | None:
    """Return the model over the class that the prior is compressed to; None for a formula that is 1 throughout."""
    return merge_nodes(model, task.merged_nodes) if task.merged_nodes and reference.is_acyclic(model) else model


def _misstatements(number: int, entry: ListedModel, task: Task) -> list[Misstatement]:
    findings = []
    size = model_size(entry.model)
    if entry.size is not None and entry.size != size:
        findings.append(Misstatement(number, "size", entry.size, size))
    if entry.mse is not None and reference.is_acyclic(entry.model):
        actual = mean_squared_error(entry.model, task)
        if abs(actual - entry.mse) > MSE_TOLERANCE:
            findings.append(Misstatement(number, "mse", entry.mse, actual))
    return findings


def mean_squared_error(model: Model, task: Task) -> float:
    """Return the mean of (prediction - value) squared over measured values, not discretised; 0 without any."""
    squares = []
    for experiment, row in zip(task.experiments, task.values, strict=True):
        answers = reference.predict(model, task.setup, experiment)
        differences = [int(a) - value for a, value in zip(answers, row, strict=True) if value is not None]
        # `**` raises where a product is infinite
        squares += [difference * difference for difference in differences]
    return fsum(squares) / len(squares) if squares else 0.0


def _overclaims(family: Counted, models: set[Model]) -> Iterable[Overclaim]:
    if not models or not family.count:
        return
    counts: Mapping[Clause, int] = family.clauses()
    first = next(iter(family.models()))  # lacks whatever no member has: a long list may call all of it certain
    always = frozenset.intersection(*models)
    ever = frozenset.union(*models)
    for clause in sorted(always | counts.keys()):
        count = counts.get(clause, 0)
        if clause in always and count < family.count:
            lacking = _witness(family, [clause], present=False) if count else first
            yield Overclaim(clause, "always", count, lacking)
        elif clause not in ever and count:
            yield Overclaim(clause, "never", count, _witness(family, [clause], present=True))
    edge_sets = [frozenset(edge for clause in model for edge in clause.edges) for model in models]
    edge_counts = family.edges()
    always_edges, ever_edges = frozenset.intersection(*edge_sets), frozenset.union(*edge_sets)
    for edge in sorted(always_edges | edge_counts.keys()):
        count = edge_counts.get(edge, 0)
        # the edge is missing exactly where every clause that has it is missing: one restriction
        using = [clause for clause in counts if edge in clause.edges] if count else []
        if edge in always_edges and count < family.count:
            yield Overclaim(edge, "always", count, _witness(family, using, present=False) if count else first)
        elif edge not in ever_edges and count:
            yield Overclaim(edge, "never", count, _witness(family, using[:1], present=True))


def _witness(family: Counted, clauses: Sequence[Clause], *, present: bool) -> Model:
    """Return a member that has these clauses, or has none of them."""
    for clause in clauses:
        family = family.condition(clause, present=present)
    return next(iter(family.models()))


def _max_difference(family: Counted, listed: Sequence[ListedModel]) -> tuple[Fraction, Clause | None]:
    weight = sum(entry.weight for entry in listed)
    if not weight or not family.count:
        return Fraction(0), None
    frequencies: dict[Clause, int] = {}
    for entry in listed:
        for clause in entry.model:
            frequencies[clause] = frequencies.get(clause, 0) + entry.weight
    counts = family.clauses()
    best: tuple[Fraction, Clause | None] = (Fraction(0), None)
    for clause in sorted(frequencies.keys() | counts.keys()):
        difference = abs(Fraction(frequencies.get(clause, 0), weight) - Fraction(counts.get(clause, 0), family.count))
        if difference > best[0]:
            best = (difference, clause)
    return best
