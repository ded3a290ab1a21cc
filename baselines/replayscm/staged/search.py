"""The paper's symbolic exact-search: three stages of growing caps, the first train-exact SCM wins.

A stage lists candidate mechanisms per variable (baselines.replayscm.staged.candidates) and then tries to choose one of
each without a cycle, depth first, smallest first. It may fail where solvers.replayscm.exact does not: a variable can
need a larger formula or a parent set behind the caps, and the choice can need more nodes than there are.

Published (Appendix H, Table H.1): formula sizes up to 8, 10, 12; slack 2, 2, 3; 32, 32, 256 candidates; 50,000, 50,000,
100,000 states of a size; 2, 20, 600 seconds. Seconds are counted in nodes here, NODES_PER_SECOND each, so that every
machine gives the same answers. What slack is relative to, what a state is, and the order of the search are not
published: here a formula may be so much larger than the smallest candidate that closes no cycle with what was chosen
before, and baselines.replayscm.staged.candidates says what is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from calibrant.baselines.replayscm.staged._kernels_choice import first_choice
from calibrant.baselines.replayscm.staged.candidates import CandidateMechanism, Candidates, Caps
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.problem import Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.budget import Budget, BudgetSpent
from calibrant.solvers.formulas.catalogue import require_literals_alone
from calibrant.solvers.replayscm.certified import certify
from calibrant.solvers.replayscm.roots import iterate_likely_first

NODES_PER_SECOND = 50_000  # choices of a candidate that the search tries
NO_LIMIT = 1 << 62


class Stage(NamedTuple):
    """The caps of one stage, and how many nodes its choice of structure may try over all root sets."""

    caps: Caps
    nodes: int


STAGES = (
    Stage(Caps(max_size=8, slack=2, candidates=32, states=50_000), 2 * NODES_PER_SECOND),
    Stage(Caps(max_size=10, slack=2, candidates=32, states=50_000), 20 * NODES_PER_SECOND),
    Stage(Caps(max_size=12, slack=3, candidates=256, states=100_000), 600 * NODES_PER_SECOND),
)


class StagedAnswer(NamedTuple):
    """A train-exact SCM and the number of the stage that found it, from 1."""

    model: Scm
    stage: int


class NotFound(NamedTuple):
    """No stage found one.

    without: variables that have no candidate in the last stage, under any root set
    out_of_nodes: whether a stage ended because its nodes were used up
    """

    without: tuple[str, ...]
    out_of_nodes: bool


def staged_search(task: Task, stages: Sequence[Stage] = STAGES) -> StagedAnswer | NotFound:
    """Return the first train-exact SCM that the stages find, replayed by the reference."""
    require_literals_alone(task.grammar)
    listed, spent = Candidates(task), False
    without: tuple[str, ...] = ()
    for number, stage in enumerate(stages, start=1):
        candidates = {variable: listed.of(variable, stage.caps) for variable in natural(task.disclosure.endogenous)}
        without = tuple(variable for variable, mechanisms in candidates.items() if not mechanisms)
        budget = Budget(stage.nodes)
        try:
            for roots in iterate_likely_first(task):
                chosen = _first_choice(task, roots, candidates, stage.caps.slack, budget)
                if chosen is not None:
                    mechanisms = {v: listed.formula(v, mask) for v, mask in chosen.items()}
                    return StagedAnswer(certify(task, Scm(roots, mechanisms)), number)
        except BudgetSpent:
            spent = True
    return NotFound(without, spent)


def _first_choice(
    task: Task,
    roots: tuple[str, ...],
    by_variable: Mapping[str, Sequence[CandidateMechanism]],
    slack: int,
    budget: Budget,
) -> dict[str, Mask] | None:
    """Depth first: the variable with fewest candidates first, its smallest candidate first, no cycles.

    The first choice that has no cycle; None if there is none; `BudgetSpent` if the nodes ran out.
    """
    index = {variable: i for i, variable in enumerate(task.variables)}
    order = sorted((v for v in task.variables if v not in roots), key=lambda v: (len(by_variable[v]), index[v]))
    if not all(by_variable[v] for v in order):
        return None
    free = sum(1 << index[v] for v in order)
    candidates = [candidate for v in order for candidate in by_variable[v]]
    chosen = np.empty(len(order), np.int64)
    answer, num_nodes = first_choice(
        np.array([index[v] for v in order], np.int64),
        np.cumsum([0, *(len(by_variable[v]) for v in order)]),
        np.array([candidate.size for candidate in candidates], np.int64),
        np.array([candidate.mask & free for candidate in candidates], np.uint64),
        slack,
        NO_LIMIT if budget.states is None else budget.states,
        np.zeros((len(order) + 1, len(task.variables)), np.uint64),
        chosen,
    )
    budget.spend(num_nodes)
    if answer < 0:
        budget.spend(1)
    if answer == 0:
        return None
    return {v: candidates[place].mask for v, place in zip(order, chosen.tolist(), strict=True)}
