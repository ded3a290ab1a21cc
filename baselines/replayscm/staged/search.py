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

from baselines.replayscm.staged.candidates import CandidateMechanism, Candidates, Caps
from dsl.replayscm.disclosure import natural
from dsl.replayscm.problem import Task
from dsl.replayscm.scm import Scm
from solvers.acyclic.least_cost import Mask
from solvers.budget import Budget, BudgetSpent
from solvers.formulas.literals import require_literals_alone
from solvers.replayscm.certified import certified
from solvers.replayscm.roots import likely_first

NODES_PER_SECOND = 50_000  # choices of a candidate that the search tries


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
    """The first train-exact SCM that the stages find, replayed by the reference."""
    require_literals_alone(task.grammar)
    listed, spent = Candidates(task), False
    without: tuple[str, ...] = ()
    for number, stage in enumerate(stages, start=1):
        found = {variable: listed.of(variable, stage.caps) for variable in natural(task.disclosure.endogenous)}
        without = tuple(variable for variable, own in found.items() if not own)
        budget = Budget(stage.nodes)
        try:
            for roots in likely_first(task):
                chosen = _Choice(task, roots, found, stage.caps.slack, budget).first()
                if chosen is not None:
                    mechanisms = {v: listed.formula(v, mask) for v, mask in chosen.items()}
                    return StagedAnswer(certified(task, Scm(roots, mechanisms)), number)
        except BudgetSpent:
            spent = True
    return NotFound(without, spent)


class _Choice:
    """Depth first: the variable with fewest candidates first, its smallest candidate first, no cycles."""

    def __init__(
        self,
        task: Task,
        roots: tuple[str, ...],
        found: Mapping[str, Sequence[CandidateMechanism]],
        slack: int,
        budget: Budget,
    ) -> None:
        self.slack = slack
        self.budget = budget
        index = {variable: i for i, variable in enumerate(task.variables)}
        free = [v for v in task.variables if v not in roots]
        self.order = sorted(free, key=lambda v: (len(found[v]), index[v]))
        self.options = {v: found[v] for v in free}
        self.index = index
        self.free = sum(1 << index[v] for v in free)

    def first(self) -> dict[str, Mask] | None:
        """The first choice that has no cycle; None if there is none; `BudgetSpent` if the nodes ran out."""
        if not all(self.options.values()):
            return None
        chosen: dict[str, Mask] = {}
        return chosen if self._extend(0, chosen, {self.index[v]: 0 for v in self.order}) else None

    def _extend(self, depth: int, chosen: dict[str, Mask], above: dict[int, Mask]) -> bool:
        """Choose for the variables from this depth on. above: the ancestors of each by what was chosen so far."""
        if depth == len(self.order):
            return True
        variable = self.order[depth]
        own, least = self.index[variable], None
        for size, _, mask in self.options[variable]:
            if least is not None and size > least + self.slack:
                break
            self.budget.spend(1)
            parents = mask & self.free
            ancestors = parents
            for parent, theirs in above.items():
                if parents >> parent & 1:
                    ancestors |= theirs
            if ancestors >> own & 1:
                continue
            least = size if least is None else least
            below = {v: a | ancestors if v == own or a >> own & 1 else a for v, a in above.items()}
            chosen[variable] = mask
            if self._extend(depth + 1, chosen, below):
                return True
            del chosen[variable]
        return False
