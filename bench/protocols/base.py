"""What a protocol is: a named way to answer a task, with options; and the answer objects it gives.

A protocol is handed the task, never what is sealed. To add one, subclass `Protocol`, give it a name, options as fields
and an `answer`, and list it in bench.protocols.registry; runner, records, resuming and tables need nothing else.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import msgspec

from dsl.formulas.text import render
from dsl.replayscm.problem import Task, TaskKind
from dsl.replayscm.scm import Scm

if TYPE_CHECKING:
    from solvers.outcome import Impossible, OutOfBudget
    from solvers.replayscm.alternative import AlternativeAnswer

Outcome: TypeAlias = Literal["found", "impossible", "out_of_budget", "crashed"]


class ProtocolResult(msgspec.Struct, frozen=True):
    """What a protocol says about one task.

    answer: an answer object of the task's schema, also when nothing was found (`no_answer`)
    size: total formula size of the answer, where it has one
    provenance: how it was come by, ready for JSON; nothing that differs between two runs
    """

    outcome: Outcome
    answer: dict[str, Any]
    size: int | None = None
    provenance: dict[str, Any] = {}


class Protocol(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A way to answer tasks. Its fields are its options; together with its name they are part of a record's key."""

    name: ClassVar[str] = ""

    @property
    def config(self) -> dict[str, Any]:
        """The options, ready for JSON."""
        return dict(msgspec.to_builtins(self))

    def require(self) -> None:
        """`MissingExtraError` if an optional dependency is not installed; called before anything is started."""

    def warm_up(self) -> None:
        """Load and compile whatever an answer needs, so that no instance's time contains it."""

    def answer(self, task: Task) -> ProtocolResult:
        """The answer to one task; the same every time."""
        raise NotImplementedError


def scm_answer(kind: TaskKind, model: Scm) -> dict[str, Any]:
    """A model as the answer object of a task that asks for one."""
    mechanisms = {variable: render(mechanism) for variable, mechanism in model.mechanisms.items()}
    if kind is TaskKind.ROOTS:
        return {"roots": list(model.roots), "mechanisms": mechanisms}
    return {"mechanisms": mechanisms}


def alternative_answer(found: AlternativeAnswer) -> dict[str, Any]:
    """An Alternative-SCM answer object: the alternative, its experiment and the witness."""
    return {
        "alternative": scm_answer(TaskKind.SCM, found.model),
        "experiment": found.separation.experiment.to_dict(),
        "witness": dict(found.witness),
    }


def no_answer(kind: TaskKind) -> dict[str, Any]:
    """An object of the task's schema that answers nothing; it scores as not valid."""
    match kind:
        case TaskKind.SCM:
            return {"mechanisms": {}}
        case TaskKind.ROOTS:
            return {"roots": [], "mechanisms": {}}
        case TaskKind.ALTERNATIVE:
            return {"alternative": {"mechanisms": {}}, "experiment": {}, "witness": {}}


def nothing_found(task: Task, outcome: Impossible | OutOfBudget) -> ProtocolResult:
    """The result that says why there is no answer."""
    from solvers.outcome import Impossible

    kind: Outcome = "impossible" if isinstance(outcome, Impossible) else "out_of_budget"
    return ProtocolResult(kind, no_answer(task.kind), provenance=dataclasses.asdict(outcome))
