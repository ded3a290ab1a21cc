"""Policies of an episode, the regret of their worlds, and answers after the evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Protocol, TypeAlias

import numpy as np

from calibrant.dsl.episode import Episode
from calibrant.dsl.formulas.formula import STANDARD_OPERATORS, Formula
from calibrant.dsl.formulas.text import Grammar, render
from calibrant.dsl.replayscm.episode import Reading, candidate_worlds, clean_rows, steps_evidence, task_class
from calibrant.dsl.replayscm.extensions.extension import Contexts, NoiseKind
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, Mechanisms, replay_row
from calibrant.dsl.replayscm.item import Task
from calibrant.solvers.acyclic.least import members_of
from calibrant.solvers.formulas.synthesis import formula_for
from calibrant.solvers.outcome import BudgetSpent, Found, Impossible, Outcome, OutOfBudget
from calibrant.solvers.replayscm.experiments.candidates import (
    AskedWorlds,
    MemberArrays,
    alike_shares,
    best_by_bits,
    decide_behaviour,
    expected_bits,
    list_candidates,
    pack_candidates,
    request_rows,
)
from calibrant.solvers.replayscm.experiments.greedy import NUM_PAIR_MEMBERS, WorldChooser
from calibrant.solvers.replayscm.hidden.mass import MAX_LISTED_MEMBERS, count_members, list_members, posterior_sampler
from calibrant.solvers.replayscm.noise.best_map import BestMap, TiedMaps, best_map, tied_maps
from calibrant.solvers.replayscm.noise.posterior import MAX_LISTED_CELLS, Posterior, cell_marginals, free_bits

# --- Answers after the evidence: the most probable map (SCM with formulas), the most probable behaviour, a forecast ---
NUM_BEHAVIOUR_DRAWS = 256  # a share has a standard error of at most 0.031
NUM_FORECAST_DRAWS = 4_096  # a probability has a standard error of at most 0.008


@dataclass(frozen=True)
class MapChoice:
    """A most probable map, and the posterior that it was chosen from."""

    posterior: Posterior
    grammar: Grammar
    best: BestMap

    def ties(self) -> Found[TiedMaps] | OutOfBudget:
        """Return all maps that are as probable and as small, or draws from them."""
        return tied_maps(self.posterior, self.grammar, self.best)


@dataclass(frozen=True)
class ExtendedAnswer:
    """An answer object of the task, with its provenance.

    submission: the answer object; posterior_share: posterior of a map, None for other answers
    provenance: "exact", or the number of draws, in words; choice: the map with its posterior, None for other answers
    """

    submission: Mapping[str, object]
    posterior_share: Fraction | None
    provenance: str
    choice: MapChoice | None = None


def answer_exact(task: Task, worlds: Sequence[EvidenceWorld]) -> Outcome[ExtendedAnswer]:
    """Return the most probable map; ties by total formula size, hidden formulas included."""
    posterior = Posterior(task_class(task)).condition(*worlds)
    try:
        best = best_map(posterior, task.grammar)
    except BudgetSpent as spent:
        return OutOfBudget(str(spent))
    except ValueError as error:
        return Impossible(f"{error}; class: {posterior.scm_class.describe()}")
    provenance = "exact" if best.is_smallest else "exact; the smallest among many columns of hidden variables"
    choice = MapChoice(posterior, task.grammar, best)
    return Found(ExtendedAnswer(map_submission(best.formulas), best.share, provenance, choice))


def answer_posterior(task: Task, worlds: Sequence[EvidenceWorld], item_id: str) -> Outcome[ExtendedAnswer]:
    """Return a drawn member of the most frequent clean behaviour, the one drawn first in a tie."""
    scm_class = task_class(task)
    posterior = Posterior(scm_class).condition(*worlds)
    rng = Random(f"{item_id}|posterior")
    try:
        sampler = posterior_sampler(posterior)
        members = [sampler.draw(rng) for _ in range(NUM_BEHAVIOUR_DRAWS)]
    except BudgetSpent as spent:
        return OutOfBudget(str(spent))
    except ValueError:
        return Impossible(f"no SCM has positive posterior; class: {scm_class.describe()}")
    verdict_worlds = stop_worlds(task)
    behaviours = [
        tuple(clean_rows(scm_class, member, do, contexts) for do, contexts in verdict_worlds) for member in members
    ]
    # `most_common` keeps the order of first occurrence among equals
    top = Counter(behaviours).most_common(1)[0][0]
    member = members[behaviours.index(top)]
    return Found(
        ExtendedAnswer(map_submission(member_formulas(scm_class.roots, member)), None, f"{len(members)} drawn members")
    )


def answer_forecast(task: Task, worlds: Sequence[EvidenceWorld], item_id: str) -> Outcome[ExtendedAnswer]:
    """Return marginals of the worlds to forecast: exact where all rows have few free cells, else from drawn members."""
    scm_class = task_class(task)
    posterior = Posterior(scm_class).condition(*worlds)
    assert task.extension is not None
    # exact for all rows or for none, as the provenance names one method; a row takes up to 2**7 masses
    forecast: list[list[dict[str, float]]] = []
    requests = [
        request_rows(scm_class, world.constants, [int(context[::-1] or "0", 2) for context in world.contexts])
        for world in task.extension.forecast_worlds
    ]
    names = scm_class.variables
    try:
        if not posterior.mass:
            return Impossible(f"no SCM has positive posterior; class: {scm_class.describe()}")
        if all(len(free_bits(posterior, clamped)) <= MAX_LISTED_CELLS for rows in requests for _, clamped in rows):
            # worlds repeat rows: where a root is intervened on, half of the contexts coincide
            memo: dict[tuple[int, int], dict[str, float]] = {}
            for rows in requests:
                for row in rows:
                    if row not in memo:
                        memo[row] = {names[i]: float(share) for i, share in cell_marginals(posterior, *row).items()}
                forecast.append([memo[row] for row in rows])
            return Found(ExtendedAnswer({"forecast": forecast}, None, "exact"))
        drawn_forecast = _sampled_forecast(posterior, requests, Random(f"{item_id}|forecast"))
    except BudgetSpent as spent:
        return OutOfBudget(str(spent))
    return Found(ExtendedAnswer({"forecast": drawn_forecast}, None, f"{NUM_FORECAST_DRAWS} drawn rows"))


def _sampled_forecast(
    posterior: Posterior, requests: Sequence[Sequence[tuple[int, int]]], rng: Random
) -> list[list[dict[str, float]]]:
    """Return, for each row, the share of drawn members in which each variable that is not clamped is 1."""
    scm_class, sampler = posterior.scm_class, posterior_sampler(posterior)
    counts = [[Counter[str]() for _ in rows] for rows in requests]
    for _ in range(NUM_FORECAST_DRAWS):
        member, rates = sampler.draw_with_rates(rng)
        for rows, counters in zip(requests, counts, strict=True):
            for (fixed, clamped), counter in zip(rows, counters, strict=True):
                constants = {scm_class.observed[i]: fixed >> i & 1 for i in members_of(clamped)}
                roots = {root: fixed >> scm_class.observed.index(root) & 1 for root in scm_class.roots}
                flipped = frozenset(v for v, rate in rates.items() if v not in constants and rng.random() < rate)
                values = replay_row(scm_class, member, roots, constants, flipped)
                counter.update(v for v in scm_class.endogenous if v not in constants and values[v])
    return [
        [
            {
                v: counter[v] / NUM_FORECAST_DRAWS
                for v in scm_class.endogenous
                if not clamped >> scm_class.observed.index(v) & 1
            }
            for (_, clamped), counter in zip(rows, counters, strict=True)
        ]
        for rows, counters in zip(requests, counts, strict=True)
    ]


def map_submission(formulas: Mapping[str, Formula]) -> dict[str, object]:
    """Return the answer object of a map."""
    return {"mechanisms": {v: render(formula) for v, formula in formulas.items()}}


def member_formulas(roots: Sequence[str], member: Mechanisms) -> dict[str, Formula]:
    """Return formulas of functions; a constant mentions the first root."""
    return {v: formula_for(f.table, f.parents or roots[:1], STANDARD_OPERATORS) for v, f in member.items()}


# --- Policies of an episode: request worlds greedily or at random, until nothing splits or the behaviour is decided ---


def episode_evidence(episode: Episode[Task, Reading]) -> list[EvidenceWorld]:
    """Return the worlds that an episode has shown, the start first."""
    return steps_evidence(episode.steps)


class Policy(Protocol):
    """Chooser of the next world to request."""

    def choose(self, worlds: Sequence[EvidenceWorld], posterior: Posterior) -> Mapping[str, int] | None:
        """Return the constants of the next world after these; None to request no more."""
        ...


class GreedyPolicy:
    """Policy that requests the world with the least expected share left, until no candidate splits."""

    def __init__(self, chooser: WorldChooser) -> None:
        self._chooser = chooser

    def choose(self, worlds: Sequence[EvidenceWorld], posterior: Posterior) -> Mapping[str, int] | None:
        choice = self._chooser.choose(worlds)
        return None if choice is None else self._chooser.candidates[choice.index]


class RandomPolicy:
    """Policy that requests candidates in random order without repetition, until no candidate splits."""

    def __init__(self, chooser: WorldChooser, item_id: str) -> None:
        self._chooser = chooser
        self._item_id = item_id
        rng = Random(f"{item_id}|random")
        self._order = iter(rng.sample(chooser.candidates, len(chooser.candidates)))

    def choose(self, worlds: Sequence[EvidenceWorld], posterior: Posterior) -> Mapping[str, int] | None:
        # tested before each world, as in the greedy policy: else it would take a world more to stop
        rng = Random(f"{self._item_id}|random|{len(worlds)}")
        return next(self._order, None) if self._chooser.has_split(worlds, posterior, rng) else None


POLICIES: Mapping[str, Callable[[WorldChooser, str], Policy]] = {
    "greedy": lambda chooser, item_id: GreedyPolicy(chooser),
    "random": RandomPolicy,
}


def play_worlds(episode: Episode[Task, Reading], policy_name: str, item_id: str) -> list[EvidenceWorld]:
    """Request worlds by a policy of POLICIES; return all evidence. The episode stays open for the submission."""
    if policy_name not in POLICIES:
        raise ValueError(f"unknown policy '{policy_name}'; known: {', '.join(POLICIES)}")
    task = episode.task
    scm_class = task_class(task)
    chooser = WorldChooser(task, scm_class, item_id)
    policy = POLICIES[policy_name](chooser, item_id)
    rng = Random(f"{item_id}|{policy_name}|contexts")
    verdict_worlds = stop_worlds(task)
    assert task.extension is not None
    allowance = task.extension.allowance
    assert allowance is not None
    worlds = episode_evidence(episode)
    posterior = Posterior(scm_class).condition(*worlds)
    while not episode.closed and episode.left > 0:
        # noise-free, both policies end where nothing splits
        if not scm_class.noise.is_noiseless and is_settled(
            posterior, verdict_worlds, Random(f"{item_id}|stop|{len(worlds)}")
        ):
            break
        do = policy.choose(worlds, posterior)
        if do is None:
            break
        action: dict[str, object] = {"do": dict(do)}
        if allowance.contexts is Contexts.CHOSEN:
            action["contexts"] = list(_context_texts(chooser.contexts(rng)[0], len(scm_class.roots)))
        step = episode.act(action)
        if step.refused:
            raise ValueError(f"the action {action} was refused: {step.refused}")
        worlds = episode_evidence(episode)
        posterior = posterior.condition(worlds[-1])
    return worlds


def stop_worlds(task: Task) -> AskedWorlds:
    """Return the worlds whose clean behaviour ends an episode once it is decided.

    These are the worlds to forecast. For a map, whose held-out worlds are not disclosed: the world without intervention
    and those with one constant, in up to 16 contexts, which depend on nearly every mechanism.
    """
    scm_class, extension = task_class(task), task.extension
    assert extension is not None
    if extension.forecast_worlds:
        return [
            (world.constants, [int(context[::-1] or "0", 2) for context in world.contexts])
            for world in extension.forecast_worlds
        ]
    every = range(min(1 << len(scm_class.roots), 16))
    singles = [({v: bit}, every) for v in scm_class.endogenous for bit in (0, 1)]
    return [({}, every), *singles]


def is_settled(posterior: Posterior, worlds: AskedWorlds, rng: Random) -> bool:
    """Return whether the clean behaviour in these worlds is decided; without noise, whether one member remains."""
    if posterior.scm_class.noise.is_noiseless:
        # negated hidden variables pair members, so their number is never 1; the episode ends where nothing splits
        return posterior.num_members == 1 if not posterior.scm_class.hidden_parents else False
    return decide_behaviour(posterior, worlds, rng).is_decided


def _context_texts(contexts: Sequence[int], num_roots: int) -> Iterator[str]:
    for context in contexts:
        yield "".join(str(context >> i & 1) for i in range(num_roots))


# --- Regret of each world of an episode against the best candidate: expected shares, or bits under noise --------------
# members up to which regret is exact, by listing, at the cost of members x candidates; above, estimated from pairs of
# drawn members, under noise from NUM_TRUTHS draws
MAX_REGRET_MEMBERS = 2_000
NUM_TRUTHS = 64
NUM_GROUPS = 8  # groups of drawn members, for a standard error

ShownWorld: TypeAlias = tuple[Mapping[str, int], Sequence[int], Sequence[str]]
"""Constants, contexts and rows of a world that an episode has shown."""


@dataclass(frozen=True)
class StepRegret:
    """Regret of one requested world against the best candidate.

    value: expected share left, or expected bits under noise, of the requested world; best: that of the best candidate
    is_exact: by listing; else estimated from draws
    standard_error: standard error of an estimated difference; the best of many estimates is also overrated
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
    """Return the regret of requesting a world after the evidence of a posterior; contexts: as they were shown."""
    assert task.extension is not None
    assert task.extension.allowance is not None
    candidates = candidate_worlds(posterior.scm_class.observed, task.extension.allowance.max_targets)
    chosen = candidates.index(dict(do))
    if posterior.scm_class.noise.is_noiseless:
        if count_members(posterior) <= MAX_REGRET_MEMBERS:
            return _share_regret(posterior, candidates, chosen, contexts)
        return _pair_regret(posterior, candidates, chosen, contexts, f"{item_id}|regret|{step}")
    return _bits_regret(task, posterior, candidates, chosen, contexts, f"{item_id}|regret|{step}")


def _share_regret(
    posterior: Posterior, candidates: Sequence[Mapping[str, int]], chosen: int, contexts: Sequence[int]
) -> StepRegret:
    listed = list_candidates(posterior, [(do, contexts) for do in candidates], MAX_REGRET_MEMBERS)
    shares = [listed.share(listed.every_cell, index) for index in range(len(candidates))]
    return StepRegret(float(shares[chosen]), float(min(shares)), is_exact=True)


def _pair_regret(
    posterior: Posterior,
    candidates: Sequence[Mapping[str, int]],
    chosen: int,
    contexts: Sequence[int],
    seed: str,
) -> StepRegret:
    """Estimate shares by pairs of drawn members with equal readings."""
    rng = Random(seed)
    sampler = posterior_sampler(posterior)
    members = MemberArrays(posterior.scm_class, [sampler.draw(rng) for _ in range(NUM_PAIR_MEMBERS)])
    scm_class = posterior.scm_class
    index = {v: i for i, v in enumerate(scm_class.observed)}
    keys = pack_candidates(index, scm_class.roots, candidates, contexts).keys(members.programs)
    shares = alike_shares(keys)
    best = int(shares.argmin())
    # groups share no pair, so their differences are independent; the estimate has pairs across groups too: the error is
    # an upper estimate
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
    """Return the expected bits of the chosen and of the best candidate: exact for small classes, else estimated."""
    is_common = posterior.scm_class.noise.kind is not NoiseKind.EACH
    # under noise the evidence excludes no SCM: the size of the class decides
    if is_common and Posterior(posterior.scm_class).num_members <= MAX_REGRET_MEMBERS:
        try:
            rows = [request_rows(posterior.scm_class, do, contexts) for do in candidates]
            bits = [expected_bits(posterior, world) for world in rows]
        except BudgetSpent:
            # some world has more than 4,096 readings: estimate below
            pass
        else:
            best = best_by_bits(bits)
            return StepRegret(bits[chosen], bits[chosen if best is None else best], is_exact=True)
    chooser = WorldChooser(task, posterior.scm_class, seed)
    # the requested world is rated by the same draws as the others
    chooser.compared = sorted({*chooser.compared, chosen})
    by_draw = chooser.bits_by_draw(posterior, [contexts], Random(seed), NUM_TRUTHS)
    values = by_draw.mean(axis=0)
    position, best_position = chooser.compared.index(chosen), int(values.argmax())
    # of the paired differences, since both worlds are rated by the same drawn members
    error = float((by_draw[:, best_position] - by_draw[:, position]).std(ddof=1)) / NUM_TRUTHS**0.5
    return StepRegret(float(values[position]), float(values[best_position]), is_exact=False, standard_error=error)


def episode_regrets(
    task: Task, steps: Sequence[ShownWorld], posterior: Posterior, item_id: str
) -> tuple[StepRegret, ...]:
    """Return the regret of every world after the start, each against the evidence before it.

    posterior: posterior of the empty evidence
    """
    regrets = []
    for index, (do, contexts, rows) in enumerate(steps):
        if index:
            regrets.append(step_regret(task, posterior, do, contexts, item_id, index))
        posterior = posterior.condition(EvidenceWorld(do, tuple(rows)))
    return tuple(regrets)


def is_worth_asking(task: Task, worlds: Sequence[EvidenceWorld], posterior: Posterior, item_id: str) -> bool:
    """Return whether a further world is useful: a candidate splits, and under noise no behaviour is decided yet.

    Under noise every SCM keeps some mass, so that candidates always split. Without noise and with few members the
    result is exact; else a split among draws proves it, and without one the draws of the greedy rule decide.

    worlds: evidence of the posterior
    """
    scm_class = posterior.scm_class
    chooser = WorldChooser(task, scm_class, item_id)
    if scm_class.noise.is_noiseless and count_members(posterior) <= MAX_LISTED_MEMBERS:
        members = MemberArrays(scm_class, list_members(posterior))
        # all contexts, since an episode with random contexts may show any of them
        contexts = range(1 << len(scm_class.roots))
        rows = [row for do in chooser.candidates for row in request_rows(scm_class, do, contexts)]
        words = np.array([word for word, _ in rows], np.uint64)
        targets = np.array([clamped for _, clamped in rows], np.uint64)
        readings = members.readings(words, targets)
        return bool((readings != readings[0]).any())
    rng = Random(f"{item_id}|premature")
    return not is_settled(posterior, stop_worlds(task), rng) and chooser.has_split(worlds, posterior, rng)
