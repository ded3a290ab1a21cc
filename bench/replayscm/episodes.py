"""Episodes and extended items: verdicts, text environments, timelines, and the public functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2
from typing import Any

from calibrant.audits.replayscm.extended.items import ExtendedDecision, decide_extended
from calibrant.bench.core.attribution import KEY, NOT_ANSWERED, attribution_record
from calibrant.bench.core.capabilities import Solution
from calibrant.bench.core.registry import benchmark
from calibrant.bench.core.responses import Answer, ReadAnswer, ReadingOptions
from calibrant.bench.core.scoring import AnswerContext, EvaluatorCache, Prediction, line_head, line_place
from calibrant.bench.core.verdict import ReadVerdict
from calibrant.bench.episodes import TextEpisode
from calibrant.bench.pages.timeline import Decision, Light, Moment, News, Timeline, TimelineViews
from calibrant.bench.replayscm.options import ScoreOptions
from calibrant.bench.replayscm.rows.episodes import task_evidence
from calibrant.bench.replayscm.verdict import funnel, structure
from calibrant.bench.scoring.reading import item_rules, read_response, verdict_fields
from calibrant.bench.scoring.scorer import replay_answer
from calibrant.dsl.answer_text import Thoughts
from calibrant.dsl.episode import Action, ActionError, Episode, Step, action_of_text, replay_actions, replay_transcript
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.formulas.text import parse, render
from calibrant.dsl.item import Message
from calibrant.dsl.json_objects import json_objects
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.episode import (
    MARK,
    ScmEpisode,
    TextDialogue,
    episode_contexts,
    read_reply,
    steps_evidence,
    task_class,
    world_table,
)
from calibrant.dsl.replayscm.extensions.evaluation import FORECAST, ExtendedEvaluator, ExtendedScore
from calibrant.dsl.replayscm.extensions.extension import Contexts, Extension
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.outcome import BudgetSpent, Found, Outcome
from calibrant.solvers.replayscm.experiments import policies
from calibrant.solvers.replayscm.experiments.candidates import posterior_bits, version_space
from calibrant.solvers.replayscm.hidden.mass import count_members
from calibrant.solvers.replayscm.noise.posterior import Posterior
from calibrant.solvers.replayscm.space import VersionSpace

# --- Verdicts on answers to extended items: the score of the answer, and what remains after its episode ---------------
TOP_TRUE = "top_true"  # key of an attribution under noise: whether the most probable behaviour is that of gold
NO_SUBMISSION = "nothing was submitted"


def is_episode(item: Problem) -> bool:
    """Return whether an item is an episode: the solver requests worlds before it answers."""
    return item.task.extension is not None and item.task.extension.is_episode


class ExtendedVerdicts:
    """Scores of answers to one extended item, with counts of the SCMs that remain after an episode.

    Counts are cached by evidence.

    with_regret: whether to compute the regret of every requested world
    """

    def __init__(self, problem: Problem, *, with_regret: bool = False) -> None:
        self.problem = problem
        self.evaluator = ExtendedEvaluator(problem)
        self._with_regret = with_regret
        self._decisions: EvaluatorCache[ExtendedDecision | None] = EvaluatorCache(MAX_DECISIONS)
        self._remains: EvaluatorCache[dict[str, Any]] = EvaluatorCache(MAX_DECISIONS)

    def score(self, answer: Mapping[str, Any] | str | None, steps: Sequence[Step[Any]] = ()) -> ExtendedScore:
        """Score an answer. A submission among the steps replaces it; without steps it is submitted at once."""
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
        """Return the score of a record: published keys, validity stages, structure metrics, fields of the episode."""
        return score.to_dict() | funnel(score) | structure(score) | self._episode_fields(steps)

    def attribution(self, score: ExtendedScore, steps: Sequence[Step[Any]]) -> dict[str, Any] | None:
        """Return whether the evidence decided the noise-free held-out behaviour; None if not computed."""
        return self.decision(score.train_exact, steps, correct=score.correct)

    def decision(self, fits: bool | None, steps: Sequence[Step[Any]], *, correct: bool | None) -> dict[str, Any] | None:
        """Return the attribution of a recorded answer.

        None if `correct` is None, or if the count exceeds its budget. fits, correct: as the record states
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
        """Return the fields of an episode: SCMs that remain, whether it stopped early, excess worlds, regrets."""
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
        fields["bitsLeft"] = log2(members) if members and extension.noise.is_noiseless else None
        assert extension.allowance is not None
        can_continue = submitted_answer(steps) is not None and num_worlds < extension.allowance.worlds
        fields["premature"] = can_continue and self._is_worth_asking(posterior, members, steps)
        fields |= _excess_fields(self.problem.sealed.labels, num_worlds, members)
        if self._with_regret:
            fields["regret"] = [_regret_record(step) for step in self.regrets(steps)]
        return fields

    def _is_worth_asking(self, posterior: Posterior, members: int | None, steps: Sequence[Step[Any]]) -> bool | None:
        """Return whether a further world would have been informative; None if that exceeds the budget."""
        if members is None and self.evaluator.scm_class.noise.is_noiseless:
            return None
        return policies.is_worth_asking(self.problem.task, steps_evidence(steps), posterior, self.problem.id)

    def regrets(self, steps: Sequence[Step[Any]]) -> tuple[policies.StepRegret, ...]:
        """Return the regret of every requested world: its loss against the best candidate at that step."""
        readings = [step for step in steps if step.reading is not None]
        worlds = [
            (world.constants, self._contexts(step, index) if index else (), world.rows)
            for index, (step, world) in enumerate(zip(readings, steps_evidence(steps), strict=True))
        ]
        return policies.episode_regrets(self.problem.task, worlds, Posterior(self.evaluator.scm_class), self.problem.id)

    def _contexts(self, step: Step[Any], world_index: int) -> Sequence[int]:
        extension: Extension = self.evaluator.extension
        assert extension.allowance is not None
        if extension.allowance.contexts is Contexts.CHOSEN:
            return [int(text[::-1] or "0", 2) for text in step.action["contexts"]]
        return episode_contexts(extension, world_index, self.problem.sealed.seed, self.problem.sealed.renaming)


MAX_DECISIONS = 256  # cache size per item: samples of a model often request the same worlds


def evidence_key(steps: Sequence[Step[Any]]) -> str:
    """Return a cache key: equal for equal sequences of worlds."""
    return repr([(dict(w.constants), w.rows) for w in steps_evidence(steps)])


def _excess_fields(labels: Mapping[str, str], num_worlds: int, members: int | None) -> dict[str, int | str | None]:
    """Return `excess`, or `shortOfFloor` if the floor was not reached; {} without these labels or a count.

    The floor is the least number of members that any worlds leave, the clairvoyant minimum the fewest worlds that reach
    it. excess: worlds above that minimum; shortOfFloor: members above the floor
    """
    if not labels.get("clairvoyant", "").isdecimal() or not labels.get("floor", "").isdecimal() or members is None:
        return {}
    minimum, floor = int(labels["clairvoyant"]), int(labels["floor"])
    return {"excess": num_worlds - minimum} if members == floor else {"shortOfFloor": str(members - floor)}


def _regret_record(step: policies.StepRegret) -> dict[str, Any]:
    return {
        "value": step.value,
        "best": step.best,
        "regret": step.regret,
        "exact": step.is_exact,
        "standardError": step.standard_error,
    }


def submitted_answer(steps: Sequence[Step[Any]]) -> dict[str, Any] | None:
    """Return the submitted answer among these steps; None if there is none."""
    return next((dict(step.action["submit"]) for step in steps if "submit" in step.action and not step.refused), None)


def submitted_steps(problem: Problem, answer: Mapping[str, Any] | None) -> Sequence[Step[Any]]:
    """Return the steps of an episode that submits an answer without requesting worlds."""
    actions = [{"submit": dict(answer)}] if answer else []
    return replay_actions(ScmEpisode(problem), actions).steps


def read_submission(problem: Problem, response: str | Mapping[str, Any]) -> dict[str, Any]:
    """Extract the answer of a response, in the form of `submit`; `ActionError` gives the reason if there is none."""
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


def read_extended(problem: Problem, response: str | Mapping[str, Any]) -> ReadAnswer:
    """Extract the answer of a response to an extended item, with the fault in its schema, if any."""
    try:
        answer = read_submission(problem, response)
    except ActionError as error:
        return ReadAnswer(None, str(error))
    return ReadAnswer(answer, ExtendedEvaluator(problem).schema_fault(answer))


class ExtendedLineEvaluator:
    """Implements Evaluator (bench.core.scoring) for one extended item.

    reading: options of how an answer is extracted from a response
    """

    def __init__(self, problem: Problem, options: ScoreOptions, reading: ReadingOptions) -> None:
        self._verdicts = ExtendedVerdicts(problem, with_regret=options.regret)
        self._reading = reading

    def evaluate(self, prediction: Prediction, context: AnswerContext) -> Mapping[str, Any]:
        """Return the line: score, episode, attribution, and the answer's pool and item."""
        problem = self._verdicts.problem
        reading = prediction.reading
        if reading is None:
            reading = read_response(
                item_rules(benchmark(problem.benchmark), problem), prediction.response, self._reading
            )
        steps, answer = prediction.steps, reading.answer
        stated_steps = steps[: prediction.num_stated]
        if is_episode(problem) and not steps:
            steps = self._steps(answer)
        score = self._verdicts.score(answer or None, steps)
        line = {
            **line_head(prediction),
            **self._verdicts.record(score, steps),
            **verdict_fields(
                reading,
                score.correct,
                lambda alternative: self._verdicts.score(alternative, self._steps(alternative, stated_steps)).correct,
            ),
            "problem": prediction.problem or reading.problem or prediction.gap,
            KEY: self._verdicts.attribution(score, steps),
            **line_place(context),
            "seconds": prediction.seconds,
        }
        return ReadVerdict(line, reading)

    def _steps(self, answer: Answer | None, stated_steps: tuple[Step[Any], ...] = ()) -> tuple[Step[Any], ...]:
        """Return `stated_steps` followed by the submission of an answer; empty for an item that is no episode."""
        problem = self._verdicts.problem
        if not is_episode(problem):
            return ()
        if stated_steps:
            return replay_answer(benchmark(problem.benchmark), problem, answer or "", stated_steps).steps
        return tuple(submitted_steps(self._verdicts.problem, answer if isinstance(answer, dict) and answer else None))


# --- Episodes of ReplaySCM in messages: the text protocol as a chat, an environment, and lines on steps ---------------


class ScmChat:
    """Implements Chat (bench.episodes): one action a reply, by the text protocol.

    instructions: the first message; empty if the agent already has the prompt
    """

    def __init__(self, episode: ScmEpisode, instructions: str = "", thoughts: Thoughts = "strip") -> None:
        self.episode = episode
        self._dialogue = TextDialogue(episode, thoughts)
        self.messages: list[Message] = [{"role": "user", "content": instructions}]

    @property
    def closed(self) -> bool:
        return self._dialogue.closed

    def take_text(self, text: object) -> None:
        reply = text if isinstance(text, str) else ""
        self.messages.append({"role": "assistant", "content": reply})
        self.messages.append({"role": "user", "content": self._dialogue.reply(reply)})


def text_episode(item: Problem, thoughts: Thoughts = "strip") -> TextEpisode:
    """Return an item as an environment: reward 1 for a correct answer, else 0; None without held-out worlds.

    An episode that spends its replies ends without an answer; its score is then invalid.
    """
    verdicts = ExtendedVerdicts(item)

    def open_chat() -> ScmChat:
        return ScmChat(ScmEpisode(item), opening_prompt(item), thoughts)

    def score(steps: Sequence[Step[Any]]) -> dict[str, Any]:
        return verdicts.record(verdicts.score(None, steps), steps)

    return TextEpisode(open_chat, score, reward_of_answer)


def reward_of_answer(score: Mapping[str, Any]) -> float | None:
    """Return 1 for a correct answer, 0 for a wrong or missing one; None without held-out worlds."""
    return None if score["correct"] is None else float(score["correct"])


def opening_prompt(item: Problem) -> str:
    """Return the rules and the first world."""
    return TextDialogue(ScmEpisode(item)).prompt()


def read_action_text(text: str) -> Action:
    """Return the action of a reply: its last line that begins with MARK, or a reply that is one JSON object."""
    is_bare = text.lstrip().startswith("{") and not any(line.startswith(MARK) for line in text.splitlines())
    return action_of_text(text) if is_bare else read_reply(text)


def describe_step(episode: Episode[Any, Any], step: Step[Any]) -> str:
    """Return the result of a step as text: the world as a table, and the number of worlds left."""
    if step.refused:
        return f"Refused: {in_one_line(step.refused)[:300]}. Worlds left: {episode.left}."
    if step.reading is None:
        return "Submitted."
    return "\n".join([*world_table(episode.task, step), f"Worlds left: {episode.left}."])


# --- Episodes as timelines: interventions, the number of SCMs left after every world, and the decision ----------------
NUM_DRAWS = 64  # samples for the effective number of SCMs under noise; few suffice for a bar on a logarithmic scale
MAX_ANSWER_CHARS = 400


def scm_timeline(problem: Problem, steps: Sequence[Step[Any]], system: str) -> Timeline:
    """Return the timeline of an episode; `TranscriptError` if the steps do not replay on the item."""
    episode = replay_transcript(ScmEpisode(problem), steps)
    scm_class = task_class(problem.task)
    posterior = Posterior(scm_class)
    moments: list[Moment] = []
    num_before: int | None = None
    for index, step in enumerate(episode.steps):
        if step.reading is not None:
            do = step.action.get("do", {})
            posterior = posterior.condition(EvidenceWorld(do, tuple(step.reading["rows"])))
        num_left = _num_left(posterior, f"{problem.id}|{index}") if step.reading is not None else num_before or 0
        moments.append(_moment(problem, step, num_left, num_before))
        num_before = num_left
    decided = next((k for k, moment in enumerate(moments) if moment.members == 1), None)
    counted = "SCMs left" if scm_class.noise.is_noiseless else "effective number of SCMs, 2 to the posterior's bits"
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
    """Return the number of SCMs left; 0 if it exceeds the budget. Under noise it is 2 to the entropy in bits."""
    try:
        if posterior.scm_class.noise.is_noiseless:
            return count_members(posterior)
        return max(1, round(2 ** posterior_bits(posterior, seed, NUM_DRAWS).value))
    except BudgetSpent:
        return 0


def _moment(problem: Problem, step: Step[Any], num_left: int, before: int | None) -> Moment:
    observed = task_class(problem.task).observed
    do = step.action.get("do", {}) if step.reading is not None else {}
    targets = tuple(index for index, v in enumerate(observed) if v in do)
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
        return News.NONE, f"{_scm_count(num_left)}."
    if num_left == before:
        return News.NOTHING, f"Nothing is ruled out; {_scm_count(num_left)}."
    if num_left > before:
        return News.SHIFTED, f"{_scm_count(num_left)}, more than before: the reading was unlikely."
    return News.TOLD, f"From {before:,} to {_scm_count(num_left)}."


def _scm_count(num_scms: int) -> str:
    return "1 SCM" if num_scms == 1 else f"{num_scms:,} SCMs"


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
    kind = NOT_ANSWERED if score.answer is None else kind
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


# --- Public functions on extended items: scores with steps, solutions, and consistent SCMs ----------------------------


def score_extended(problem: Problem, answer: str | dict[str, Any], steps: Sequence[Step[Any]]) -> ExtendedScore:
    """Return the score of an answer; steps are replayed first, and a submission among them counts."""
    verdicts = ExtendedVerdicts(problem)
    if not is_episode(problem):
        if steps:
            raise CalibrantError(f"{in_one_line(problem.id)} is answered at once: it has no steps")
        return verdicts.score(answer)
    replayed = replay_answer(benchmark(problem.benchmark), problem, answer, steps)
    return verdicts.score(replayed.answer or None, replayed.steps)


def solve_extended(problem: Problem) -> Outcome[Solution[Scm]]:
    """Return the most probable SCM; for an episode, after the worlds that greedy requests, without submitting it."""
    task, steps = problem.task, ()
    evidence = task_evidence(task)
    if is_episode(problem):
        episode = ScmEpisode(problem)
        evidence = policies.play_worlds(episode, "greedy", problem.id)
        steps = tuple(episode.steps)  # type: ignore[assignment]
    outcome = policies.answer_exact(task, evidence)
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
    """Return the consistent SCMs of the item's class; `CalibrantError` under noise or with hidden variables."""
    scm_class = task_class(problem.task)
    if scm_class.hidden_parents or not scm_class.noise.is_noiseless:
        where = "calibrant.solvers.replayscm.noise.posterior"
        raise CalibrantError(f"{in_one_line(problem.id)} has noise or hidden variables: its posterior is in {where}")
    if not is_episode(problem):
        return version_space(problem.task, scm_class, task_evidence(problem.task))
    episode = replay_transcript(ScmEpisode(problem), steps or ScmEpisode(problem).steps)
    return version_space(problem.task, scm_class, steps_evidence(episode.steps))
