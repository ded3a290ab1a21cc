"""Masses under noise, choices of worlds, episodes and minima of extended items on one core.

A class is that of the problem with a rate of 1/20 and gold's number of parents; evidence are ten worlds of eight rows,
the flips of a fixed seed. The rival is the same sum over Moebius weights of single parent sets, exact too. Targets, the
project's own: 1 and 5 milliseconds a mass, .1 seconds a choice of 10 variables, on one core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace as with_fields
from fractions import Fraction
from functools import cache, partial
from itertools import count
from random import Random

from msgspec.structs import replace

from calibrant.audits.replayscm.extended.generate import extended_strata, sample_extended
from calibrant.bench.lab.speed.report import Comparison, Options, Rival, Row, measure
from calibrant.bench.replayscm.audit.extended import clairvoyant_minimum
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.episode import ScmEpisode, candidate_worlds, clean_rows, noisy_rows, task_class
from calibrant.dsl.replayscm.extensions.extension import (
    NOISE_FREE,
    Allowance,
    Contexts,
    Extension,
    MechanismClass,
    NoiseModel,
    Prior,
    known_rate,
)
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.solvers.acyclic.count import total
from calibrant.solvers.replayscm.experiments.candidates import request_rows
from calibrant.solvers.replayscm.experiments.greedy import WorldChooser
from calibrant.solvers.replayscm.experiments.policies import play_worlds
from calibrant.solvers.replayscm.hidden.mass import count_members, posterior_sampler
from calibrant.solvers.replayscm.noise.posterior import ApproximateMasses, Posterior

# --- Exact masses under noise and the choice of a noise-free world, on problems of 7 and 10 variables -----------------
TOPIC = "noise"
MAX_MS = {7: 1.0, 10: 5.0}  # of an exact mass, by variables
MAX_STEP_MS = 100.0
RATE = Fraction(1, 20)
NUM_WORLDS, NUM_ROWS, MAX_TARGETS = 10, 8, 3
NUM_ASKED = 4  # worlds before the choice that is timed


def rows(options: Options) -> Iterator[Row]:
    for num_vars, max_ms in MAX_MS.items():
        usable = [p for p in options.problems if _is_usable(p, num_vars)]
        if not usable:
            continue
        # without an order every variable may be a parent of every other: the most sets, and one component
        problem = min(usable, key=lambda p: p.setting != "Hidden-order")
        posterior = _noisy_posterior(problem)
        rivals = [
            Rival("tables of placed variables", _mass_call(posterior)),
            Rival("Moebius weights", partial(_moebius_mass, posterior)),
        ]
        assert rivals[0].call() == rivals[1].call()
        case = f"{problem.setting}, {num_vars} variables"
        yield from _judged(Comparison(TOPIC, case, "exact mass", rivals), options, max_ms)
        if num_vars == max(MAX_MS):
            case = f"{case}, {NUM_ASKED} worlds before"
            comparison = Comparison(TOPIC, case, "greedy choice", [Rival("drawn members", _choice_call(problem))])
            yield from _judged(comparison, options, MAX_STEP_MS)


def _judged(comparison: Comparison, options: Options, max_ms: float) -> Iterator[Row]:
    first, *others = measure(comparison, options.discipline)
    assert first.per_second is not None
    # a glance neither warms up nor repeats: it cannot miss a target
    is_met = first.per_second >= 1000 / max_ms if options.scale == 1 else None
    yield replace(first, met=is_met, note=f"at most {max_ms:g} ms")
    yield from others


def _is_usable(problem: Problem, num_vars: int) -> bool:
    disclosure = problem.task.disclosure
    return len(problem.task.variables) == num_vars and disclosure.order is None and disclosure.roots is not None


def _task(problem: Problem, noise: NoiseModel) -> Task:
    """Return the problem as an episode of its own class, with all contexts."""
    gold, disclosure = problem.sealed.gold, problem.task.disclosure
    assert gold is not None
    assert disclosure.roots is not None
    max_parents = max(len(function.parents) for function in gold.local_functions.values())
    allowance = Allowance(NUM_WORLDS, 1 << len(disclosure.roots), MAX_TARGETS, Contexts.ALL)
    extension = Extension(problem.task.variables, disclosure.roots, max_parents, noise=noise, allowance=allowance)
    return with_fields(problem.task, extension=extension)


def _noisy_posterior(problem: Problem) -> Posterior:
    gold = problem.sealed.gold
    assert gold is not None
    scm_class = task_class(_task(problem, known_rate(RATE)))
    rng = Random(f"noisy masses {problem.id}")
    candidates = candidate_worlds(scm_class.observed, MAX_TARGETS)
    worlds = []
    for number in range(NUM_WORLDS):
        do = rng.choice(candidates) if number else {}
        contexts = [rng.getrandbits(len(scm_class.roots)) for _ in range(NUM_ROWS)]
        texts = noisy_rows(
            scm_class,
            gold.local_functions,
            do,
            contexts,
            seed=1,
            world=number,
            rates=dict.fromkeys(scm_class.endogenous, RATE),
        )
        worlds.append(EvidenceWorld(do, texts))
    return Posterior(scm_class).condition(*worlds)


def _mass_call(posterior: Posterior) -> Callable[[], Fraction]:
    # a posterior keeps its mass, so each call has one of its own; the layout of the class is kept by design
    return lambda: Posterior(posterior.scm_class, posterior.rows).mass


def _moebius_mass(posterior: Posterior) -> Fraction:
    terms = Posterior(posterior.scm_class, posterior.rows).terms()
    return sum((term.factor * total(term.weights) for term in terms), start=Fraction(0))


def _choice_call(problem: Problem) -> Callable[[], object]:
    task = _task(problem, NOISE_FREE)
    scm_class, gold = task_class(task), problem.sealed.gold
    assert gold is not None
    chooser = WorldChooser(task, scm_class, problem.id)
    contexts = range(1 << len(scm_class.roots))
    interventions = [{}, *Random(f"worlds {problem.id}").sample(chooser.candidates, NUM_ASKED)]
    worlds = [EvidenceWorld(do, clean_rows(scm_class, gold.local_functions, do, contexts)) for do in interventions]
    return lambda: chooser.choose(worlds)


# --- Masses, choices, episodes and minima of extended items on one core, against their targets ------------------------
EPISODE_TOPIC = "episodes"
SHAPES = {6: "hs_n6_easy_calibration", 8: "hs_n8_bridge", 10: "vhs_n10_anchor_m10"}
MASS_MILLISECONDS = {7: 1, 10: 5}
DOUBLES_MILLISECONDS = 0.1
HIDDEN_MILLISECONDS = 50
STEP_SECONDS = {"": {10: 0.1}, "_noise1in20": {6: 0.05, 10: 1.0}}
GREEDY_EPISODES = {6: 15, 8: 4, 10: 0.7}
RANDOM_EPISODES = 50
CLAIRVOYANT_SECONDS = 10
NUM_EPISODE_WORLDS = 10

Work = tuple[Callable[[], object], int]  # what is timed, and how many items it does


def episode_rows(options: Options) -> Iterator[Row]:
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
    comparison = Comparison(EPISODE_TOPIC, case, item, [Rival("calibrant", *work)])
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
    for index, do in enumerate([{}, *rng.sample(candidates, NUM_EPISODE_WORLDS - 1)]):
        rows = noisy_rows(scm_class, member, do, range(8), seed=1, world=index, rates=rates)
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
