"""Best expected HeldoutExact of any answer, if gold is what the published generator draws.

Members are drawn from the posterior (baselines.replayscm.posterior). The best answer does in the held-out worlds what
most of them do, so the first half of the draws chooses a behaviour, and the share of the second half that shows it
estimates without bias what an answer with that behaviour can expect. It may look at the held-out interventions and root
values, as every ceiling may.

The ceilings of audits.replayscm.ceiling are certified, but of truths that no pool is drawn from: all members alike, or
by formula size alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import sqrt
from random import Random
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from calibrant.baselines.replayscm.posterior.local import Local
from calibrant.baselines.replayscm.posterior.posterior import Member, Posterior
from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.problem import Problem, TaskKind
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Column, Panel
from calibrant.solvers.budget import BudgetSpent

DRAWS = 400  # to choose the behaviour, and as many to measure it
Behaviour: TypeAlias = tuple[object, ...]
"""The roots, and the values of all variables in the held-out rows."""


class GeneratorCeiling(msgspec.Struct, frozen=True):
    """The ceiling of one instance under the process that published items are drawn from."""

    probability: Annotated[
        float | None, Meta(description="what the best answer found can expect; None where it could not be estimated")
    ]
    standard_error: Annotated[float | None, Meta(description="of that, over `draws` members")]
    draws: Annotated[int, Meta(description="how many members")]
    realised: Annotated[bool | None, Meta(description="whether gold does what that answer does; None without gold")]
    left_out: Annotated[str, Meta(description="why there is none; else empty")]


def generator_ceiling(problem: Problem) -> GeneratorCeiling:
    """Return the ceiling under the published process, or why it is not available; deterministic per problem."""
    try:
        return _estimate(problem)
    except (ValueError, BudgetSpent) as reason:
        return GeneratorCeiling(None, None, 0, None, str(reason) or "too many latent orders or functions to sum over")


def _estimate(problem: Problem) -> GeneratorCeiling:
    task, heldout = problem.task, problem.sealed.heldout
    if not heldout.worlds:
        raise ValueError("there are no held-out worlds")
    if task.kind is TaskKind.ALTERNATIVE or task.grammar != STANDARD:
        raise ValueError("the prior is of SCMs over the standard operators without constants")
    posterior = Posterior(task)
    if not posterior.components:
        raise ValueError("no configuration of the prior explains the evidence")
    rng, replayed = Random(f"generator ceiling:{problem.id}"), BehaviourReplay(heldout)
    samples = [replayed.behaviour(posterior.sample(rng)) for _ in range(2 * DRAWS)]
    best, _ = Counter(samples[:DRAWS]).most_common(1)[0]
    share = samples[DRAWS:].count(best) / DRAWS
    gold = problem.sealed.gold
    realised = None if gold is None else replayed.heldout_behaviour(gold) == best
    return GeneratorCeiling(share, sqrt(share * (1 - share) / DRAWS), DRAWS, realised, "")


class BehaviourReplay:
    """Behaviour of members in the rows of a panel: targets and roots as given, everything else computed."""

    def __init__(self, panel: Panel) -> None:
        self.panel = panel
        self.columns = [panel.columns[v] for v in panel.variables]
        self.clamped = [panel.clamped[v] for v in panel.variables]
        self._known: dict[tuple[Local, tuple[Column, ...]], Column] = {}
        self._behaviours: dict[tuple[object, ...], Behaviour] = {}
        self._places: dict[int, tuple[int, ...]] = {}

    def behaviour(self, member: Member) -> Behaviour:
        key = member.roots, *member.mechanisms.items()
        if key not in self._behaviours:
            self._behaviours[key] = self._behaviour(member)
        return self._behaviours[key]

    def _behaviour(self, member: Member) -> Behaviour:
        values = list(self.columns)
        for variable in member.order():
            mechanism, fixed = member.mechanisms[variable], self.clamped[variable]
            if mechanism.parents not in self._places:
                places = tuple(i for i in range(len(values)) if mechanism.parents >> i & 1)
                self._places[mechanism.parents] = places
            parents = tuple(values[i] for i in self._places[mechanism.parents])
            values[variable] = self.columns[variable] & fixed | self._compute(mechanism, parents) & ~fixed
        return member.roots, *values

    def heldout_behaviour(self, gold: Scm) -> Behaviour:
        """Return what the held-out worlds show is what gold does."""
        return gold.roots, *self.columns

    def _compute(self, mechanism: Local, parents: tuple[Column, ...]) -> Column:
        """Return a column of the function, for columns of its parents in the order of the variables."""
        key = mechanism, parents
        if key not in self._known:
            self._known[key] = _column(mechanism.bits, parents, self.panel.all_rows)
        return self._known[key]


def _column(bits: int, parents: Sequence[Column], rows: Column) -> Column:
    groups = [rows]  # by the values of the parents so far; the first one is the lowest bit of a place
    for parent in parents:
        groups = [group & ~parent for group in groups] + [group & parent for group in groups]
    return sum(group for place, group in enumerate(groups) if bits >> place & 1)
