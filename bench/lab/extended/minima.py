"""Worlds that policies and the clairvoyant need, on bundled items and on generated strata."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import nan
from statistics import fmean

from calibrant.audits.replayscm.extended.generate import sample_extended
from calibrant.audits.replayscm.extended.strata import extended_strata
from calibrant.bench.pools.bundled import bundled_pool
from calibrant.bench.replayscm.extended.labels import clairvoyant_minimum
from calibrant.dsl.replayscm.episodes.episode import ScmEpisode, task_class
from calibrant.dsl.replayscm.extensions.extension import Allowance, Contexts, Extension
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.problem import Problem, TaskKind
from calibrant.dsl.replayscm.world import Panel
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.replayscm.experiments.policies import POLICIES, play_worlds
from calibrant.solvers.replayscm.hidden.exact_mass import count_members
from calibrant.solvers.replayscm.noise.posterior import Posterior

NUM_WORLDS = 60  # that policies may ask for on bundled items
EVERY = 3  # bundled items are many


def as_episode(problem: Problem) -> Problem:
    """Return a published item as an episode in the class of gold's largest number of parents."""
    gold, roots = problem.sealed.gold, problem.task.disclosure.roots
    assert gold is not None
    assert roots is not None
    parents = max(len(function.parents) for function in gold.local_functions.values())
    allowance = Allowance(NUM_WORLDS, 1 << len(roots), 3, Contexts.ALL)
    extension = Extension(problem.task.variables, tuple(roots), parents, allowance=allowance)
    training = Panel(problem.task.variables, ())
    task = replace(problem.task, kind=TaskKind.EPISODE, training=training, extension=extension)
    return replace(problem, task=task, sealed=replace(problem.sealed, seed=0))


def bundled_lines(number: int) -> Iterator[str]:
    """Yield a line for each of the first items: clairvoyant minimum, greedy, random, with what random leaves."""
    yield "n, k      clairvoyant  proved by     CPU s  greedy  CPU s  random, left"
    for problem in read_pool(bundled_pool("hidden-order")).problems[::EVERY][:number]:
        item = as_episode(problem)
        assert item.task.extension is not None
        started = time.process_time()
        minimum = clairvoyant_minimum(item)
        assert minimum is not None
        between = time.process_time()
        greedy = len(play_worlds(ScmEpisode(item), "greedy", item.id)) - 1
        done = time.process_time()
        evidence = play_worlds(ScmEpisode(item), "random", item.id)
        num_left = count_members(Posterior(task_class(item.task)).condition(*evidence))
        proof = "dual weights" if minimum.is_certified else f"HiGHS ({minimum.bound})"
        sizes = f"{len(item.task.variables)}, {item.task.extension.max_parents}"
        yield (
            f"{sizes:8}  {len(minimum.worlds):11}  {proof:12}  {between - started:5.1f}  {greedy:6}"
            f"  {done - between:5.1f}  {len(evidence) - 1}, {num_left:.3g}"
        )


def mean_lines(number: int, strata: Sequence[str]) -> Iterator[str]:
    """Yield a line for each stratum: mean worlds of greedy and random, and of the clairvoyant where it is defined."""
    yield "stratum                                   greedy  random  clairvoyant  below it"
    by_name = {stratum.name: stratum for stratum in extended_strata()}
    for name in strata if strata != ["all"] else list(by_name):
        worlds: dict[str, list[int]] = {policy: [] for policy in POLICIES}
        minima, num_below = [], 0
        for seed in range(1, number + 1):
            problem = sample_extended(by_name[name], seed)
            minimum = clairvoyant_minimum(problem)
            for policy, numbers in worlds.items():
                try:
                    evidence = play_worlds(ScmEpisode(problem), policy, problem.id)
                except BudgetSpent as spent:
                    yield f"{name:40}  {policy}, item {seed}: out of budget, {spent}"
                    continue
                numbers.append(len(evidence) - 1)
                if minimum is not None:
                    num_left = count_members(Posterior(task_class(problem.task)).condition(*evidence))
                    num_below += num_left == minimum.floor and numbers[-1] < len(minimum.worlds)
            minima += [] if minimum is None else [len(minimum.worlds)]
        means = "  ".join(f"{fmean(worlds[policy] or [nan]):6.1f}" for policy in ("greedy", "random"))
        yield f"{name:40}  {means}  {fmean(minima or [nan]):11.1f}  {num_below:8}"
