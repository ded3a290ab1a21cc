"""Audits of extended items: is the verdict winnable, decided, trivial, and are hidden variables needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from math import log2
from random import Random

from calibrant.audits.replayscm.extended.attribution import heldout_requests
from calibrant.dsl.replayscm.episode import ScmEpisode, candidate_worlds, clean_rows, task_class, worlds_evidence
from calibrant.dsl.replayscm.extensions.extension import NOISE_FREE, MechanismClass
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, Mechanisms
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.replayscm.experiments.policies import episode_evidence
from calibrant.solvers.replayscm.experiments.shares import NUM_TRIED_DRAWS, AskedWorlds, behaviour_shares
from calibrant.solvers.replayscm.hidden.mass import exact_mass
from calibrant.solvers.replayscm.hidden.members import meaning, posterior_sampler
from calibrant.solvers.replayscm.noise.posterior import DECIDED, Posterior


class Finding(Enum):
    """Defects of an extended item."""

    UNWINNABLE = "unwinnable"
    AMBIGUOUS = "ambiguous"
    TRIVIAL = "trivial"
    VACUOUS = "vacuous"


@dataclass(frozen=True)
class ExtendedFinding:
    """A defect with its reason in one line.

    share: the exact posterior that the claim rests on, where it rests on one
    is_proved: whether the claim follows from exact shares; else more behaviours would have to be tried
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
    """Return the defects of an extended item; `BudgetSpent` where hidden columns are too many."""
    scm_class, gold = task_class(problem.task), problem.sealed.gold
    if gold is None:
        raise ValueError(f"'{problem.id}' has no gold")
    functions = gold.local_functions
    heldout = worlds_evidence(scm_class, problem.sealed.heldout.worlds)
    findings = []
    if problem.task.extension is not None and problem.task.extension.is_episode:
        findings += _winnable(problem, scm_class, functions, heldout)
        evidence = episode_evidence(ScmEpisode(problem))
    else:
        evidence = worlds_evidence(scm_class, problem.task.training.worlds)
    posterior = Posterior(scm_class).condition(*evidence)
    tried = _try_behaviours(posterior, heldout_requests(problem, scm_class), Random(problem.id))
    share = tried.largest
    threshold = Fraction(1) if scm_class.noise.is_silent else DECIDED
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
    """Check that all candidates together, shown clean as often as wished, leave one held-out behaviour."""
    extension = problem.task.extension
    assert extension is not None
    assert extension.allowance is not None
    contexts = range(1 << len(scm_class.roots))
    worlds = [
        EvidenceWorld(do, clean_rows(scm_class, gold, do, contexts))
        for do in candidate_worlds(scm_class.observed, extension.allowance.max_targets)
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
    """State that no behaviour reaches the threshold: proved iff what is left over for the others is below it too."""
    if threshold == 1:
        return ExtendedFinding(Finding.AMBIGUOUS, "members disagree on held-out worlds", tried.largest)
    if 1 - tried.total < threshold:
        return ExtendedFinding(Finding.AMBIGUOUS, f"no held-out behaviour reaches {threshold}", tried.largest)
    claim = f"none of {NUM_TRIED_DRAWS} drawn behaviours reaches {threshold}; others are not excluded"
    return ExtendedFinding(Finding.AMBIGUOUS, claim, tried.largest, is_proved=False)


def _try_behaviours(posterior: Posterior, worlds: AskedWorlds, rng: Random) -> TriedBehaviours:
    """Return the exact posteriors of the clean held-out behaviours of drawn members."""
    sampler = posterior_sampler(posterior)
    num_draws = 1 if posterior.scm_class.noise.is_silent else NUM_TRIED_DRAWS
    shares = behaviour_shares(posterior, worlds, [sampler.draw(rng) for _ in range(num_draws)]).values()
    return TriedBehaviours(max(shares), sum(shares, Fraction(0)))


def lies_in_visible_class(scm_class: MechanismClass, gold: Mechanisms) -> bool:
    """Return whether the class without hidden variables has an SCM of gold's meaning.

    Its mechanisms are gold's reduced functions, which the meaning fixes: they need few enough admissible parents. They
    are acyclic, since gold's graph is.
    """
    hidden = tuple(scm_class.hidden_parents)
    names = [v for v in sorted(gold) if v not in hidden]
    for variable, (parents, _) in zip(names, meaning(gold, hidden), strict=True):
        if len(parents) > scm_class.max_parents:
            return False
        if not set(parents) <= set(scm_class.admissible_parents(variable)):
            return False
    return True


def start_labels(problem: Problem, num_draws: int = 64) -> dict[str, str]:
    """Return labels of the start: entropy of the posterior in bits, and how needed hidden variables are.

    Noise-free with a uniform prior the entropy is exact, log2 of the members; else the mean of -log2 of the posterior
    of drawn members, without bias.
    """
    scm_class = task_class(problem.task)
    posterior = Posterior(scm_class).condition(*episode_evidence(ScmEpisode(problem)))
    mass, rng = exact_mass(posterior), Random(f"{problem.id}|labels")
    sampler = posterior_sampler(posterior)
    drawn_bits = [-log2(posterior.likelihood(sampler.draw(rng)) / mass) for _ in range(num_draws)]
    labels = {"bits_start": f"{sum(drawn_bits) / num_draws:.3f}"}
    for hidden in scm_class.hidden_parents:
        labels[f"hidden_needed.{hidden}"] = f"{float(1 - posterior.without_children(hidden)):.4f}"
    return labels
