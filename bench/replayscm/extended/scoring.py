"""Verdicts on answers to extended items: the score of the answer, and what remains after its episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2
from typing import Any

from calibrant.audits.replayscm.extended.attribution import ExtendedDecision, decide_extended
from calibrant.bench.core.attribution import KEY, attribution_record
from calibrant.bench.core.scoring import AnswerContext, Prediction, line_head, line_place
from calibrant.bench.replayscm.options import ScoreOptions
from calibrant.bench.replayscm.verdict import funnel, structure
from calibrant.bench.scoring.evaluator_cache import EvaluatorCache
from calibrant.dsl.episode import ActionError, Step, replay_actions
from calibrant.dsl.json_objects import json_objects
from calibrant.dsl.replayscm.episode import ScmEpisode, episode_contexts, steps_evidence
from calibrant.dsl.replayscm.extensions.evaluation import FORECAST, ExtendedEvaluator, ExtendedScore
from calibrant.dsl.replayscm.extensions.extension import Contexts, Extension
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.replayscm.experiments.policies import StepRegret, episode_regrets, is_worth_asking
from calibrant.solvers.replayscm.hidden.mass import count_members
from calibrant.solvers.replayscm.noise.posterior import Posterior

TOP_TRUE = "top_true"  # of an attribution under noise: whether the most probable behaviour is gold's
NO_SUBMISSION = "nothing was submitted"


def is_episode(item: Problem) -> bool:
    """Return whether an item is played."""
    return item.task.extension is not None and item.task.extension.is_episode


class ExtendedVerdicts:
    """Scores of answers to one extended item, each with what remains after its episode. Counts are cached by evidence.

    extractor: a name of dsl.replayscm.extraction.EXTRACTORS; with_regret: rate every world of an episode
    """

    def __init__(self, problem: Problem, *, extractor: str = "paper", with_regret: bool = False) -> None:
        self.problem = problem
        self.evaluator = ExtendedEvaluator(problem, extractor=extractor)
        self._with_regret = with_regret
        self._decisions: EvaluatorCache[ExtendedDecision | None] = EvaluatorCache(MAX_DECISIONS)
        self._remains: EvaluatorCache[dict[str, Any]] = EvaluatorCache(MAX_DECISIONS)

    def score(self, answer: Mapping[str, Any] | str | None, steps: Sequence[Step[Any]] = ()) -> ExtendedScore:
        """Score an answer; what the steps of an episode submit comes first. Without steps it is submitted at once."""
        if not is_episode(self.problem):
            if answer is None:
                return self.evaluator.reject("no answer")
            return self.evaluator.score_text(answer) if isinstance(answer, str) else self.evaluator.score_answer(answer)
        strict = None
        if isinstance(answer, str):
            answer, strict, rejection = self.evaluator.extract(answer)
            answer = None if rejection is not None else answer
        steps = steps or submitted_steps(self.problem, answer)
        submission = submitted_answer(steps)
        submission = dict(answer) if submission is None and answer else submission
        if submission is None:
            return self.evaluator.reject(NO_SUBMISSION, steps)
        return self.evaluator.score_answer(submission, steps, strict_json=strict)

    def record(self, score: ExtendedScore, steps: Sequence[Step[Any]]) -> dict[str, Any]:
        """Return a score as records keep it: published keys, funnel, structure metrics, and what the episode left."""
        return score.to_dict() | funnel(score) | structure(score) | self._episode_fields(steps)

    def attribution(self, score: ExtendedScore, steps: Sequence[Step[Any]]) -> dict[str, Any] | None:
        """Return whether the evidence decided the clean held-out behaviour; None where that is not computed."""
        return self.decision(score.train_exact, steps, correct=score.correct)

    def decision(self, fits: bool | None, steps: Sequence[Step[Any]], *, correct: bool | None) -> dict[str, Any] | None:
        """Return the attribution of an answer of which a record keeps that it fits and is correct.

        None where it is neither correct nor wrong, and where counts are out of reach.
        """
        decision = None if correct is None else self._decide(steps)
        if decision is None or correct is None:
            return None
        record = attribution_record(decision.attribution(fits=fits, correct=correct))
        return record | {TOP_TRUE: decision.is_true} if decision.is_noisy else record

    def _decide(self, steps: Sequence[Step[Any]]) -> ExtendedDecision | None:
        return self._decisions.get(evidence_key(steps), lambda: decide_extended(self.problem, steps))

    def _episode_fields(self, steps: Sequence[Step[Any]]) -> dict[str, Any]:
        if not is_episode(self.problem) or not steps:
            return {}
        key = (evidence_key(steps), submitted_answer(steps) is not None)
        return dict(self._remains.get(key, lambda: self._remaining(steps)))

    def _remaining(self, steps: Sequence[Step[Any]]) -> dict[str, Any]:
        """Return what the evidence left: members, whether a further world was worth asking for, the excess."""
        evidence = steps_evidence(steps)
        extension = self.evaluator.extension
        posterior = Posterior(self.evaluator.scm_class).condition(*evidence)
        num_worlds = len(evidence) - 1
        fields: dict[str, Any] = {}
        try:
            members = count_members(posterior)
        except BudgetSpent:
            members = None
        fields["membersLeft"] = None if members is None else str(members)
        fields["bitsLeft"] = log2(members) if members and extension.noise.is_silent else None
        assert extension.allowance is not None
        can_continue = submitted_answer(steps) is not None and num_worlds < extension.allowance.worlds
        fields["premature"] = can_continue and self._is_worth_asking(posterior, members, steps)
        fields |= _excess_fields(self.problem.sealed.labels, num_worlds, members)
        if self._with_regret:
            fields["regret"] = [_regret_record(step) for step in self.regrets(steps)]
        return fields

    def _is_worth_asking(self, posterior: Posterior, members: int | None, steps: Sequence[Step[Any]]) -> bool | None:
        """Return whether a further world was of use; None out of budget."""
        if members is None and self.evaluator.scm_class.noise.is_silent:
            return None
        return is_worth_asking(self.problem.task, steps_evidence(steps), posterior, self.problem.id)

    def regrets(self, steps: Sequence[Step[Any]]) -> tuple[StepRegret, ...]:
        """Return the loss of every world that was asked for, against the best candidate before it."""
        readings = [step for step in steps if step.reading is not None]
        worlds = [
            (world.constants, self._contexts(step, number) if number else (), world.rows)
            for number, (step, world) in enumerate(zip(readings, steps_evidence(steps), strict=True))
        ]
        return episode_regrets(self.problem.task, worlds, Posterior(self.evaluator.scm_class), self.problem.id)

    def _contexts(self, step: Step[Any], number: int) -> Sequence[int]:
        extension: Extension = self.evaluator.extension
        assert extension.allowance is not None
        if extension.allowance.contexts is Contexts.CHOSEN:
            return [int(text[::-1] or "0", 2) for text in step.action["contexts"]]
        return episode_contexts(extension, number, self.problem.sealed.seed, self.problem.sealed.spelling)


MAX_DECISIONS = 256  # of one item, cached: samples of a model often ask for the same worlds


def evidence_key(steps: Sequence[Step[Any]]) -> str:
    """Return a text that is equal for equal worlds in one order."""
    return repr([(dict(w.constants), w.rows) for w in steps_evidence(steps)])


def _excess_fields(labels: Mapping[str, str], num_worlds: int, members: int | None) -> dict[str, int | str | None]:
    """Return worlds above the clairvoyant minimum if the floor was reached, else members above the floor."""
    if not labels.get("clairvoyant", "").isdecimal() or not labels.get("floor", "").isdecimal() or members is None:
        return {}
    minimum, floor = int(labels["clairvoyant"]), int(labels["floor"])
    return {"excess": num_worlds - minimum} if members == floor else {"shortOfFloor": str(members - floor)}


def _regret_record(step: StepRegret) -> dict[str, Any]:
    return {
        "value": step.value,
        "best": step.best,
        "regret": step.regret,
        "exact": step.is_exact,
        "standardError": step.standard_error,
    }


def submitted_answer(steps: Sequence[Step[Any]]) -> dict[str, Any] | None:
    """Return what these steps submit; None if they submit nothing."""
    return next((dict(step.action["submit"]) for step in steps if "submit" in step.action and not step.refused), None)


def submitted_steps(problem: Problem, answer: Mapping[str, Any] | None) -> Sequence[Step[Any]]:
    """Return the steps of an episode in which an answer is submitted at once."""
    actions = [{"submit": dict(answer)}] if answer else []
    return replay_actions(ScmEpisode(problem), actions).steps


def read_submission(problem: Problem, response: str | Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of a response, as `submit` takes it; `ActionError` says why there is none."""
    if isinstance(response, Mapping):
        fields = {key: response[key] for key in ("mechanisms", "noise", FORECAST) if key in response}
        if not fields:
            raise ActionError("an answer has 'mechanisms' or 'forecast'")
        return fields
    if not any(True for _ in json_objects(response)):
        raise ActionError("no JSON object in the response")
    answer, _, rejection = ExtendedEvaluator(problem).extract(response)
    if rejection is not None or not answer:
        raise ActionError(rejection.reason if rejection else "no answer in the response")
    return answer


class ExtendedLineEvaluator:
    """Implements Evaluator (bench.core.scoring) for one extended item."""

    def __init__(self, problem: Problem, options: ScoreOptions) -> None:
        self._verdicts = ExtendedVerdicts(problem, extractor=options.extractor, with_regret=options.regret)

    def evaluate(self, prediction: Prediction, context: AnswerContext) -> Mapping[str, Any]:
        """Return the line: score, episode, attribution, and where the answer belongs."""
        steps, answer = prediction.steps, prediction.answer
        if is_episode(self._verdicts.problem) and not steps:
            answer = self._verdicts.evaluator.extract(answer)[0] if isinstance(answer, str) else answer
            steps = tuple(submitted_steps(self._verdicts.problem, answer or None))
        score = self._verdicts.score(answer or None, steps)
        return {
            **line_head(prediction),
            **self._verdicts.record(score, steps),
            "problem": prediction.problem or prediction.gap,
            KEY: self._verdicts.attribution(score, steps),
            **line_place(context),
            "seconds": prediction.seconds,
        }
