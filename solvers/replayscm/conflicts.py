"""Statements of an assumption that no SCM of a class satisfies together with the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.knowledge import Knowledge, Statement
from calibrant.dsl.replayscm.item import Task
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

MAX_LISTED_PAIRS = 200  # pairs of statements that are tried; beyond it statements are dropped one by one


def conflicting_statements(tasks: Sequence[Task], model_class: ModelClass) -> tuple[Statement, ...]:
    """Return statements that no SCM of the class satisfies together, none of which can be left out.

    A smallest set where it has one or two of them and pairs are few. Empty if some SCM satisfies all, or none fits even
    without the assumption. `BudgetSpent` where that is not decided.

    tasks: one, or more of the same assumption that differ in what they tell: an SCM fits if it fits one of them
    """
    assert tasks[0].assumption is not None
    statements = tasks[0].assumption.statements
    if _is_satisfiable(tasks, model_class, statements) or not _is_satisfiable(tasks, model_class, ()):
        return ()
    smallest: list[tuple[Statement, ...]] = [(statement,) for statement in statements]
    if len(statements) * (len(statements) - 1) // 2 <= MAX_LISTED_PAIRS:
        smallest += combinations(statements, 2)
    for chosen in smallest:
        if not _is_satisfiable(tasks, model_class, chosen):
            return chosen
    conflict = list(statements)
    for statement in statements:
        others = [member for member in conflict if member is not statement]
        if not _is_satisfiable(tasks, model_class, others):
            conflict = others
    return tuple(conflict)


def _is_satisfiable(tasks: Sequence[Task], model_class: ModelClass, statements: Sequence[Statement]) -> bool:
    knowledge = Knowledge(tuple(statements)) if statements else None
    try:
        return any(VersionSpace(replace(task, assumption=knowledge), model_class).has_member() for task in tasks)
    except CalibrantError:  # they clash with each other, whatever the evidence
        return False


def unsatisfied_words(tasks: Sequence[Task], max_parents: int) -> str:
    """Return, in words, which statements leave no SCM with at most so many parents a mechanism. tasks: see above."""
    try:
        conflict = conflicting_statements(tasks, ModelClass(max_parents))
    except BudgetSpent as spent:
        return f"no model of the class fits and satisfies the assumption; which of its lines conflict is open: {spent}"
    if conflict:
        return f"no model of the class fits and satisfies {_listed([statement.source for statement in conflict])}"
    if not _is_satisfiable(tasks, ModelClass(max_parents), ()):
        return "no model of the class fits, whether or not it satisfies the assumption"
    return "no model of the class fits and satisfies the assumption by formulas of these operators"


def _listed(sources: Sequence[str]) -> str:
    return sources[0] if len(sources) == 1 else f"{', '.join(sources[:-1])} and {sources[-1]}"
