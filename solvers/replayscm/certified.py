"""Certificates: the evaluator replays every candidate, the reference every model that a solver returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from calibrant.dsl.formulas.formula import Formula, constant
from calibrant.dsl.replayscm.evaluator import replays
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.reference import first_mismatch
from calibrant.dsl.replayscm.scm import LocalFunction, Scm
from calibrant.dsl.replayscm.submission import illegality
from calibrant.dsl.replayscm.world import World
from calibrant.solvers.formulas.catalogue import synthesis_operators
from calibrant.solvers.formulas.synthesis import formula_for


def certify(task: Task, model: Scm) -> Scm:
    """Return the model if it is legal and the reference evaluator replays every training row by it.

    Else raise `AssertionError`: a defect of the solver.
    """
    require_replay(check(task, model), task.training.worlds)
    return model


def check(task: Task, model: Scm) -> Scm:
    """Return the model if it is legal and the fast evaluator replays every training row by it, for candidates.

    `AssertionError` as in `certify`. The reference takes 90 times as long, and names the cell of a failure.
    """
    fault = illegality(task, model)
    if fault:
        raise AssertionError(f"a solver's answer failed its certificate: {fault}")
    if not replays(model, task.training):
        require_replay(model, task.training.worlds)
        raise AssertionError("the evaluator refuses an SCM that the reference replays")
    return model


def require_replay(model: Scm, worlds: Sequence[World]) -> None:
    """Replay a model by the reference; raise `AssertionError` with the first wrong cell."""
    cell = first_mismatch(model, worlds)
    if cell:
        raise AssertionError(f"a solver's answer failed its certificate: {cell}")


def write_model(task: Task, max_parents: int, functions: Mapping[str, LocalFunction]) -> Scm:
    """Return the SCM with these local functions, checked; the variables without a function are its roots.

    Also checked: the numbers of parents, and that the formulas express the functions; `AssertionError` as in `certify`.
    `ValueError` if no formula of the grammar expresses one of the functions.
    """
    roots = tuple(v for v in task.variables if v not in functions)
    model = check(task, Scm(roots, _mechanisms(task, roots, functions)))
    assert all(len(local.parents) <= max_parents for local in model.local_functions.values())
    # read back from the formulas: a wrong entry of the catalogue could still replay the rows
    assert dict(model.local_functions) == dict(functions)
    return model


def _mechanisms(task: Task, roots: tuple[str, ...], functions: Mapping[str, LocalFunction]) -> dict[str, Formula]:
    """Return the formulas by variable, in an order in which each mentions only earlier variables."""
    placed: dict[str, Formula | None] = dict.fromkeys(roots)
    remaining = [v for v in task.variables if v in functions]
    # in a grammar without literals a constant has to mention a variable, and waits until an admissible one is placed
    while remaining:
        candidates = ((v, _formula(task, v, functions[v], placed.keys())) for v in remaining)
        variable, formula = next(((v, candidate) for v, candidate in candidates if candidate is not None), ("", None))
        if formula is None:
            raise ValueError(f"{', '.join(remaining)}: constants without anything that they may mention, or a cycle")
        placed[variable] = formula
        remaining.remove(variable)
    return {v: formula for v, formula in placed.items() if formula is not None}


def _formula(task: Task, variable: str, local: LocalFunction, placed: Set[str]) -> Formula | None:
    """Return the mechanism; None as long as the variables that it mentions are not placed."""
    operators = synthesis_operators(task.grammar)
    if local.parents:
        return formula_for(local.table, local.parents, operators) if placed >= {*local.parents} else None
    if task.grammar.allow_constants:
        return constant(bool(local.table.bits))
    mention = next((v for v in placed if v in task.disclosure.admissible_parents(variable)), None)
    return None if mention is None else formula_for(local.table, [mention], operators)
