"""Worlds until a verdict is decided under noise and with hidden variables, and forecasts in use."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from statistics import fmean, median
from typing import NamedTuple

from calibrant.audits.replayscm.extended.attribution import decide_extended
from calibrant.audits.replayscm.extended.generate import sample_extended
from calibrant.audits.replayscm.extended.strata import SHAPES, ExtendedStratum
from calibrant.bench.core.registry import benchmark
from calibrant.bench.protocols.base import Protocol, ProtocolResult
from calibrant.bench.protocols.registry import protocols_of
from calibrant.bench.replayscm.extended.labels import right_blind_rows
from calibrant.bench.replayscm.extended.rows import task_evidence
from calibrant.dsl.replayscm.episodes.episode import ScmEpisode, task_class
from calibrant.dsl.replayscm.problem import Problem
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.replayscm.experiments.greedy import WorldChooser
from calibrant.solvers.replayscm.experiments.policies import POLICIES, episode_evidence
from calibrant.solvers.replayscm.noise.posterior import Posterior

POLICY_NAMES = ("greedy", "random")
ROWS = ("exact", "posterior", "noise-blind", "hidden-blind", "noisy-weights", "mbde-majority", "majority")


class DecidedEpisode(NamedTuple):
    """An episode that ended where its held-out verdict was decided, or where the policy or the allowance did.

    share: posterior of the most probable behaviour; is_true: whether that is gold's
    seconds: of processor time a choice
    """

    num_worlds: int
    is_decided: bool
    share: float
    is_true: bool
    seconds: float


def worlds_until_decided(problem: Problem, policy_name: str) -> DecidedEpisode:
    """Play until the held-out verdict is decided."""
    episode, scm_class = ScmEpisode(problem), task_class(problem.task)
    chooser = WorldChooser(problem.task, scm_class, problem.id)
    policy = POLICIES[policy_name](chooser, problem.id)
    seconds, num_choices = 0.0, 0
    while True:
        decision = decide_extended(problem, episode.steps)
        is_decided = decision is not None and decision.verdict.is_decided
        if is_decided or not episode.left:
            break
        evidence = episode_evidence(episode)
        started = time.process_time()
        do = policy.choose(evidence, Posterior(scm_class).condition(*evidence))
        seconds, num_choices = seconds + time.process_time() - started, num_choices + 1
        if do is None:
            break
        episode.act({"do": dict(do)})
    share = 0.0 if decision is None else float(decision.verdict.share)
    is_true = decision is not None and decision.is_true is True
    num_worlds = sum(step.cost for step in episode.steps)
    return DecidedEpisode(num_worlds, is_decided, share, is_true, seconds / max(1, num_choices))


def _lines(number: int, cases: Sequence[tuple[str, Callable[[int], Problem]]]) -> Iterator[str]:
    yield "case                        policy  mean  median  decided  true  top share  CPU s a choice"
    for name, draw in cases:
        for policy in POLICY_NAMES:
            results = [worlds_until_decided(draw(seed), policy) for seed in range(1, number + 1)]
            worlds = [result.num_worlds for result in results]
            num_decided = sum(result.is_decided for result in results)
            num_true = sum(result.is_true for result in results)
            share, seconds = fmean(result.share for result in results), fmean(result.seconds for result in results)
            yield (
                f"{name:26}  {policy:6}  {fmean(worlds):4.1f}  {median(worlds):6.1f}  {num_decided:2} of {number:2}"
                f"  {num_true:4}  {share:9.4f}  {seconds:14.3f}"
            )


def _stratum(num_variables: int, rate: Fraction, num_hidden: int) -> ExtendedStratum:
    shape = next(shape for shape in SHAPES if shape.base.num_variables == num_variables)
    return ExtendedStratum(shape, rate, num_hidden)


def deciding_lines(number: int, num_variables: int, rates: Sequence[str], num_worlds: int | None) -> Iterator[str]:
    """Yield worlds until decided of greedy and random at each rate; num_worlds: allowed, by default the stratum's.

    Under the allowance of a stratum random ends undecided, so that its mean is too small by an unknown amount.
    """
    strata = [_stratum(num_variables, Fraction(rate), 0) for rate in rates]
    cases = [(stratum.name, _drawing(stratum, num_worlds)) for stratum in strata]
    yield from _lines(number, cases)


def hidden_lines(number: int, num_variables: int) -> Iterator[str]:
    """Yield worlds until decided with one hidden variable, where greedy chooses by drawn members."""
    stratum = _stratum(num_variables, Fraction(0), 1)
    yield from _lines(number, [(stratum.name, _drawing(stratum))])


def _drawing(stratum: ExtendedStratum, num_worlds: int | None = None) -> Callable[[int], Problem]:
    def draw(seed: int) -> Problem:
        problem = sample_extended(stratum, seed)
        if num_worlds is None:
            return problem
        extension = problem.task.extension
        assert extension is not None
        assert extension.allowance is not None
        longer = replace(extension, allowance=replace(extension.allowance, worlds=num_worlds))
        return replace(problem, task=replace(problem.task, extension=longer))

    return draw


def _answer(protocol: Protocol, item: Problem) -> ProtocolResult:
    try:
        return protocol.answer(item.task)
    except BudgetSpent as spent:
        return ProtocolResult("out_of_budget", provenance={"reached": str(spent)})


def protocol_lines(number: int, num_variables: int, rates: Sequence[str], hidden: Sequence[int]) -> Iterator[str]:
    """Yield what rows get on passive items without noise and at each rate, by number of hidden variables.

    Held-out exact, and bits a cell above gold's law. Out of budget counts as not exact.
    """
    of = benchmark("replayscm")
    yield "rate, hidden  row             held-out exact  bits a cell above the law"
    for rate, num_hidden in product([Fraction(0), *map(Fraction, rates)], hidden):
        # there is nothing to be blind to
        if not rate and not num_hidden:
            continue
        stratum = _stratum(num_variables, rate, num_hidden)
        items = [sample_extended(stratum, seed, is_episode=False) for seed in range(1, number + 1)]
        blind = [right_blind_rows(item, task_class(item.task), task_evidence(item.task)) for item in items]
        case = f"{rate!s:5} {num_hidden:6}"
        yield f"{case}  blind rows that are right: {sum(bool(rows) for rows in blind)} of {number}"
        for name in ROWS:
            protocol = protocols_of(of)[name]()
            results = [(item, _answer(protocol, item)) for item in items]
            scores = [
                of.scoring.score(item, result.answer or of.scoring.no_answer(item), ()) for item, result in results
            ]
            exact = fmean(score.get("heldoutExact") is True for score in scores)
            excess = [score["excessLogLoss"] for score in scores if score.get("excessLogLoss") is not None]
            spent = sum(result.outcome == "out_of_budget" for _, result in results)
            note = f"  out of budget: {spent}" if spent else ""
            yield f"{case}  {name:14}  {exact:14.3f}  {fmean(excess) if excess else float('nan'):.4f}{note}"
