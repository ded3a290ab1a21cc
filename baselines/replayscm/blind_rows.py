"""Blind rows of extended items: they ignore noise, or hidden variables, and show what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calibrant.dsl.replayscm.disclosure import Blocks, HiddenOrder, Ordered, natural
from calibrant.dsl.replayscm.episodes.episode import task_class
from calibrant.dsl.replayscm.extensions.noise import NOISE_FREE
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.problem import Task
from calibrant.solvers.outcome import Found, Impossible, Outcome
from calibrant.solvers.replayscm.experiments.answers import ExtendedAnswer, answer_exact
from calibrant.solvers.replayscm.hidden.exact_mass import exact_mass
from calibrant.solvers.replayscm.noise.posterior import Posterior


def answer_noise_blind(task: Task, worlds: Sequence[EvidenceWorld]) -> Outcome[ExtendedAnswer]:
    """Keep rows in order while the noise-free space is not empty, then answer as `exact` without noise."""
    silent = _without_noise(task)
    singles = [EvidenceWorld(world.constants, (row,)) for world in worlds for row in world.rows]
    accepted = _consistent_rows(Posterior(task_class(silent)), singles)
    return answer_exact(silent, accepted)


def _consistent_rows(posterior: Posterior, rows: Sequence[EvidenceWorld]) -> list[EvidenceWorld]:
    """Return the rows that are kept one after the other while some SCM of a posterior fits them all."""
    if not rows or exact_mass(posterior.condition(*rows)):
        return list(rows)  # evidence that fits together is kept in any order
    if len(rows) == 1:
        return []
    first = _consistent_rows(posterior, rows[: len(rows) // 2])
    return [*first, *_consistent_rows(posterior.condition(*first), rows[len(rows) // 2 :])]


def answer_hidden_blind(task: Task, worlds: Sequence[EvidenceWorld]) -> Outcome[ExtendedAnswer]:
    """Answer as `exact` without hidden variables; as `noise-blind` if no such SCM fits."""
    visible = _without_hidden(task)
    answer = answer_exact(visible, worlds)
    return answer_noise_blind(visible, worlds) if isinstance(answer, Impossible) else answer


def answer_majority(task: Task, worlds: Sequence[EvidenceWorld]) -> Outcome[ExtendedAnswer]:
    """Answer each variable's more frequent free value, as a constant; 0 of equals."""
    scm_class = task_class(task)
    mechanisms = {}
    for place, variable in enumerate(scm_class.observed):
        if variable in scm_class.endogenous:
            values = [row[place] == "1" for world in worlds if variable not in world.constants for row in world.rows]
            root = scm_class.roots[0]
            mechanisms[variable] = f"(iff {root} {root})" if 2 * sum(values) > len(values) else f"(xor {root} {root})"
    return Found(ExtendedAnswer({"mechanisms": mechanisms}, None, "majority of free cells"))


def _without_noise(task: Task) -> Task:
    assert task.extension is not None
    return replace(task, extension=replace(task.extension, noise=NOISE_FREE))


def _without_hidden(task: Task) -> Task:
    """Return the task whose class has no hidden variables."""
    assert task.extension is not None
    hidden = set(task.extension.hidden)
    disclosure = task.disclosure
    match disclosure:
        case Ordered(order, roots):
            disclosure = Ordered(tuple(v for v in order if v not in hidden), roots)
        case Blocks(blocks, roots):
            rest = (tuple(v for v in block if v not in hidden) for block in blocks)
            disclosure = Blocks(tuple(block for block in rest if block), roots)
        case HiddenOrder(variables, roots):
            disclosure = HiddenOrder(natural(v for v in variables if v not in hidden), roots)
    return replace(task, disclosure=disclosure, extension=replace(task.extension, hidden={}))
