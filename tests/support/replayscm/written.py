"""Problems, worlds and SCMs written down in a test: short notations, nothing computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.dsl.formulas.text import STANDARD, Grammar, parse
from calibrant.dsl.replayscm.disclosure import Disclosure
from calibrant.dsl.replayscm.item import Problem, Sealed, Task, TaskKind
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.world import Intervention, Panel, World


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
