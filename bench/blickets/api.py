"""Extended blickets behind the public names, and for trainers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from calibrant.bench.blickets.benchmark import BENCHMARK
from calibrant.bench.core.capabilities import ItemScore, Solution
from calibrant.bench.core.sets import Hypotheses, weighted_hypotheses
from calibrant.bench.episodes import TextEpisode
from calibrant.bench.pools.capabilities import ItemApi
from calibrant.bench.scoring.answers import invalid_answer_message, parse_answer
from calibrant.bench.scoring.scorer import replay_answer
from calibrant.dsl.answer_text import Thoughts
from calibrant.dsl.blickets.item import BlicketItem, Rule, rule_from_json
from calibrant.dsl.blickets.score import Grade, grade
from calibrant.dsl.episode import Step
from calibrant.solvers.outcome import Found, Outcome

if TYPE_CHECKING:
    from calibrant.solvers.blickets.exact import DetectorSpace


# --- Extended blickets behind the public names ------------------------------------------------------------------------


class BlicketScore(ItemScore[Grade]):
    """The grade of an episode of the extended blickets, answered or not."""


class BlicketFunctions(ItemApi[BlicketItem]):
    """Implements ItemFunctions (bench.core.capabilities)."""

    def score(self, item: BlicketItem, answer: object, *, steps: Sequence[Step[Any]] = ()) -> BlicketScore:
        """Return the score of an answer.

        steps: moves before the answer, which are replayed first; without them it is submitted at once
        """
        item, parsed = self.check_item(item), parse_answer(answer)
        replay = replay_answer(self.benchmark, item, parsed or {}, steps)
        grades = grade(item, replay.steps)
        problem = (
            invalid_answer_message(answer)
            if parsed is None and replay.problem and answer is not None
            else replay.problem
        )
        wrong = f"wrong: {', '.join(grades.faults)}" if grades.faults else None
        return BlicketScore(
            item.id,
            not replay.problem,
            grades.correct is True,
            problem or wrong,
            grades,
            grades.as_json(item.task.objects),
        )

    def solve(self, item: BlicketItem) -> Outcome[Solution[Rule]]:
        """`decided` in the provenance says whether the readings leave this answer alone; otherwise it is 99 % sure."""
        from calibrant.bench.blickets.agents import LearnerAgent, agent, learner_for
        from calibrant.solvers.blickets.learner import learn

        item = self.check_item(item)
        episode, player = self.benchmark.play.open(item), agent(learner_for(item.task))
        assert isinstance(player, LearnerAgent)
        outcome = learn(episode, player.learner(item.task)).outcome
        if not isinstance(outcome, Found):
            return outcome
        steps, rule = tuple(episode.steps), outcome.value
        space = self.version_space(item, steps=steps, family="told")
        provenance = {"class": space.in_words, "members": str(space.count), "decided": len(space.verdicts()) == 1}
        return Found(Solution(rule.as_json(item.task.objects), rule, None, provenance, steps))

    def version_space(
        self,
        item: BlicketItem,
        *,
        steps: Sequence[Step[Any]] = (),
        family: Literal["condition", "told"] = "condition",
    ) -> DetectorSpace:
        """Return the detectors that agree with the readings of some steps.

        family: detectors of the item's condition, or of what its task states
        """
        from calibrant.dsl.episode import verify_transcript
        from calibrant.solvers.blickets.exact import class_of, space_after, space_of_condition

        item = self.check_item(item)
        space = class_of(item) if family == "condition" else space_of_condition(item.task, item.task.condition)
        verify_transcript(self.benchmark.play.open(item), steps)
        return space_after(space, item.task, steps)

    def text_episode(
        self,
        item: BlicketItem,
        *,
        prompting: Literal["base", "cg", "cg+db"] = "base",
        actions: Literal["named", "numbered"] = "named",
        thoughts: Thoughts = "strip",
    ) -> TextEpisode:
        """Return an episode in messages.

        prompting: the paper's way of prompting; actions: whether moves are listed by number
        thoughts: which part of a reply is thoughts
        """
        from calibrant.baselines.blickets.dialogue import BASE, CG, CG_DB
        from calibrant.bench.blickets.agents import text_episode

        prompts = {"base": BASE, "cg": CG, "cg+db": CG_DB}
        return text_episode(self.check_item(item), prompts[prompting], actions=actions, thoughts=thoughts)


FUNCTIONS = BlicketFunctions(BENCHMARK, BlicketItem)


def hypotheses(item: BlicketItem) -> Hypotheses:
    """Return the rules of the item's class, each with the share of its detectors."""
    objects = item.task.objects

    def key(score: Mapping[str, Any]) -> str | None:
        return None if score["answer"] is None else _text(rule_from_json(score["answer"], objects))

    def _text(rule: Rule) -> str:
        return rule.canonical.in_words(objects)

    space = FUNCTIONS.version_space(item)
    numbers: dict[str, int] = {}
    for rule, number in space.verdicts().items():
        numbers[_text(rule)] = numbers.get(_text(rule), 0) + number
    return weighted_hypotheses("rules", space.in_words, numbers, key)


# --- The extended blickets for trainers -------------------------------------------------------------------------------


class BlicketTraining:
    """Sets of objects on the detector are what a share counts."""

    @property
    def stages(self) -> Sequence[str]:
        return ("disjunctive", "conjunctive", "stochastic", "order", "easy-3", "hard-3", "several-switches")

    def difficulty(self, item: BlicketItem) -> Mapping[str, int]:
        first, sealed = item.sealed.mechanisms[0], item.sealed
        return {
            "objects": item.task.n,
            "moves": item.task.budget,
            "blickets": first.rule.blickets.bit_count(),
            "rules": len(sealed.mechanisms),
        }

    def gold(self, item: BlicketItem) -> dict[str, Any] | None:
        """Return the rule in force at the start; None if no answer is accepted then."""
        exposure = item.sealed.exposure
        if exposure.moves or exposure.after_switch:
            return None
        return item.sealed.mechanisms[item.sealed.phase(0, 0)].rule.as_json(item.task.objects)

    def share(self, item: BlicketItem, verdict: BlicketScore) -> float:
        """Return the share of sets of objects on which the answered rule and the rule in force agree."""
        grade = verdict.details
        if grade.correct:
            return 1.0
        if grade.answer is None:
            return 0.0
        truth, answer, sets = grade.rule_in_force, grade.answer, range(1 << item.task.n)
        alike = sum(truth.active(present) == answer.active(present) for present in sets)
        return min(alike, len(sets) - 1) / len(sets)

    def fits(self, verdict: BlicketScore) -> bool:
        return verdict.correct is True

    def agrees(self, verdict: BlicketScore) -> bool:
        return verdict.correct is True


TRAINING = BlicketTraining()
