"""Extended items behind the public names: scores with steps, solutions, and the SCMs that fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calibrant.bench.core.capabilities import Solution
from calibrant.bench.core.registry import benchmark
from calibrant.bench.replayscm.extended.scoring import ExtendedVerdicts, is_episode
from calibrant.bench.replayscm.rows.episodes import task_evidence
from calibrant.bench.scoring.scorer import replay_answer
from calibrant.dsl.episode import Step, verify_transcript
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.episode import ScmEpisode, steps_evidence, task_class
from calibrant.dsl.replayscm.extensions.evaluation import ExtendedScore
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.outcome import Found, Outcome
from calibrant.solvers.replayscm.experiments.answers import answer_exact
from calibrant.solvers.replayscm.experiments.candidates import version_space
from calibrant.solvers.replayscm.experiments.policies import play_worlds
from calibrant.solvers.replayscm.space import VersionSpace


def score_extended(
    problem: Problem, answer: str | dict[str, Any], steps: Sequence[Step[Any]], extractor: str
) -> ExtendedScore:
    """Return the verdict on an answer; steps are replayed first, and what they submit counts."""
    verdicts = ExtendedVerdicts(problem, extractor=extractor)
    if not is_episode(problem):
        if steps:
            raise CalibrantError(f"{in_one_line(problem.id)} is answered at once: it has no steps")
        return verdicts.score(answer)
    replayed = replay_answer(benchmark(problem.benchmark), problem, answer, steps)
    return verdicts.score(replayed.answer or None, replayed.steps)


def solve_extended(problem: Problem) -> Outcome[Solution[Scm]]:
    """Return the most probable map, after greedy's worlds in an episode; nothing is submitted."""
    task, steps = problem.task, ()
    evidence = task_evidence(task)
    if is_episode(problem):
        episode = ScmEpisode(problem)
        evidence = play_worlds(episode, "greedy", problem.id)
        steps = tuple(episode.steps)  # type: ignore[assignment]
    outcome = answer_exact(task, evidence)
    if not isinstance(outcome, Found):
        return outcome
    solved, scm_class = outcome.value, task_class(task)
    texts = solved.submission["mechanisms"]
    assert isinstance(texts, dict)
    names = frozenset(scm_class.variables)
    model = Scm(scm_class.roots, {v: parse(text, task.grammar, names) for v, text in texts.items()})
    provenance: dict[str, Any] = {"class": scm_class.describe()}
    if solved.posterior_share is not None:
        provenance["posterior_share"] = float(solved.posterior_share)
    return Found(Solution(dict(solved.submission), model, model.size, provenance, steps))


def fitting_space(problem: Problem, steps: Sequence[Step[Any]]) -> VersionSpace:
    """Return the SCMs of the item's class that fit; `CalibrantError` under noise and with hidden variables."""
    scm_class = task_class(problem.task)
    if scm_class.hidden_parents or not scm_class.noise.is_silent:
        where = "calibrant.solvers.replayscm.noise.posterior"
        raise CalibrantError(f"{in_one_line(problem.id)} has noise or hidden variables: its posterior is in {where}")
    if not is_episode(problem):
        return version_space(problem.task, scm_class, task_evidence(problem.task))
    episode = verify_transcript(ScmEpisode(problem), steps or ScmEpisode(problem).steps)
    return version_space(problem.task, scm_class, steps_evidence(episode.steps))
