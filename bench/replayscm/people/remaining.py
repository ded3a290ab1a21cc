"""SCMs that the worlds of an item, or of an episode, left open, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from calibrant.audits.replayscm.ambiguity import headline_parents, sized_class
from calibrant.audits.replayscm.extended.attribution import item_evidence
from calibrant.bench.report.people.remaining import Hypothesis, Remaining, first_entries
from calibrant.dsl.episode import Step
from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.text import infix
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.episode import task_class
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import Scm, local_function
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.formulas.catalogue import synthesis_operators
from calibrant.solvers.formulas.lookup import formula_for
from calibrant.solvers.replayscm.hidden.mass import count_members
from calibrant.solvers.replayscm.hidden.members import first_members
from calibrant.solvers.replayscm.members import members_by_size, sample_members
from calibrant.solvers.replayscm.noise.best_map import best_map
from calibrant.solvers.replayscm.noise.posterior import Posterior
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

SCMS = ("SCM", "SCMs")
SIZED_PARENTS = 4  # up to so many parents every function is listed by least size
MAX_DRAWN = 10  # SCMs with wider mechanisms, where fewer than these have none
DRAWN = "Those with a mechanism of more than 4 parents were drawn at random."
NOISY = "With errors in the readings no SCM is ruled out; the most probable one is listed."


def list_remaining(item: Problem, steps: Sequence[Step[Any]], limit: int) -> Remaining | None:
    """List SCMs, smallest first; of an item with noise the most probable one."""
    try:
        if item.task.extension is not None:
            return _list_extended(item, steps, limit)
        return _list_plain(item, limit)
    except BudgetSpent:
        return None


def _list_plain(item: Problem, limit: int) -> Remaining:
    parents = headline_parents(item)
    space = VersionSpace(item.task, ModelClass(parents))
    narrow = min(parents, SIZED_PARENTS)
    sized = space.within(narrow, sized_class(item.task, narrow).max_size)
    show_roots = item.task.disclosure.roots is None
    listed = first_entries((Hypothesis(_scm_text(m, show_roots)) for m in members_by_size(sized)), limit)
    num_missing = min(limit, MAX_DRAWN, space.count) - len(listed)
    sampled: dict[str, None] = {}
    if num_missing > 0:
        texts = (_scm_text(m, show_roots) for m in sample_members(space, Random(0), 10 * MAX_DRAWN))
        sampled = dict.fromkeys(text for text in texts if Hypothesis(text) not in listed)
    entries = (*listed, *map(Hypothesis, [*sampled][: max(0, num_missing)]))
    return Remaining(SCMS, space.count, entries, note=DRAWN if sampled else "")


def _list_extended(item: Problem, steps: Sequence[Step[Any]], limit: int) -> Remaining | None:
    scm_class = task_class(item.task)
    posterior = Posterior(scm_class).condition(*item_evidence(item, steps))
    count = count_members(posterior)
    if not count:
        return None
    if not scm_class.noise.is_silent:
        best = best_map(posterior, item.task.grammar)
        entry = Hypothesis(_formulas_text(best.formulas), 1, float(best.share))
        return Remaining(SCMS, count, (entry,), note=NOISY)
    operators = synthesis_operators(item.task.grammar)
    members = (
        {name: formula_for(f.table, f.parents or (scm_class.roots[0],), operators) for name, f in member.items()}
        for member in first_members(posterior, limit)
    )
    return Remaining(SCMS, count, tuple(_by_size(members)))


def _by_size(members: Iterator[Mapping[str, Formula]]) -> Iterator[Hypothesis]:
    for formulas in sorted(members, key=lambda formulas: sum(f.size for f in formulas.values())):
        yield Hypothesis(_formulas_text(formulas))


def _scm_text(model: Scm, show_roots: bool) -> str:
    roots = f"roots {' '.join(natural(model.roots))}; " if show_roots else ""
    return roots + _formulas_text(model.mechanisms)


def _formulas_text(formulas: Mapping[str, Formula]) -> str:
    return "; ".join(f"{name} = {_formula_text(formulas[name])}" for name in natural(formulas))


def _formula_text(formula: Formula) -> str:
    """Return a formula as people type it; a constant, which has to mention some variable, in words."""
    function = local_function(formula)
    return infix(formula) if function.parents else f"always {function.table.bits & 1}"
