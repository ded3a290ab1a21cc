"""Protocols: named ways to answer a task, each with its options. `calibrant run NAME` takes one of them.

A protocol is handed the task, never what is sealed. To add one, subclass `Protocol`, give it a name, options as fields
and an `answer`, and list it in PROTOCOLS; runner, records, resuming and tables need nothing else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import msgspec

from dsl.errors import CalibrantError
from dsl.problem import Task, TaskKind
from dsl.scm import Scm
from dsl.text import render

if TYPE_CHECKING:
    from solvers.alternative import AlternativeAnswer
    from solvers.outcome import Impossible, OutOfBudget

Outcome: TypeAlias = Literal["found", "impossible", "out_of_budget", "crashed"]
MAX_PARENTS = 6  # the solver's own limit


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


class Exact(Protocol, frozen=True):
    """The train-exact SCM of least total formula size, with proof of it, from solvers.exact.

    max_parents: how many variables a mechanism may mention
    """

    name = "exact"
    max_parents: int = 5

    def __post_init__(self) -> None:
        if not 1 <= self.max_parents <= MAX_PARENTS:
            raise ValueError(f"max_parents is {self.max_parents}; it has to be 1 to {MAX_PARENTS}")

    def warm_up(self) -> None:
        self.answer(_warming_task())

    def answer(self, task: Task) -> ProtocolResult:
        from solvers.alternative import find_alternative  # imports the compiler
        from solvers.exact import solve
        from solvers.outcome import Found

        if task.kind is TaskKind.ALTERNATIVE:
            other = find_alternative(task, max_parents=min(self.max_parents, 4))
            if isinstance(other, Found):
                return ProtocolResult(
                    "found", alternative_answer(other.value), other.value.size, dict(other.value.provenance)
                )
            return _nothing_found(task, other)
        outcome = solve(task, max_parents=self.max_parents)
        if isinstance(outcome, Found):
            found = outcome.value
            return ProtocolResult("found", scm_answer(task.kind, found.model), found.size, dict(found.provenance))
        return _nothing_found(task, outcome)


def _nothing_found(task: Task, outcome: Impossible | OutOfBudget) -> ProtocolResult:
    from solvers.outcome import Impossible

    kind: Outcome = "impossible" if isinstance(outcome, Impossible) else "out_of_budget"
    return ProtocolResult(kind, no_answer(task.kind), provenance=dataclasses.asdict(outcome))


PROTOCOLS: Mapping[str, type[Protocol]] = {protocol.name: protocol for protocol in (Exact,)}


def make_protocol(name: str, options: Mapping[str, Any]) -> Protocol:
    """The protocol of that name with these options, which may be texts; `CalibrantError` says what is known."""
    if name not in PROTOCOLS:
        raise CalibrantError(f"unknown protocol '{name}'; known: {', '.join(PROTOCOLS)}")
    try:
        return msgspec.convert(dict(options), PROTOCOLS[name], strict=False)
    except msgspec.ValidationError as error:
        known = ", ".join(PROTOCOLS[name].__struct_fields__) or "none"
        raise CalibrantError(f"protocol '{name}': {error}; its options: {known}") from None


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


def _warming_task() -> Task:
    """Mechanisms of 3 to 5 parents, seen in every row.

    To answer it takes all tables, and every kernel of the solver in every type that it is compiled for.
    """
    from dsl.disclosure import HiddenOrder
    from dsl.text import STANDARD, parse
    from dsl.world import Intervention, Panel, World

    roots = ("X1", "X2", "X3", "X4", "X5")
    texts = {
        "X6": "(not (xor X1 X2 X3))",
        "X7": "(xor X1 (and X2 (or X3 X4)))",
        "X8": "(iff (xor X1 X2) (and X3 X4) (or X1 X5))",
        "X9": "(iff X1 X2 (and X3 X4))",
        "X10": "(iff (and X1 X2) (or X3 (xor X4 X5)))",
    }
    num_rows = 1 << len(roots)
    columns = {root: sum((row >> i & 1) << row for row in range(num_rows)) for i, root in enumerate(roots)}
    for variable, text in texts.items():
        columns[variable] = parse(text, STANDARD, frozenset(roots)).evaluate(columns.__getitem__, (1 << num_rows) - 1)
    variables = tuple(columns)
    units = tuple(f"u{row}" for row in range(num_rows))
    world = World("w0", Intervention(), variables, units, tuple(columns.values()))
    disclosure = HiddenOrder(variables, roots)
    return Task(TaskKind.SCM, disclosure, STANDARD, Panel(variables, (world,)), shares_units=False, num_heldout=0)
