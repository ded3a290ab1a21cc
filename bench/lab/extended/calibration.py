"""Calibration of posteriors on generated items: stated against true, bin by bin."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from random import Random

from calibrant.audits.replayscm.extended.attribution import heldout_requests
from calibrant.audits.replayscm.extended.calibration import calibration_bins
from calibrant.audits.replayscm.extended.generate import sample_extended
from calibrant.audits.replayscm.extended.strata import extended_strata
from calibrant.bench.replayscm.extended.rows import task_evidence
from calibrant.dsl.replayscm.episodes.episode import task_class
from calibrant.dsl.replayscm.extensions.local_functions import clean_rows
from calibrant.solvers.replayscm.experiments.attribution import decide_behaviour
from calibrant.solvers.replayscm.noise.posterior import Posterior

MAX_ROWS = 48  # of the evidence: with all worlds nearly every statement would be certain
NUM_REQUESTS = 2


def statements(number: int, seed: int) -> Iterator[tuple[Fraction, bool]]:
    """Yield the posterior of the top behaviour of each item, and whether it is gold's.

    Items of the noisy strata of 6 variables without hidden ones, on the first rows of their worlds.
    """
    strata = [s for s in extended_strata() if s.rate and not s.num_hidden and s.shape.base.num_variables == 6]
    rng = Random(seed)
    for place in range(number):
        problem = sample_extended(strata[place % len(strata)], seed + place, is_episode=False)
        scm_class, gold = task_class(problem.task), problem.sealed.gold
        assert gold is not None
        num_rows = rng.randint(1, MAX_ROWS)
        evidence, rows = [], 0
        for world in task_evidence(problem.task):
            if rows < num_rows:
                evidence.append(world)
                rows += len(world.rows)
        requests = heldout_requests(problem, scm_class)[:NUM_REQUESTS]
        verdict = decide_behaviour(Posterior(scm_class).condition(*evidence), requests, rng)
        truth = tuple(clean_rows(scm_class, gold.local_functions, do, contexts) for do, contexts in requests)
        yield verdict.share, verdict.rows == truth


def calibration_lines(number: int, seed: int) -> Iterator[str]:
    """Yield a line for each bin; the last states the largest deviation in standard errors."""
    bins = calibration_bins(statements(number, seed))
    yield "bin            n   stated  true   errors"
    for bin_ in bins:
        name = f"[{bin_.lower:.2f}, {bin_.upper:.2f})"
        yield f"{name}  {bin_.number:5}  {bin_.mean_stated:.3f}  {bin_.share_true:.3f}  {bin_.deviation:+.2f}"
    yield f"largest deviation: {max(abs(bin_.deviation) for bin_ in bins):.2f} standard errors, {number} items"
