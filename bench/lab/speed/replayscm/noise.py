"""Exact masses under noise and the choice of a noise-free world, on problems of 7 and 10 variables.

A class is that of the problem with a rate of 1/20 and gold's number of parents; evidence are ten worlds of eight rows,
the flips of a fixed seed. The rival is the same sum over Moebius weights of single parent sets, exact too. Targets, the
project's own: 1 and 5 milliseconds a mass, .1 seconds a choice of 10 variables, on one core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace as with_fields
from fractions import Fraction
from functools import partial
from random import Random

from msgspec.structs import replace

from calibrant.bench.lab.speed.comparison import Comparison, Options, Rival, Row, measure
from calibrant.dsl.replayscm.episode import candidate_worlds, clean_rows, noisy_rows, task_class
from calibrant.dsl.replayscm.extensions.extension import (
    NOISE_FREE,
    Allowance,
    Contexts,
    Extension,
    NoiseModel,
    known_rate,
)
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.solvers.acyclic.count import total
from calibrant.solvers.replayscm.experiments.greedy import WorldChooser
from calibrant.solvers.replayscm.noise.posterior import Posterior

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
