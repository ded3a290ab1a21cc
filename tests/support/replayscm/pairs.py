"""Alternative-SCM problems for tests: a reference, and rows that one of the two SCMs explains."""

from __future__ import annotations

from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.item import Problem, TaskKind
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Intervention
from tests.support.replayscm.oracles import assignments, replay
from tests.support.replayscm.written import written_problem, written_world


def pair_problem(reference: Scm, rows: str) -> Problem:
    """Hidden-order, with training rows that are written in natural order of the variables."""
    variables = reference.variables
    world = written_world("train_00", " ".join(variables), rows)
    disclosure = HiddenOrder(variables, reference.roots)
    return written_problem(disclosure, reference, [world], kind=TaskKind.ALTERNATIVE, reference=reference)


def own_rows(model: Scm) -> str:
    """Return the rows that the model makes of every root assignment without intervention."""
    rows = [replay(model, Intervention(), roots.__getitem__) for roots in assignments(model.roots)]
    return " ".join("".join(str(row[v]) for v in model.variables) for row in rows)


def map_of(model: Scm) -> dict[str, str]:
    return {v: render(formula) for v, formula in model.mechanisms.items()}
