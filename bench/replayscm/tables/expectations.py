"""Expected HeldoutExact of guessers who know what a ReplaySCM item shows: draws from the SCMs that fit, and the best.

Under the generator's prior both are probabilities of what the held-out worlds show: the posterior mass of the SCMs that
show it, which is the mass with those worlds as further evidence. The best answer shows the behaviour of largest mass;
it is looked for among sampled members, and weighed exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum
from random import Random
from typing import Any

from calibrant.audits.replayscm.ambiguity import headline_parents
from calibrant.audits.replayscm.ceiling import ceiling
from calibrant.baselines.replayscm.posterior.evidence import MechanismEvidence
from calibrant.baselines.replayscm.posterior.local import LocalPosterior
from calibrant.baselines.replayscm.posterior.posterior import MAX_STATES, Component, Posterior
from calibrant.bench.replayscm.audit.generator_ceiling import Behaviour, BehaviourReplay
from calibrant.bench.replayscm.episodes import evidence_key
from calibrant.bench.replayscm.extended.expectations import UNKNOWN, expect_extended
from calibrant.bench.replayscm.scoring import ATTRIBUTE
from calibrant.bench.scoring.evaluator_cache import EvaluatorCache
from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.item import Problem, Task, TaskKind
from calibrant.dsl.replayscm.world import Panel, World
from calibrant.solvers.budget import Budget, BudgetSpent
from calibrant.solvers.replayscm.canonical import canonical_task, rename_panel, unchanged_order
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

NUM_DRAWS = 400  # members of the posterior, whose most frequent behaviours are weighed
NUM_WEIGHED = 4  # of these behaviours
TOLERANCE = 1e-9  # of sums of shares

Expected = dict[str, float | None]


class ReplayExpectations:
    """Expectations by item: `uniform`, `draw` and `best`; the last two are of the generator's prior where it applies.

    Elsewhere they are of SCMs that are all alike, in the class of attributions, and `best` is the certified upper bound
    where it is not exact. A guesser may look at held-out interventions and root values, as the scorer does.
    """

    def __init__(self) -> None:
        self._by_item: EvaluatorCache[Expected] = EvaluatorCache()

    def __call__(self, item: Problem, steps: Sequence[Any], score: Mapping[str, Any]) -> Expected:
        if item.task.extension is None:
            return self._by_item.get_for(item, lambda: _expect(item))
        # of an episode the evidence is the system's own
        return self._by_item.get_for(item, lambda: expect_extended(item, steps), evidence_key(steps))


def _expect(item: Problem) -> Expected:
    if item.task.kind is TaskKind.ALTERNATIVE or not item.sealed.heldout.worlds:
        return UNKNOWN
    decision = ATTRIBUTE.decide_heldout(item)
    uniform = None if decision is None or decision.agreement is None else float(decision.agreement)
    try:
        return {"uniform": uniform} | (expect_under_prior(item) or _expect_uniformly(item, uniform))
    except BudgetSpent:
        return {"uniform": uniform, "draw": None, "best": None}


def _expect_uniformly(item: Problem, uniform: float | None) -> Expected:
    if uniform is None:
        return {"draw": None, "best": None}
    space = VersionSpace(item.task, ModelClass(headline_parents(item)))
    return {"draw": uniform, "best": float(ceiling(space, item.sealed.heldout.worlds, Random(0)).upper)}


def expect_under_prior(item: Problem) -> Expected | None:
    """Return both expectations under the generator's prior; None where it does not apply or is too large to sum."""
    if item.task.grammar != STANDARD:
        return None
    task, heldout = _canonical(item)
    try:
        posterior = Posterior(task)
    except BudgetSpent:
        return None
    if not posterior.components:
        return None
    rng, replay = Random(0), BehaviourReplay(heldout)
    behaviours = Counter(replay.behaviours([posterior.sample(rng) for _ in range(NUM_DRAWS)]))
    frequent = sorted(behaviours, key=lambda values: (-behaviours[values], repr(values)))[:NUM_WEIGHED]
    draw = _share(posterior, heldout)
    return {"draw": draw, "best": _largest_share(posterior, heldout, draw, frequent)}


def _largest_share(posterior: Posterior, heldout: Panel, gold_share: float, behaviours: Sequence[Behaviour]) -> float:
    """Return the largest share of gold's columns and of these behaviours'.

    An SCM shows one of several columns, so all shares together are at most 1: what is left bounds those that follow.
    """
    shares: dict[tuple[object, ...], float] = {tuple(heldout.columns.values()): gold_share}
    for _, *columns in behaviours:
        if 1 - fsum(shares.values()) < max(shares.values()) - TOLERANCE:
            break
        key = tuple(columns)
        if key not in shares:  # other roots may have the same columns
            shares[key] = _share(posterior, _showing(heldout, key))
    return max(shares.values())


def _canonical(item: Problem) -> tuple[Task, Panel]:
    """Return task and held-out worlds over canonical names, so that draws do not depend on those of the pool."""
    canonical, heldout = canonical_task(item.task), item.sealed.heldout
    return canonical.task, rename_panel(heldout, canonical.canonical_names, unchanged_order(heldout))


def _share(posterior: Posterior, heldout: Panel) -> float:
    """Return the probability that a draw from a posterior shows these held-out worlds."""
    training = posterior.task.training
    worlds = (*training.worlds, *(replace(world, id=f"heldout {world.id}") for world in heldout.worlds))
    evidence = MechanismEvidence(replace(posterior.task, training=Panel(training.variables, worlds)))
    budget = Budget(MAX_STATES)
    masses = [
        Component(LocalPosterior(evidence, part.local.configuration), part.roots, part.prior, budget).mass
        for part in posterior.components
    ]
    return fsum(masses) / posterior.mass


def _showing(heldout: Panel, columns: Sequence[object]) -> Panel:
    """Return the held-out worlds with these columns."""
    worlds = []
    for world, start in zip(heldout.worlds, heldout.starts, strict=False):
        rows = (1 << world.num_rows) - 1
        shown_columns = tuple(int(column) >> start & rows for column in columns)  # type: ignore[call-overload]
        worlds.append(World(world.id, world.intervention, heldout.variables, world.units, shown_columns))
    return Panel(heldout.variables, tuple(worlds))


EXPECTATIONS = ReplayExpectations()
