"""Masses, choices, episodes and minima of extended items on one core, against their targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import count
from random import Random

from msgspec.structs import replace

from calibrant.audits.replayscm.extended.generate import sample_extended
from calibrant.audits.replayscm.extended.strata import extended_strata
from calibrant.bench.lab.speed.comparison import Comparison, Options, Rival, Row, measure
from calibrant.bench.replayscm.audit.extended import clairvoyant_minimum
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.episode import ScmEpisode, candidate_worlds, clean_rows, noisy_rows, task_class
from calibrant.dsl.replayscm.extensions.extension import NOISE_FREE, MechanismClass, Prior, known_rate
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.replayscm.experiments.greedy import WorldChooser
from calibrant.solvers.replayscm.experiments.policies import play_worlds
from calibrant.solvers.replayscm.experiments.shares import request_rows
from calibrant.solvers.replayscm.hidden.mass import count_members
from calibrant.solvers.replayscm.hidden.members import posterior_sampler
from calibrant.solvers.replayscm.noise.posterior import ApproximateMasses, Posterior

TOPIC = "episodes"
SHAPES = {6: "hs_n6_easy_calibration", 8: "hs_n8_bridge", 10: "vhs_n10_anchor_m10"}
MASS_MILLISECONDS = {7: 1, 10: 5}
DOUBLES_MILLISECONDS = 0.1
HIDDEN_MILLISECONDS = 50
STEP_SECONDS = {"": {10: 0.1}, "_noise1in20": {6: 0.05, 10: 1.0}}
GREEDY_EPISODES = {6: 15, 8: 4, 10: 0.7}
RANDOM_EPISODES = 50
CLAIRVOYANT_SECONDS = 10
NUM_WORLDS = 10

Work = tuple[Callable[[], object], int]  # what is timed, and how many items it does


def rows(options: Options) -> Iterator[Row]:
    for num_vars, milliseconds in MASS_MILLISECONDS.items():
        yield from _rate(options, f"exact mass, noise, n = {num_vars}", "mass", 1_000 / milliseconds, _masses(num_vars))
    yield from _rate(options, "mass in doubles, n = 10", "mass", 1_000 / DOUBLES_MILLISECONDS, _doubles(10))
    yield from _rate(options, "hidden count, 9+1, 3 parents", "count", 1_000 / HIDDEN_MILLISECONDS, _hidden_count())
    for suffix, targets in STEP_SECONDS.items():
        for num_vars, seconds in targets.items():
            name = f"greedy step, n = {num_vars}{', noise 1/20' if suffix else ''}"
            yield from _rate(options, name, "step", 1 / seconds, _step(num_vars, suffix))
    for num_vars, per_second in GREEDY_EPISODES.items():
        work = _episodes(num_vars, "greedy")
        yield from _rate(options, f"greedy episodes, n = {num_vars}", "episode", per_second, work)
    yield from _rate(options, "random episodes, n = 6", "episode", RANDOM_EPISODES, _episodes(6, "random"))
    yield from _rate(options, "clairvoyant minimum, n = 10", "minimum", 1 / CLAIRVOYANT_SECONDS, _minimum())


def _rate(options: Options, case: str, item: str, target: float, work: Work) -> Iterator[Row]:
    comparison = Comparison(TOPIC, case, item, [Rival("calibrant", *work)])
    for row in measure(comparison, options.discipline):
        reached = row.per_second is not None and row.per_second >= target
        yield replace(row, met=reached, note=f"at least {target:,.3g} a second")


@cache
def _problem(num_vars: int, suffix: str, seed: int = 1) -> Problem:
    stratum = next(stratum for stratum in extended_strata() if stratum.name == SHAPES[num_vars] + suffix)
    return sample_extended(stratum, seed)


def _scm_class(num_vars: int, *, num_hidden: int = 0, rate: Fraction | None = None) -> MechanismClass:
    """Return a class of k = 3 with 3 roots; a hidden variable has 3 stated parents."""
    observed = tuple(f"X{i + 1}" for i in range(num_vars))
    hidden = {f"H{i + 1}": observed[i : i + 3] for i in range(num_hidden)}
    noise = NOISE_FREE if rate is None else known_rate(rate)
    names = (*observed, *hidden)
    return MechanismClass(observed, observed[:3], HiddenOrder(names, observed[:3]), 3, Prior.UNIFORM, noise, hidden)


def _evidence(scm_class: MechanismClass) -> list[EvidenceWorld]:
    """Return 10 worlds of 8 rows of a drawn member, the start and up to three constants."""
    rng = Random(7)
    member = posterior_sampler(Posterior(scm_class)).draw(rng)
    candidates = candidate_worlds(scm_class.observed, 3)
    rate = scm_class.noise.max_rate
    rates = dict.fromkeys(scm_class.endogenous, rate) if rate else {}
    worlds = []
    for number, do in enumerate([{}, *rng.sample(candidates, NUM_WORLDS - 1)]):
        rows = noisy_rows(scm_class, member, do, range(8), seed=1, world=number, rates=rates)
        worlds.append(EvidenceWorld(do, rows))
    return worlds


def _masses(num_vars: int) -> Work:
    scm_class = _scm_class(num_vars, rate=Fraction(1, 20))
    worlds = _evidence(scm_class)
    return lambda: Posterior(scm_class).condition(*worlds).mass, 1


def _doubles(num_vars: int) -> Work:
    """Return masses of readings given the evidence, all of one candidate list at once as greedy asks for them."""
    scm_class = _scm_class(num_vars, rate=Fraction(1, 20))
    masses = ApproximateMasses(Posterior(scm_class).condition(*_evidence(scm_class)))
    import numpy as np

    requests = [request_rows(scm_class, do, range(8)) for do in candidate_worlds(scm_class.observed, 1)]
    words = np.array([word for world in requests for word, _ in world], np.uint64)
    targets = np.array([clamped for world in requests for _, clamped in world], np.uint64)
    spans = np.arange(len(requests) + 1, dtype=np.int64) * 8
    return lambda: masses.log_masses(words, targets, spans), len(requests)


def _hidden_count() -> Work:
    scm_class = _scm_class(9, num_hidden=1)
    worlds = _evidence(scm_class)
    return lambda: count_members(Posterior(scm_class).condition(*worlds)), 1


def _step(num_vars: int, suffix: str) -> Work:
    """Return a choice after the start and two worlds."""
    problem = _problem(num_vars, suffix)
    scm_class, gold = task_class(problem.task), problem.sealed.gold
    assert gold is not None
    chooser = WorldChooser(problem.task, scm_class, problem.id)
    constants = [{}, chooser.candidates[1], chooser.candidates[-1]]
    worlds = [EvidenceWorld(do, clean_rows(scm_class, gold.local_functions, do, range(8))) for do in constants]
    return lambda: chooser.choose(worlds), 1


def _episodes(num_vars: int, policy: str) -> Work:
    seeds = count(1)

    def play_next() -> object:
        problem = _problem(num_vars, "", next(seeds) % 4 + 1)
        return play_worlds(ScmEpisode(problem), policy, problem.id)

    return play_next, 1


def _minimum() -> Work:
    problem = _problem(10, "")
    return lambda: clairvoyant_minimum(problem), 1
