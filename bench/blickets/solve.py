"""Extended blickets behind the public names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from calibrant.bench.core.item_api import ItemApi
from calibrant.bench.core.solutions import ItemScore, Solution
from calibrant.bench.scoring.input.raw_answers import invalid_answer_message, parse_answer
from calibrant.bench.scoring.transcript_replay import replay_answer
from calibrant.dsl.blickets.grading import Grade, grade
from calibrant.dsl.blickets.item import BlicketItem
from calibrant.dsl.blickets.rule import Rule
from calibrant.dsl.episode import Step
from calibrant.solvers.outcome import Found, Outcome

if TYPE_CHECKING:
    from calibrant.solvers.blickets.families import DetectorSpace


class BlicketScore(ItemScore[Grade]):
    """The grade of an episode of the extended blickets, answered or not."""


class BlicketVerbs(ItemApi[BlicketItem]):
    """Implements ItemFunctions (bench.core.solutions)."""

    def score(self, item: BlicketItem, answer: object, *, steps: Sequence[Step[Any]] = ()) -> BlicketScore:
        """steps: what was done before the answer; they are replayed first. Without them it is submitted at once."""
        own, said = self.own(item), parse_answer(answer)
        found = replay_answer(self.benchmark, own, said or {}, steps)
        grades = grade(own, found.steps)
        problem = (
            invalid_answer_message(answer) if said is None and found.problem and answer is not None else found.problem
        )
        wrong = f"wrong: {', '.join(grades.faults)}" if grades.faults else None
        return BlicketScore(
            own.id,
            not found.problem,
            grades.correct is True,
            problem or wrong,
            grades,
            grades.as_json(own.task.objects),
        )

    def solve(self, item: BlicketItem) -> Outcome[Solution[Rule]]:
        """`decided` in the provenance says whether the readings leave this answer alone; otherwise it is 99 % sure."""
        from calibrant.bench.blickets.agents import LearnerAgent, agent, learner_for
        from calibrant.solvers.blickets.learner import learn

        own = self.own(item)
        episode, player = self.benchmark.episode(own), agent(learner_for(own.task))
        assert isinstance(player, LearnerAgent)
        outcome = learn(episode, player.learner(own.task)).outcome
        if not isinstance(outcome, Found):
            return outcome
        steps, rule = tuple(episode.steps), outcome.value
        left = self.version_space(own, steps=steps, family="told")
        provenance = {"class": left.in_words, "members": str(left.count), "decided": len(left.verdicts()) == 1}
        return Found(Solution(rule.as_json(own.task.objects), rule, None, provenance, steps))

    def version_space(
        self,
        item: BlicketItem,
        *,
        steps: Sequence[Step[Any]] = (),
        family: Literal["condition", "told"] = "condition",
    ) -> DetectorSpace:
        """family: detectors that behave as the item's condition says, or as far as the item tells it"""
        from calibrant.dsl.episode import verify_transcript
        from calibrant.solvers.blickets.families import class_of, space_after, space_of_condition

        own = self.own(item)
        space = class_of(own) if family == "condition" else space_of_condition(own.task, own.task.condition)
        verify_transcript(self.benchmark.episode(own), steps)
        return space_after(space, own.task, steps)
