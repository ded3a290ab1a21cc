"""The last step of every solver: nothing is returned that the reference has not replayed."""

from __future__ import annotations

from collections.abc import Mapping, Set

from calibrant.dsl.formulas.formula import Formula, constant
from calibrant.dsl.replayscm.problem import Task
from calibrant.dsl.replayscm.reference import first_mismatch
from calibrant.dsl.replayscm.scm import LocalFunction, Scm
from calibrant.dsl.replayscm.submission import illegality
from calibrant.solvers.formulas.essential import synthesised
from calibrant.solvers.formulas.lookup import formula_for


def certified(task: Task, model: Scm) -> Scm:
    """The model, once it is legal and the reference has replayed it on every training row.

    A failure is a defect of the solver that made the model: `AssertionError`.
    """
    wrong = illegality(task, model) or first_mismatch(model, task.training.worlds)
    if wrong:
        raise AssertionError(f"a solver's answer failed its certificate: {wrong}")
    return model


def certified_model(task: Task, max_parents: int, functions: Mapping[str, LocalFunction]) -> Scm:
    """The SCM with these local functions; the variables without one are its roots.

    Checked here, by what the evaluator goes by, and the functions and their numbers of
    parents. A failure is an error of the engine and raises AssertionError. `ValueError` if no text of the grammar can
    say one of the functions.
    """
    roots = tuple(v for v in task.variables if v not in functions)
    model = certified(task, Scm(roots, _mechanisms(task, roots, functions)))
    assert all(len(local.parents) <= max_parents for local in model.local_functions.values())
    assert dict(model.local_functions) == dict(functions)
    return model


def _mechanisms(task: Task, roots: tuple[str, ...], functions: Mapping[str, LocalFunction]) -> dict[str, Formula]:
    """Formulas in an order in which each mentions only what comes before: a constant too has to mention something."""
    placed: dict[str, Formula | None] = dict.fromkeys(roots)
    waiting = [v for v in task.variables if v in functions]
    while waiting:
        sayable = ((v, _formula(task, v, functions[v], placed.keys())) for v in waiting)
        variable, formula = next(((v, said) for v, said in sayable if said is not None), ("", None))
        if formula is None:
            raise ValueError(f"{', '.join(waiting)}: constants without anything that they may mention, or a cycle")
        placed[variable] = formula
        waiting.remove(variable)
    return {v: formula for v, formula in placed.items() if formula is not None}


def _formula(task: Task, variable: str, local: LocalFunction, placed: Set[str]) -> Formula | None:
    """The mechanism, or None as long as what it mentions is not placed."""
    operators = synthesised(task.grammar)
    if local.parents:
        return formula_for(local.table, local.parents, operators) if placed >= {*local.parents} else None
    if task.grammar.allow_constants:
        return constant(bool(local.table.bits))
    mention = next((v for v in placed if v in task.disclosure.admissible_parents(variable)), None)
    return None if mention is None else formula_for(local.table, [mention], operators)
