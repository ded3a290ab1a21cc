"""Regret of each world of an episode against the best candidate: expected shares, or bits under noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

import numpy as np

from calibrant.dsl.replayscm.episode import candidate_worlds
from calibrant.dsl.replayscm.extensions.extension import NoiseKind
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.item import Task
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.replayscm.experiments.greedy import NUM_PAIR_MEMBERS, WorldChooser
from calibrant.solvers.replayscm.experiments.listed import list_candidates
from calibrant.solvers.replayscm.experiments.members import MemberArrays
from calibrant.solvers.replayscm.experiments.packed_candidates import alike_shares, pack_candidates
from calibrant.solvers.replayscm.experiments.policies import is_settled, stop_worlds
from calibrant.solvers.replayscm.experiments.shares import best_by_bits, expected_bits, request_rows
from calibrant.solvers.replayscm.hidden.mass import count_members
from calibrant.solvers.replayscm.hidden.members import MAX_LISTED_MEMBERS, list_members, posterior_sampler
from calibrant.solvers.replayscm.noise.posterior import Posterior

# listing is exact and costs members x candidates; above it 256 members by pairs, under noise 64 drawn truths
MAX_REGRET_MEMBERS = 2_000
NUM_TRUTHS = 64
NUM_GROUPS = 8  # of drawn members, for a standard error

ShownWorld: TypeAlias = tuple[Mapping[str, int], Sequence[int], Sequence[str]]
"""Constants, contexts and rows of a world that an episode has shown."""


@dataclass(frozen=True)
class StepRegret:
    """One world's loss.

    value: of the world that was asked for; best: of the best candidate (least share, most bits); regret: at least 0
    is_exact: by listing; otherwise estimated from drawn truths
    standard_error: of an estimated difference; the best of many estimates is overrated besides
    """

    value: float
    best: float
    is_exact: bool
    standard_error: float | None = None

    @property
    def regret(self) -> float:
        return abs(self.value - self.best)


def step_regret(
    task: Task, posterior: Posterior, do: Mapping[str, int], contexts: Sequence[int], item_id: str, step: int
) -> StepRegret:
    """Return the regret of asking for a world after the evidence of a posterior; contexts as they were shown."""
    assert task.extension is not None
    assert task.extension.allowance is not None
    candidates = candidate_worlds(posterior.scm_class.observed, task.extension.allowance.max_targets)
    chosen = candidates.index(dict(do))
    if posterior.scm_class.noise.is_silent:
        if count_members(posterior) <= MAX_REGRET_MEMBERS:
            return _share_regret(posterior, candidates, chosen, contexts)
        return _pair_regret(posterior, candidates, chosen, contexts, f"{item_id}|regret|{step}")
    return _bits_regret(task, posterior, candidates, chosen, contexts, f"{item_id}|regret|{step}")


def _share_regret(
    posterior: Posterior, candidates: Sequence[Mapping[str, int]], chosen: int, contexts: Sequence[int]
) -> StepRegret:
    listed = list_candidates(posterior, [(do, contexts) for do in candidates], MAX_REGRET_MEMBERS)
    shares = [listed.share(listed.every_cell, place) for place in range(len(candidates))]
    return StepRegret(float(shares[chosen]), float(min(shares)), is_exact=True)


def _pair_regret(
    posterior: Posterior,
    candidates: Sequence[Mapping[str, int]],
    chosen: int,
    contexts: Sequence[int],
    seed: str,
) -> StepRegret:
    """Estimate shares by pairs of drawn members that read alike."""
    rng = Random(seed)
    sampler = posterior_sampler(posterior)
    members = MemberArrays(posterior.scm_class, [sampler.draw(rng) for _ in range(NUM_PAIR_MEMBERS)])
    scm_class = posterior.scm_class
    index = {v: i for i, v in enumerate(scm_class.observed)}
    keys = pack_candidates(index, scm_class.roots, candidates, contexts).keys(members.programs)
    shares = alike_shares(keys)
    best = int(shares.argmin())
    # groups of members share no pair; pairs across groups, which the estimate has too, make it better than this
    groups = [alike_shares(keys[:, first::NUM_GROUPS]) for first in range(NUM_GROUPS)]
    differences = np.array([group[chosen] - group[best] for group in groups])
    error = float(differences.std(ddof=1)) / NUM_GROUPS**0.5
    return StepRegret(float(shares[chosen]), float(shares[best]), is_exact=False, standard_error=error)


def _bits_regret(
    task: Task,
    posterior: Posterior,
    candidates: Sequence[Mapping[str, int]],
    chosen: int,
    contexts: Sequence[int],
    seed: str,
) -> StepRegret:
    is_common = posterior.scm_class.noise.kind is not NoiseKind.EACH
    # under noise no SCM is ever excluded, so the size of the class decides and not that of the evidence
    if is_common and Posterior(posterior.scm_class).num_members <= MAX_REGRET_MEMBERS:
        try:
            rows = [request_rows(posterior.scm_class, do, contexts) for do in candidates]
            bits = [expected_bits(posterior, world) for world in rows]
        except BudgetSpent:
            # a world has more than 4,096 readings: estimated below
            pass
        else:
            best = best_by_bits(bits)
            return StepRegret(bits[chosen], bits[chosen if best is None else best], is_exact=True)
    chooser = WorldChooser(task, posterior.scm_class, seed)
    # the world asked for may not be among the compared ones; it is rated by the same draws as the best
    chooser.places = sorted({*chooser.places, chosen})
    by_draw = chooser.bits_by_draw(posterior, [contexts], Random(seed), NUM_TRUTHS)
    values = by_draw.mean(axis=0)
    place, best_place = chooser.places.index(chosen), int(values.argmax())
    # of the differences: both worlds are rated by the same drawn members
    error = float((by_draw[:, best_place] - by_draw[:, place]).std(ddof=1)) / NUM_TRUTHS**0.5
    return StepRegret(float(values[place]), float(values[best_place]), is_exact=False, standard_error=error)


def episode_regrets(
    task: Task, steps: Sequence[ShownWorld], posterior: Posterior, item_id: str
) -> tuple[StepRegret, ...]:
    """Return the regret of every world after the start, each against the evidence before it.

    posterior: of the empty evidence
    """
    regrets = []
    for number, (do, contexts, rows) in enumerate(steps):
        if number:
            regrets.append(step_regret(task, posterior, do, contexts, item_id, number))
        posterior = posterior.condition(EvidenceWorld(do, tuple(rows)))
    return tuple(regrets)


def is_worth_asking(task: Task, worlds: Sequence[EvidenceWorld], posterior: Posterior, item_id: str) -> bool:
    """Return whether a further world is of use: a candidate splits, and under noise nothing is decided yet.

    Under noise every SCM keeps some mass, so that the members alone are split for ever. Noise-free the answer is exact
    where members are few; above that a split among draws proves it, and greedy's own draws decide that there is none.

    worlds: after which the posterior is
    """
    scm_class = posterior.scm_class
    chooser = WorldChooser(task, scm_class, item_id)
    if scm_class.noise.is_silent and count_members(posterior) <= MAX_LISTED_MEMBERS:
        members = MemberArrays(scm_class, list_members(posterior))
        # all contexts: what an episode with drawn ones may show, sooner or later
        every = range(1 << len(scm_class.roots))
        rows = [row for do in chooser.candidates for row in request_rows(scm_class, do, every)]
        words = np.array([word for word, _ in rows], np.uint64)
        targets = np.array([clamped for _, clamped in rows], np.uint64)
        readings = members.readings(words, targets)
        return bool((readings != readings[0]).any())
    rng = Random(f"{item_id}|premature")
    return not is_settled(posterior, stop_worlds(task), rng) and chooser.has_split(worlds, posterior, rng)
