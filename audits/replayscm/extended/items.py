"""Findings about extended items, attribution of answers to them, and calibration of posteriors.

Attribution: without noise an answer is decided if all members agree; under noise, if one held-out behaviour has a
posterior of at least 99/100. Exact posteriors are computed for the behaviour of the most probable SCM and for those of
sampled members, until no other behaviour can be more probable.

Calibration: one statement per item. If gold is sampled from the stated prior, a statement of probability p is true with
probability p. This theorem tests the implementation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from math import sqrt
from random import Random
from typing import Any

from calibrant.audits.attribution import Attribution
from calibrant.dsl.episode import Step
from calibrant.dsl.replayscm import episode
from calibrant.dsl.replayscm.extensions.extension import NOISE_FREE, MechanismClass
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, Mechanisms
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import local_function
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.replayscm.experiments import candidates
from calibrant.solvers.replayscm.experiments.policies import episode_evidence
from calibrant.solvers.replayscm.hidden.mass import count_members, exact_mass, meaning, posterior_sampler
from calibrant.solvers.replayscm.noise.best_map import best_map
from calibrant.solvers.replayscm.noise.posterior import DECIDED, Posterior

# --- Attribution of answers to extended items: whether the evidence decided the clean held-out behaviour --------------


@dataclass(frozen=True)
class ExtendedDecision:
    """Whether the evidence decides the held-out behaviour.

    verdict: the most probable behaviour
    is_true: whether it is gold's; None without gold, and under noise if a more probable one is not excluded
    members: number of SCMs of positive posterior; in_words: the class
    """

    verdict: candidates.BehaviourVerdict
    is_true: bool | None
    members: int
    in_words: str
    is_noisy: bool

    def attribution(self, *, fits: bool | None, correct: bool) -> Attribution:
        """Attribute an answer; `fits`: whether it agrees with all evidence, ignored under noise."""
        verdict, fits = self.verdict, None if self.is_noisy else fits
        posterior = float(verdict.share) if self.is_noisy else None
        upper = float(verdict.upper) if self.is_noisy and not verdict.is_proved else None
        return Attribution(verdict.is_decided, correct, fits, self.members, self.in_words, posterior, upper)


def item_evidence(problem: Problem, steps: Sequence[Step[Any]]) -> list[EvidenceWorld]:
    """Return the evidence of an answer: the worlds that steps have shown, or those of a passive item."""
    scm_class = episode.task_class(problem.task)
    if problem.task.extension is not None and problem.task.extension.is_episode:
        return episode.steps_evidence(steps)
    return episode.worlds_evidence(scm_class, problem.task.training.worlds)


def heldout_requests(problem: Problem, scm_class: MechanismClass) -> candidates.AskedWorlds:
    """Return (constants, contexts) of the held-out worlds; worlds with targets set row by row are split by row."""
    requests = []
    positions = [scm_class.observed.index(root) for root in scm_class.roots]
    for evidence in episode.worlds_evidence(scm_class, problem.sealed.heldout.worlds):
        contexts = [sum(int(row[position]) << i for i, position in enumerate(positions)) for row in evidence.rows]
        requests.append((evidence.constants, contexts))
    return requests


def decide_extended(problem: Problem, steps: Sequence[Step[Any]]) -> ExtendedDecision | None:
    """Return whether the evidence decides; None without held-out worlds, for an empty posterior and out of budget."""
    scm_class = episode.task_class(problem.task)
    requests = heldout_requests(problem, scm_class)
    if not requests:
        return None
    posterior = Posterior(scm_class).condition(*item_evidence(problem, steps))
    is_noisy = not scm_class.noise.is_noiseless
    try:
        members = count_members(posterior)
        if not members:
            return None
        rng = Random(f"{problem.id}|attribution")
        if is_noisy:
            verdict = candidates.rank_behaviours(posterior, requests, rng, [_most_probable(posterior, problem)])
        else:
            verdict = candidates.decide_behaviour(posterior, requests, rng)
    except BudgetSpent:
        return None
    gold = problem.sealed.gold
    is_true = None
    if gold is not None and (verdict.is_proved or not is_noisy):
        functions = gold.local_functions
        is_true = verdict.rows == tuple(
            episode.clean_rows(scm_class, functions, do, contexts) for do, contexts in requests
        )
    return ExtendedDecision(verdict, is_true, members, scm_class.describe(), is_noisy)


def _most_probable(posterior: Posterior, problem: Problem) -> Mechanisms:
    formulas = best_map(posterior, problem.task.grammar).formulas
    return {v: local_function(formula) for v, formula in formulas.items()}


# --- Calibration of posteriors: stated probability of the most probable behaviour, and how often it is true -----------
BIN_EDGES = (0.0, 0.25, 0.5, 0.7, 0.85, 0.95, 0.99, 1.0)
Z = 1.959964  # two-sided 95 %


@dataclass(frozen=True)
class CalibrationBin:
    """Statements in [lower, upper), the last bin closed.

    number: number of statements; mean_stated: their mean probability; num_true: number of true ones
    """

    lower: float
    upper: float
    number: int
    mean_stated: float
    num_true: int

    @property
    def share_true(self) -> float:
        return self.num_true / self.number

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Wilson interval of the share; the normal interval has width 0 at shares of 0 and 1."""
        share, n = self.share_true, self.number
        centre = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
        half = Z * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n)) / (1 + Z * Z / n)
        return centre - half, centre + half

    @property
    def deviation(self) -> float:
        """Difference of the share and the mean statement, in standard errors."""
        error = sqrt(self.mean_stated * (1 - self.mean_stated) / self.number)
        difference = self.share_true - self.mean_stated
        return 0.0 if not difference else difference / error if error else float("inf")


def calibration_bins(
    statements: Iterable[tuple[Fraction, bool]], edges: Sequence[float] = BIN_EDGES
) -> list[CalibrationBin]:
    """Return the bins that have statements; `statements`: (stated probability, whether it is true)."""
    by_bin: dict[int, list[tuple[Fraction, bool]]] = {}
    for stated, is_true in statements:
        bin_index = max(i for i, edge in enumerate(edges[:-1]) if stated >= edge)
        by_bin.setdefault(bin_index, []).append((stated, is_true))
    return [
        CalibrationBin(
            edges[bin_index],
            edges[bin_index + 1],
            len(pairs),
            float(sum(stated for stated, _ in pairs) / len(pairs)),
            sum(is_true for _, is_true in pairs),
        )
        for bin_index, pairs in sorted(by_bin.items())
    ]


# --- Defects of extended items: unwinnable, ambiguous or trivial verdicts, hidden variables that are not needed -------


class Finding(Enum):
    """Defects of an extended item."""

    UNWINNABLE = "unwinnable"
    AMBIGUOUS = "ambiguous"
    TRIVIAL = "trivial"
    VACUOUS = "vacuous"


@dataclass(frozen=True)
class ExtendedFinding:
    """A defect with its reason in one line.

    share: the exact posterior from which the claim follows; None if it needs none
    is_proved: whether the claim follows from exact posteriors; if not, more behaviours would have to be tried
    """

    kind: Finding
    reason: str
    share: Fraction | None = None
    is_proved: bool = True


@dataclass(frozen=True)
class TriedBehaviours:
    """Exact posteriors of the clean held-out behaviours of drawn members.

    largest: the largest of them
    total: their sum, so that any other behaviour has at most 1 - total
    """

    largest: Fraction
    total: Fraction


def audit_extended(problem: Problem) -> list[ExtendedFinding]:
    """Return the defects of an extended item; `BudgetSpent` if hidden columns are too many."""
    scm_class, gold = episode.task_class(problem.task), problem.sealed.gold
    if gold is None:
        raise ValueError(f"'{problem.id}' has no gold")
    functions = gold.local_functions
    heldout = episode.worlds_evidence(scm_class, problem.sealed.heldout.worlds)
    findings = []
    if problem.task.extension is not None and problem.task.extension.is_episode:
        findings += _winnable(problem, scm_class, functions, heldout)
        evidence = episode_evidence(episode.ScmEpisode(problem))
    else:
        evidence = episode.worlds_evidence(scm_class, problem.task.training.worlds)
    posterior = Posterior(scm_class).condition(*evidence)
    tried = _try_behaviours(posterior, heldout_requests(problem, scm_class), Random(problem.id))
    share = tried.largest
    threshold = Fraction(1) if scm_class.noise.is_noiseless else DECIDED
    if share >= threshold and problem.task.kind.value == "CAL_A_SCM_EPISODE":
        findings.append(ExtendedFinding(Finding.TRIVIAL, "the verdict is decided at the start", share))
    if share < threshold and not (problem.task.extension and problem.task.extension.is_episode):
        findings.append(state_ambiguous(tried, threshold))
    if scm_class.hidden_parents and lies_in_visible_class(scm_class, functions):
        findings.append(ExtendedFinding(Finding.VACUOUS, "gold's meaning needs no hidden variable"))
    return findings


def _winnable(
    problem: Problem, scm_class: MechanismClass, gold: Mechanisms, heldout: Sequence[EvidenceWorld]
) -> list[ExtendedFinding]:
    """Return a finding unless all candidate worlds together, without noise, leave one held-out behaviour."""
    extension = problem.task.extension
    assert extension is not None
    assert extension.allowance is not None
    contexts = range(1 << len(scm_class.roots))
    worlds = [
        EvidenceWorld(do, episode.clean_rows(scm_class, gold, do, contexts))
        for do in episode.candidate_worlds(scm_class.observed, extension.allowance.max_targets)
    ]
    silent = replace(scm_class, noise=NOISE_FREE)
    everything = Posterior(silent).condition(*worlds)
    share = exact_mass(everything.condition(*_clean(heldout))) / exact_mass(everything)
    if share == 1:
        return []
    return [ExtendedFinding(Finding.UNWINNABLE, "all worlds together leave several held-out behaviours", share)]


def _clean(worlds: Sequence[EvidenceWorld]) -> list[EvidenceWorld]:
    return [replace(world, is_clean=True) for world in worlds]


def state_ambiguous(tried: TriedBehaviours, threshold: Fraction) -> ExtendedFinding:
    """State that no behaviour reaches the threshold: proved iff the remaining posterior is below it too."""
    if threshold == 1:
        return ExtendedFinding(Finding.AMBIGUOUS, "members disagree on held-out worlds", tried.largest)
    if 1 - tried.total < threshold:
        return ExtendedFinding(Finding.AMBIGUOUS, f"no held-out behaviour reaches {threshold}", tried.largest)
    claim = f"none of {candidates.NUM_TRIED_DRAWS} drawn behaviours reaches {threshold}; others are not excluded"
    return ExtendedFinding(Finding.AMBIGUOUS, claim, tried.largest, is_proved=False)


def _try_behaviours(posterior: Posterior, worlds: candidates.AskedWorlds, rng: Random) -> TriedBehaviours:
    """Return the exact posteriors of the noise-free held-out behaviours of sampled members."""
    sampler = posterior_sampler(posterior)
    num_draws = 1 if posterior.scm_class.noise.is_noiseless else candidates.NUM_TRIED_DRAWS
    shares = candidates.behaviour_shares(posterior, worlds, [sampler.draw(rng) for _ in range(num_draws)]).values()
    return TriedBehaviours(max(shares), sum(shares, Fraction(0)))


def lies_in_visible_class(scm_class: MechanismClass, gold: Mechanisms) -> bool:
    """Return whether the class without hidden variables has an SCM equivalent to gold on observed variables.

    Its mechanisms would be gold's functions with hidden variables substituted: they need few enough admissible parents.
    They are acyclic, since gold's graph is.
    """
    hidden = tuple(scm_class.hidden_parents)
    names = [v for v in sorted(gold) if v not in hidden]
    for variable, (parents, _) in zip(names, meaning(gold, hidden), strict=True):
        if len(parents) > scm_class.max_parents:
            return False
        if not set(parents) <= set(scm_class.admissible_parents(variable)):
            return False
    return True
