"""Alternative-SCM: another SCM that fits the training worlds, and an intervention that separates it from the reference.

Candidates: the reference with one mechanism changed, by total size, then members of the version space by total size.
The first that a single-variable intervention separates from the reference is the answer, with the best intervention of
the menu and a witness, so its optimality is 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.table import PartialTable, TruthTable, from_formula, full_mask
from calibrant.dsl.replayscm.alternatives import Separation, find_separation
from calibrant.dsl.replayscm.evaluator import replays
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import pack_panels
from calibrant.solvers.formulas.catalogue import synthesis_operators
from calibrant.solvers.formulas.synthesis import MAX_SIZE_OF_FOUR, formula_for, least_formula
from calibrant.solvers.outcome import Found, Impossible, OutOfBudget
from calibrant.solvers.replayscm.certified import require_replay
from calibrant.solvers.replayscm.members import members_by_size
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace, local_space

MAX_MEMBERS = 2_000  # members of the version space tried if no single edit is separable from the reference


@dataclass(frozen=True)
class AlternativeAnswer:
    """A train-exact SCM that differs from the reference, with the experiment and witness that show it."""

    model: Scm
    separation: Separation
    witness: Mapping[str, Any]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return self.model.size


def find_alternative(task: Task, *, max_parents: int = 4) -> Found[AlternativeAnswer] | Impossible | OutOfBudget:
    """Find an answer to an Alternative-SCM task, certified by the reference evaluator.

    `Impossible` if no SCM of the class (functional parents <= max_parents) but the reference fits.
    """
    if task.reference is None or task.disclosure.roots is None:
        raise ValueError("the task has no reference SCM")
    # fit is local (docs/semantics.md, Replay): an edit replays the rows only if all unchanged mechanisms do
    edits = _single_edits(task, task.reference, max_parents) if replays(task.reference, task.training) else ()
    # listing members by total size needs a cap; this cap excludes no function of up to 4 variables of the standard
    # operators
    space = VersionSpace(task, ModelClass(min(max_parents, 4), MAX_SIZE_OF_FOUR))
    # edits first: each is a look-up, whereas members by size need a sum over DAGs
    nearest = sorted(edits, key=lambda edited: edited.size)
    for model in chain(nearest, islice(members_by_size(space), MAX_MEMBERS)):
        answer = _answer(task, task.reference, model)
        if answer:
            return Found(answer)
    # `Impossible` only by a count of the whole class, of which the members tried may be a part
    if VersionSpace(task, ModelClass(max_parents)).count == _is_member(task, task.reference, max_parents):
        return Impossible(f"no second SCM with at most {max_parents} functional parents fits the training worlds")
    return OutOfBudget("no single edit and none of the smallest members is separable by one hard intervention")


def _is_member(task: Task, reference: Scm, max_parents: int) -> bool:
    """Return whether the reference is counted in its version space: in the class, legal, and right on all rows."""
    is_in_class = all(len(function.parents) <= max_parents for function in reference.local_functions.values())
    is_legal = not task.disclosure.violation(reference.mechanisms)
    return is_in_class and is_legal and replays(reference, task.training)


def _answer(task: Task, reference: Scm, model: Scm) -> AlternativeAnswer | None:
    """Return a candidate as an answer; None if it does not fit, is not legal, or cannot be told from the reference."""
    if model.equivalent(reference) or not replays(model, task.training):
        return None
    if task.disclosure.violation(model.mechanisms):
        return None
    difference = find_separation(reference, model)
    if difference is None:
        return None
    require_replay(model, task.training.worlds)
    provenance = {"candidates": "single edits of the reference, then members by size", "certified_by": "dsl.reference"}
    return AlternativeAnswer(model, *difference, provenance)


def _single_edits(task: Task, reference: Scm, max_parents: int) -> Iterator[Scm]:
    """Yield the reference with one mechanism exchanged for another that fits its variable's rows."""
    index = {variable: i for i, variable in enumerate(task.variables)}
    packed = pack_panels([task.training])
    for variable, mechanism in reference.mechanisms.items():
        # a descendant as a parent would close a cycle
        descendants = _descendants(reference, variable)
        allowed = sorted(index[u] for u in task.disclosure.admissible_parents(variable) - descendants)
        space = local_space(packed, index[variable], allowed, min(max_parents, len(allowed)))
        for mask, table in space.tables.items():
            names = tuple(u for u, i in index.items() if mask >> i & 1)
            for formula in _other_functions(table, names, mechanism, synthesis_operators(task.grammar)):
                yield Scm(reference.roots, {**reference.mechanisms, variable: formula})


def _descendants(model: Scm, variable: str) -> frozenset[str]:
    """Return a variable and all whose mechanism mentions it, directly or through others."""
    descendants = {variable}
    for candidate in model.order:
        if model.mechanisms[candidate].mentioned & descendants:
            descendants.add(candidate)
    return frozenset(descendants)


def _other_functions(
    table: PartialTable, names: tuple[str, ...], mechanism: Formula, operators: tuple[str, ...]
) -> Iterator[Formula]:
    """Yield formulas over `names` that fit: the mechanism with one unseen row flipped, or else the least formula."""
    if not names:
        return
    if mechanism.mentioned <= set(names):
        current = from_formula(mechanism, names)
        unseen = full_mask(table.num_vars) & ~table.care
        for row in range(unseen.bit_length()):
            if unseen >> row & 1:
                yield formula_for(TruthTable(table.num_vars, current.bits ^ 1 << row), names, operators)
        return
    outcome = least_formula(table, names, operators=operators) if table.num_vars <= 4 else None
    if isinstance(outcome, Found):
        yield outcome.value
