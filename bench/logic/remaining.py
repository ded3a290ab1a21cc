"""Logic models that the data of an item left open, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calibrant.bench.logic.guide import NONE
from calibrant.bench.report.people.remaining import Hypothesis, Remaining, first_entries
from calibrant.dsl.episode import Step
from calibrant.dsl.logic.clause import Model, model_texts
from calibrant.dsl.logic.item import LogicItem
from calibrant.solvers.logic.elimination.lattice import LatticeLimitError
from calibrant.solvers.logic.family import solve_family
from calibrant.solvers.outcome import Found


def list_remaining(item: LogicItem, steps: Sequence[Step[Any]], limit: int) -> Remaining | None:
    """List the models within the tolerances, those with least misfit and then least size first."""
    outcome = solve_family(item.task)
    if not isinstance(outcome, Found):
        return None
    family = outcome.value
    try:
        listed = first_entries((Hypothesis(_text(model)) for model in family.models()), limit)
    except LatticeLimitError:
        return None
    return Remaining(("model", "models"), family.count, listed)


def _text(model: Model) -> str:
    return "; ".join(model_texts(model)) or NONE
