"""The least misfit by growing limits: a lattice with a path within a limit contains the optimum."""

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

GAP_SHARES = (16, 8, 4, 2)  # successive limits: lower bound + gap between the bounds divided by each of these


@dataclass(frozen=True, slots=True)
class Limits:
    """Budget of a search.

    states: states of all layers together; formulas: formulas of one node
    """

    states: int = MAX_STATES
    formulas: int = MAX_FORMULAS


USUAL_LIMITS = Limits()


@dataclass(frozen=True)
class SearchResult:
    """Lattice of all models within the misfit limit, and the proven optimum with a model that attains it."""

    lattice: Lattice
    misfit: int
    size: int
    witness: Model


def search(task: Task, limits: Limits = USUAL_LIMITS) -> Found[SearchResult] | OutOfBudget:
    """Return the lattice of the family without its size limit.

    If the budget runs out: `BestSoFar` with both bounds, or `OutOfBudget` before there are any.
    """
    network = Network(task)
    columns = Columns(network, task.experiments, task=task)
    try:
        builder = LatticeBuilder(network, columns, max_states=limits.states, max_formulas=limits.formulas)
    except LatticeLimitError as error:
        return OutOfBudget(str(error))
    # the empty model is in the class: its misfit is an upper bound before any state is expanded
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
    """Bounds of the least misfit, and a model that attains the upper one."""

    lower: int
    upper: int
    witness: Model

    def lower_upper(self, lattice: Lattice, task: Task) -> None:
        """Lower the upper bound to the misfit of a lattice's best model, if that is less."""
        optimum = lattice.optimum
        if optimum is not None and lattice.least[0][0] < UNREACHABLE and optimum[0] < self.upper:
            witness = lattice.best_model()
            certify(witness, task, optimum)
            self.upper, self.witness = optimum[0], witness


def _search(task: Task, builder: LatticeBuilder, bounds: _Bounds) -> Lattice:
    """Prove the least misfit, then return the lattice of all models within the tolerated fit of it."""
    fit = task.tolerance.fit
    bounds.lower_upper(builder.beam(), task)
    lower, gap = bounds.lower, bounds.upper - bounds.lower
    # a small limit makes a small lattice; without a path it proves a lower bound of limit + 1, with one it contains the
    # optimum
    for share in GAP_SHARES:
        limit = lower + gap // share
        if limit >= bounds.upper:
            break
        lattice = builder.full(limit)
        if builder.has_path(lattice):
            bounds.lower_upper(lattice, task)
            bounds.lower = bounds.upper
            break
        bounds.lower = limit + 1
    lattice = builder.full(fit_limit(bounds.upper, fit))
    bounds.lower_upper(lattice, task)
    bounds.lower = bounds.upper
    return prune(lattice, fit_limit(bounds.upper, fit))


def certify(model: Model, task: Task, optimum: tuple[int, int]) -> None:
    """Check a model by the reference; `AssertionError` if it is not of the class, or its misfit or size differs."""
    measured = (reference.class_violation(model, task), reference.misfit(model, task), model_size(model))
    if measured != ("", *optimum):
        raise AssertionError(f"a model of misfit and size {optimum} is by the reference {measured}")


def lattice_within(
    task: Task,
    misfit_limit: int | None,
    readings: Sequence[tuple[Experiment, str]],
    limits: Limits = USUAL_LIMITS,
) -> Lattice | None:
    """Return the lattice of models within a misfit limit that reproduce the readings (answers of all readouts).

    None if a readout that no formula changes answers otherwise. `LatticeLimitError` if the budget runs out.
    """
    network = Network(task)
    columns = Columns(network, task.experiments, task=task, readings=readings, readouts=task.setup.readouts)
    if not columns.consistent:
        return None
    builder = LatticeBuilder(network, columns, max_states=limits.states, max_formulas=limits.formulas)
    return prune(builder.full(misfit_limit), misfit_limit)


def class_lattice(task: Task, limits: Limits = USUAL_LIMITS) -> Lattice:
    """Return the lattice of all models of the class, without data; `LatticeLimitError` if the budget runs out."""
    network = Network(task)
    columns = Columns(network, ())
    builder = LatticeBuilder(network, columns, max_states=limits.states, max_formulas=limits.formulas)
    return prune(builder.full(None), None)
