"""Labels of generated extended items: how much is open, what greedy and blind rows get, what nobody can do better.

Computed on the canonical form of an item, as rows see it: equal for all names of variables and orders of rows.

bits_start: posterior entropy after the start, in bits; greedy_worlds: that greedy asks for, `more than N` where the
allowance ends it; bayes_error: 1 less the share of the top held-out behaviour on all evidence; blind: blind rows whose
answer is right; clairvoyant, floor: fewest worlds that leave what all worlds leave, and that many SCMs; hidden_needed:
mass at the start in which a hidden variable has a child.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from calibrant.audits.replayscm.extended.attribution import decide_extended
from calibrant.baselines.replayscm.rows import answer_hidden_blind, answer_noise_blind
from calibrant.bench.replayscm.extended.scoring import is_episode
from calibrant.bench.replayscm.rows.episodes import task_evidence
from calibrant.bench.replayscm.rows.presentation import present_episode
from calibrant.dsl.episode import Step
from calibrant.dsl.replayscm.episode import ScmEpisode, candidate_worlds, task_class
from calibrant.dsl.replayscm.extensions.evaluation import ExtendedEvaluator
from calibrant.dsl.replayscm.extensions.extension import Contexts, MechanismClass
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.outcome import Found
from calibrant.solvers.replayscm.canonical import canonical_problem
from calibrant.solvers.replayscm.experiments.clairvoyant import ClairvoyantMinimum, ClairvoyantSearch
from calibrant.solvers.replayscm.experiments.policies import episode_evidence, is_settled, play_worlds, stop_worlds
from calibrant.solvers.replayscm.experiments.shares import posterior_bits
from calibrant.solvers.replayscm.noise.posterior import Posterior

UNKNOWN = "out of budget"


def label_problem(problem: Problem) -> Problem:
    """Return the item with its labels, which are sealed."""
    sealed = replace(problem.sealed, labels={**problem.sealed.labels, **dict(item_labels(problem))})
    return replace(problem, sealed=sealed)


def item_labels(problem: Problem) -> Iterator[tuple[str, str]]:
    """Yield the labels of an item with their values as text."""
    if not is_episode(problem):
        problem = canonical_problem(problem)
        yield from _evidence_labels(problem, task_class(problem.task), task_evidence(problem.task), ())
        return
    spelled, problem = problem, present_episode(problem).content
    scm_class, episode = task_class(problem.task), ScmEpisode(problem)
    start = Posterior(scm_class).condition(*episode_evidence(episode))
    try:
        yield "bits_start", f"{posterior_bits(start, f'{problem.id}|bits').value:.2f}"
    except BudgetSpent:
        yield "bits_start", UNKNOWN
    if scm_class.hidden_parents:
        yield "hidden_needed", _hidden_needed(spelled)
    evidence: Sequence[EvidenceWorld] | None = None
    try:
        evidence = play_worlds(episode, "greedy", problem.id)
        yield "greedy_worlds", _num_worlds(episode, evidence, problem)
    except BudgetSpent:
        yield "greedy_worlds", UNKNOWN
    search = clairvoyant_search(problem)
    if search is not None:
        minimum = search.fewest()  # without the certificate, so that HiGHS is not needed
        yield "clairvoyant", str(len(minimum.worlds))
        yield "floor", str(minimum.floor)
    if evidence is None:
        # the other labels are about the worlds that greedy asks for
        yield "bayes_error", UNKNOWN
    else:
        yield from _evidence_labels(problem, scm_class, evidence, episode.steps)


def _num_worlds(episode: ScmEpisode, evidence: Sequence[EvidenceWorld], problem: Problem) -> str:
    number = len(evidence) - 1
    if episode.left:
        return str(number)
    posterior = Posterior(task_class(problem.task)).condition(*evidence)
    settled = is_settled(posterior, stop_worlds(problem.task), Random(f"{problem.id}|stop|{len(evidence)}"))
    return str(number) if settled else f"more than {number}"


def _hidden_needed(problem: Problem) -> str:
    """Return exact masses by hidden name, so in the names of the item."""
    scm_class = task_class(problem.task)
    start = Posterior(scm_class).condition(*episode_evidence(ScmEpisode(problem)))
    try:
        return " ".join(f"{h} {float(1 - start.without_children(h)):.3g}" for h in scm_class.hidden_parents)
    except BudgetSpent:
        return UNKNOWN


def _evidence_labels(
    problem: Problem, scm_class: MechanismClass, evidence: Sequence[EvidenceWorld], steps: Sequence[Step[Any]]
) -> Iterator[tuple[str, str]]:
    decision = decide_extended(problem, steps)
    yield "bayes_error", UNKNOWN if decision is None else f"{float(1 - decision.verdict.share):.3g}"
    rows = right_blind_rows(problem, scm_class, evidence)
    if rows is not None:
        yield "blind", " ".join(rows) or "none"


def right_blind_rows(
    problem: Problem, scm_class: MechanismClass, evidence: Sequence[EvidenceWorld]
) -> list[str] | None:
    """Return the blind rows whose clean held-out behaviour is right; None where nothing is there to be blind to."""
    rows = {}
    if not scm_class.noise.is_silent:
        rows["noise-blind"] = answer_noise_blind
    if scm_class.hidden_parents:
        rows["hidden-blind"] = answer_hidden_blind
    if not rows:
        return None
    evaluator = ExtendedEvaluator(problem)
    right = []
    for name, answer in rows.items():
        outcome = answer(problem.task, evidence)
        if isinstance(outcome, Found):
            replay = evaluator.score_answer(dict(outcome.value.submission)).replay
            if replay is not None and replay.heldout_exact:
                right.append(name)
    return right


def clairvoyant_minimum(problem: Problem) -> ClairvoyantMinimum | None:
    """Return the clairvoyant minimum of an episode; None under noise, with hidden variables or sampled contexts."""
    search = clairvoyant_search(problem)
    return None if search is None else search.solve()


def clairvoyant_search(problem: Problem) -> ClairvoyantSearch | None:
    """Return the search for it, under the same conditions."""
    scm_class, gold, extension = task_class(problem.task), problem.sealed.gold, problem.task.extension
    assert extension is not None
    allowance = extension.allowance
    if allowance is None or allowance.contexts is not Contexts.ALL or gold is None:
        return None
    if scm_class.hidden_parents or not scm_class.noise.is_silent:
        return None
    worlds = candidate_worlds(scm_class.observed, allowance.max_targets)
    return ClairvoyantSearch(problem.task, scm_class, gold.local_functions, worlds)
