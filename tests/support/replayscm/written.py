"""Problems, worlds and SCMs written down in a test: short notations, nothing computed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant.bench.protocols import ProtocolResult
from calibrant.bench.replayscm.rows.exact import no_answer
from calibrant.dsl.formulas.text import STANDARD, Grammar, parse, render
from calibrant.dsl.records import convert_object
from calibrant.dsl.replayscm.disclosure import Disclosure, HiddenOrder
from calibrant.dsl.replayscm.item import Problem, Sealed, Task, TaskKind
from calibrant.dsl.replayscm.pools.records import ProblemRecord, problem_from_record
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from tests.support.replayscm.brute_force import assignments, replay


def written_scm(roots: str, **mechanisms: str) -> Scm:
    """Return an SCM as in `written_scm("A B", C="(and A B)")`."""
    return scm(roots.split(), {variable: parse(text) for variable, text in mechanisms.items()})


def written_world(
    name: str, variables: str, rows: str, *, do: Mapping[str, int] | None = None, assigned: str = ""
) -> World:
    """Rows are strings of bits in the order of `variables`, separated by spaces."""
    names, bits = variables.split(), rows.split()
    columns = tuple(sum(int(row[i]) << r for r, row in enumerate(bits)) for i in range(len(names)))
    units = tuple(f"u{r}" for r in range(len(bits)))
    return World(name, Intervention(do or {}, tuple(assigned.split())), tuple(names), units, columns)


def written_problem(
    disclosure: Disclosure,
    gold: Scm,
    training: Sequence[World],
    heldout: Sequence[World] = (),
    *,
    kind: TaskKind = TaskKind.SCM,
    grammar: Grammar = STANDARD,
    latent: str = "",
    reference: Scm | None = None,
    **sealed: Any,
) -> Problem:
    """Return a problem with gold's own size, and roots then mechanisms as latent order where none is given."""
    panels = [Panel(gold.variables, tuple(worlds)) for worlds in (training, heldout)]
    task = Task(kind, disclosure, grammar, panels[0], False, len(heldout), reference)
    order = tuple(latent.split()) or (*gold.roots, *gold.order)
    return Problem("I1", task, Sealed(gold, sealed.pop("gold_size", gold.size), panels[1], order, **sealed))


# --- The smallest instructive item: three worlds that never show X3 free with X1 = 1, X2 = 0; drawn by hand -----------
HEADER = {"format": "calibrant-pool", "version": 1, "name": "classroom", "metadata": {}}


def lamp_record(*more_worlds: dict[str, Any]) -> dict[str, Any]:
    """Return the native record; more_worlds: further training worlds."""
    worlds: list[dict[str, Any]] = [
        {"id": "w0", "rows": ["0000", "0100", "1110", "0000"]},
        {"id": "w1", "rows": ["0011", "0111", "1110", "1010"], "constants": {"X3": 1}},
        {"id": "w2", "rows": ["0000", "0100", "1101", "1001"], "constants": {"X3": 0}},
    ]
    return {
        "id": "lamp",
        "kind": "CIND_A_SCM",
        "variables": ["X1", "X2", "X3", "X4"],
        "units": ["u0", "u1", "u2", "u3"],
        "disclosure": {"type": "hidden_order", "roots": ["X1", "X2"]},
        "training": [*worlds, *more_worlds],
        "sealed": {},
    }


def lamp(*more_worlds: dict[str, Any]) -> Problem:
    return problem_from_record(convert_object(lamp_record(*more_worlds), ProblemRecord))


def write_classroom(folder: Path) -> Path:
    """Return a pool file with the item alone."""
    path = folder / "classroom.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (HEADER, lamp_record())), encoding="utf-8")
    return path


# --- Alternative-SCM problems for tests: a reference, and rows that one of the two SCMs explains ----------------------
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


# --- What a row gives to be scored ------------------------------------------------------------------------------------
def answered(task: Task, result: ProtocolResult) -> dict[str, Any]:
    """Return the answer of a row, or what stands in for it."""
    return no_answer(task.kind) if result.answer is None else result.answer
