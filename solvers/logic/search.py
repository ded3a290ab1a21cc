"""The least misfit by growing limits: a lattice that has a path within a limit has the optimum, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calibrant.dsl.logic import reference
from calibrant.dsl.logic.item import Experiment, Model, Task, fit_limit, model_size
from calibrant.solvers.logic.elimination.lattice import (
    MAX_STATES,
    UNREACHABLE,
    Lattice,
    LatticeBuilder,
    LatticeLimitError,
    prune,
)
from calibrant.solvers.logic.network import MAX_FORMULAS, Columns, Network
from calibrant.solvers.outcome import BestSoFar, Found, OutOfBudget

GAP_SHARES = (16, 8, 4, 2)  # parts of the gap between the bounds that a limit allows, one after the other


@dataclass(frozen=True, slots=True)
class Limits:
    """Budget of a search.

    states: over all layers; formulas: of one node
    """

    states: int = MAX_STATES
    formulas: int = MAX_FORMULAS


USUAL_LIMITS = Limits()


@dataclass(frozen=True)
class SearchResult:
    """The lattice of all models within the misfit limit, and the proven optimum with a model that has it."""

    lattice: Lattice
    misfit: int
    size: int
    witness: Model


def search(task: Task, limits: Limits = USUAL_LIMITS) -> Found[SearchResult] | OutOfBudget:
    """Return the lattice of the family without its size limit.

    `BestSoFar` with both bounds once an upper bound is there, else `OutOfBudget` states what ran out.
    """
    network = Network(task)
    columns = Columns(network, task.experiments, task=task)
    try:
        builder = LatticeBuilder(network, columns, max_states=limits.states, max_formulas=limits.formulas)
    except LatticeLimitError as error:
        return OutOfBudget(str(error))
    # the empty model is a model of the class: an upper bound exists before any state is expanded
    bounds = _Bounds(builder.lower_bound, reference.misfit((), task), frozenset())
    try:
        lattice = _search(task, builder, bounds)
    except LatticeLimitError as error:
        return BestSoFar(str(error), bounds.lower, incumbent=bounds.witness, upper_bound=bounds.upper)
    optimum = lattice.optimum
    assert optimum is not None
    witness = lattice.best_model()
    certify(witness, task, optimum)
    return Found(SearchResult(lattice, *optimum, witness))


@dataclass
class _Bounds:
    """Bounds on the least misfit, and a model that has the upper one."""

    lower: int
    upper: int
    witness: Model

    def take(self, lattice: Lattice, task: Task) -> None:
        """Lower the upper bound to the best model of a lattice, if that is better."""
        optimum = lattice.optimum
        if optimum is not None and lattice.least[0][0] < UNREACHABLE and optimum[0] < self.upper:
            witness = lattice.best_model()
            certify(witness, task, optimum)
            self.upper, self.witness = optimum[0], witness


def _search(task: Task, builder: LatticeBuilder, bounds: _Bounds) -> Lattice:
    fit = task.tolerance.fit
    bounds.take(builder.beam(), task)
    lower, gap = bounds.lower, bounds.upper - bounds.lower
    # a lattice within a small limit is small; without a path it proves lower = limit + 1, with one it has the optimum
    for share in GAP_SHARES:
        limit = lower + gap // share
        if limit >= bounds.upper:
            break
        lattice = builder.full(limit)
        if builder.within(lattice):
            bounds.take(lattice, task)
            bounds.lower = bounds.upper
            break
        bounds.lower = limit + 1
    lattice = builder.full(fit_limit(bounds.upper, fit))
    bounds.take(lattice, task)
    bounds.lower = bounds.upper
    return prune(lattice, fit_limit(bounds.upper, fit))


def certify(model: Model, task: Task, optimum: tuple[int, int]) -> None:
    """`AssertionError` unless the reference gives a model of the class this misfit and size."""
    measured = (reference.class_violation(model, task), reference.misfit(model, task), model_size(model))
    if measured != ("", *optimum):
        raise AssertionError(f"a model of misfit and size {optimum} is by the reference {measured}")


def lattice_within(
    task: Task,
    misfit_limit: int | None,
    readings: Sequence[tuple[Experiment, str]],
    limits: Limits = USUAL_LIMITS,
) -> Lattice | None:
    """Return the lattice of models within a misfit limit that give the readings (answers of all readouts).

    None if a readout that no formula changes answers otherwise. `LatticeLimitError` if the budget ran out.
    """
    network = Network(task)
    columns = Columns(network, task.experiments, task=task, readings=readings, readouts=task.setup.readouts)
    if not columns.consistent:
        return None
    builder = LatticeBuilder(network, columns, max_states=limits.states, max_formulas=limits.formulas)
    return prune(builder.full(misfit_limit), misfit_limit)


def class_lattice(task: Task, limits: Limits = USUAL_LIMITS) -> Lattice:
    """Return the lattice of all models of the class, without data; `LatticeLimitError` out of budget."""
    network = Network(task)
    columns = Columns(network, ())
    builder = LatticeBuilder(network, columns, max_states=limits.states, max_formulas=limits.formulas)
    return prune(builder.full(None), None)
