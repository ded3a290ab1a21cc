"""Episodes of ReplaySCM as timelines: what was set, how many SCMs every world left, and the decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calibrant.bench.pages.episode_views import TimelineViews
from calibrant.bench.pages.timeline import Decision, Light, Moment, News, Timeline
from calibrant.bench.replayscm.extended.scoring import ExtendedVerdicts
from calibrant.dsl.episode import Step, verify_transcript
from calibrant.dsl.errors import in_one_line, short_repr
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.episode import ScmEpisode, task_class
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.replayscm.experiments.shares import posterior_bits
from calibrant.solvers.replayscm.hidden.mass import count_members
from calibrant.solvers.replayscm.noise.posterior import Posterior

NUM_DRAWS = 64  # under noise: the effective number of SCMs is drawn as a bar on a logarithmic scale
MAX_ANSWER_CHARS = 400


def scm_timeline(problem: Problem, steps: Sequence[Step[Any]], system: str) -> Timeline:
    """Return the timeline of an episode; `TranscriptError` if the item does not answer so."""
    episode = verify_transcript(ScmEpisode(problem), steps)
    scm_class = task_class(problem.task)
    posterior = Posterior(scm_class)
    moments: list[Moment] = []
    num_before: int | None = None
    for number, step in enumerate(episode.steps):
        if step.reading is not None:
            do = step.action.get("do", {})
            posterior = posterior.condition(EvidenceWorld(do, tuple(step.reading["rows"])))
        num_left = _num_left(posterior, f"{problem.id}|{number}") if step.reading is not None else num_before or 0
        moments.append(_moment(problem, step, num_left, num_before))
        num_before = num_left
    decided = next((k for k, moment in enumerate(moments) if moment.members == 1), None)
    counted = "SCMs left" if scm_class.noise.is_silent else "effective number of SCMs, 2 to the posterior's bits"
    return Timeline(
        problem.id,
        system,
        "model",
        scm_class.observed,
        tuple(str(k + 1) for k in range(len(scm_class.observed))),
        (),
        tuple(moments),
        f"{scm_class.describe()}; bars: {counted}",
        _decision(problem, episode),
        decided,
    )


def _num_left(posterior: Posterior, seed: str) -> int:
    """Return the SCMs left; under noise their effective number; 0 out of budget."""
    try:
        if posterior.scm_class.noise.is_silent:
            return count_members(posterior)
        return max(1, round(2 ** posterior_bits(posterior, seed, NUM_DRAWS).value))
    except BudgetSpent:
        return 0


def _moment(problem: Problem, step: Step[Any], num_left: int, before: int | None) -> Moment:
    observed = task_class(problem.task).observed
    do = step.action.get("do", {}) if step.reading is not None else {}
    targets = tuple(place for place, v in enumerate(observed) if v in do)
    if step.refused:
        caption, light = short_repr(dict(step.action)), Light.REFUSED
        return Moment(caption, "Refused", light, (), (), num_left, {}, News.NONE, f"{in_one_line(step.refused)[:200]}.")
    if step.reading is None:
        return Moment("Submitted", "Submitted", Light.SUBMITTED, (), (), num_left, {}, News.NONE, "")
    setting = ", ".join(f"{v}={do[v]}" for v in natural(do)) or "nothing is set"
    reading = f"{len(step.reading['rows'])} rows"
    caption = f"World {step.reading['world']}: {setting}"
    news, remark = _news(num_left, before)
    return Moment(caption, reading, Light.ON, targets, targets, num_left, {}, news, remark)


def _news(num_left: int, before: int | None) -> tuple[News, str]:
    if before is None:
        return News.NONE, f"{_scms(num_left)}."
    if num_left == before:
        return News.NOTHING, f"Nothing is ruled out; {_scms(num_left)}."
    if num_left > before:
        return News.SHIFTED, f"{_scms(num_left)}, more than before: the reading was unlikely."
    return News.TOLD, f"From {before:,} to {_scms(num_left)}."


def _scms(number: int) -> str:
    return "1 SCM" if number == 1 else f"{number:,} SCMs"


def _decision(problem: Problem, episode: ScmEpisode) -> Decision:
    verdicts = ExtendedVerdicts(problem)
    score = verdicts.score(None, episode.steps)
    attribution = verdicts.attribution(score, episode.steps)
    gold = problem.sealed.gold
    truth = "; ".join(f"{v} = {render(f)}" for v, f in gold.mechanisms.items()) if gold else "not in the file"
    answer = "nothing" if score.answer is None else in_one_line(short_repr(dict(score.answer)))
    if score.submitted is not None:
        answer = "; ".join(f"{v} = {render(f)}" for v, f in score.submitted.formulas.items())
    kind = str(attribution["kind"]) if attribution else "not attributed"
    posterior = attribution.get("posterior") if attribution else None
    if attribution is None:
        why = "Nothing is held out" if score.correct is None else "Held-out behaviours are not counted"
    else:
        effect = "decided the held-out behaviour" if attribution["decided"] else "left several held-out behaviours"
        why = f"The worlds {effect}"
    if posterior is not None:
        upper = attribution.get("posterior_upper") if attribution else None
        why += f"; the most probable one has a posterior of {posterior:.3g}" + (f" to {upper:.3g}" if upper else "")
    reason = f" {score.failure}." if score.failure else ""
    return Decision(answer[:MAX_ANSWER_CHARS], truth[:MAX_ANSWER_CHARS], score.correct, kind, f"{why}.{reason}")


EPISODE_VIEWS = TimelineViews(scm_timeline)
