"""Answer objects of ReplaySCM tasks."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.item import TaskKind
from calibrant.dsl.replayscm.scm import Scm

if TYPE_CHECKING:
    from calibrant.solvers.replayscm.alternative import AlternativeAnswer


def scm_answer(kind: TaskKind, model: Scm) -> dict[str, Any]:
    """Return a model as the answer object of a task that asks for one."""
    mechanisms = {variable: _text(mechanism) for variable, mechanism in model.mechanisms.items()}
    if kind is TaskKind.ROOTS:
        return {"roots": list(model.roots), "mechanisms": mechanisms}
    return {"mechanisms": mechanisms}


@lru_cache(maxsize=1 << 12)  # equally good answers share nearly all mechanisms
def _text(mechanism: Formula) -> str:
    return render(mechanism)


def alternative_answer(alternative: AlternativeAnswer) -> dict[str, Any]:
    """Return an Alternative-SCM answer object: the alternative, its experiment and the witness."""
    return {
        "alternative": scm_answer(TaskKind.SCM, alternative.model),
        "experiment": alternative.separation.experiment.to_dict(),
        "witness": dict(alternative.witness),
    }


def no_answer(kind: TaskKind) -> dict[str, Any]:
    """Return an object of the task's schema that answers nothing; it scores as not valid."""
    match kind:
        case TaskKind.SCM | TaskKind.EPISODE:
            return {"mechanisms": {}}
        case TaskKind.ROOTS:
            return {"roots": [], "mechanisms": {}}
        case TaskKind.ALTERNATIVE:
            return {"alternative": {"mechanisms": {}}, "experiment": {}, "witness": {}}
