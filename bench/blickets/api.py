"""Public item functions of the extended blickets (`calibrant.score`, `solve`, ...), and what training needs of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from calibrant.bench.blickets.benchmark import BENCHMARK
from calibrant.bench.core.attribution import Hypotheses, weighted_hypotheses
from calibrant.bench.core.capabilities import ItemScore, Solution
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


# --- Public item functions --------------------------------------------------------------------------------------------


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
        item_grade = grade(item, replay.steps)
        problem = replay.problem
        if parsed is None and problem and answer is not None:  # clearer than the problem of an empty submission
            problem = invalid_answer_message(answer)
        wrong = f"wrong: {', '.join(item_grade.faults)}" if item_grade.faults else None
        return BlicketScore(
            instance=item.id,
            valid=not replay.problem,
            correct=item_grade.correct is True,
            failure=problem or wrong,
            details=item_grade,
            record=item_grade.as_json(item.task.objects),
        )

    def solve(self, item: BlicketItem) -> Outcome[Solution[Rule]]:
        """Play the item with the exact learner, and return the answer that it ends with.

        `decided` in the provenance: whether this is the only answer that fits the readings; if False, the learner
        stopped at a posterior of at least .99.
        """
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
        """Return the detectors consistent with the readings of `steps`.

        family: `condition` for the detectors of the item's actual condition, which a solver may not see; `told`
            for those that the text of its task allows; `steps` that do not replay are refused
        """
        from calibrant.dsl.episode import replay_transcript
        from calibrant.solvers.blickets.exact import class_of, space_after, space_of_condition

        item = self.check_item(item)
        space = class_of(item) if family == "condition" else space_of_condition(item.task, item.task.condition)
        replay_transcript(self.benchmark.play.open(item), steps)
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

        prompting: the paper's `base`; `cg` with a context graph (stages of the inquiry), `db` with dynamic behaviours
            (conditions that extend the graph when they are met)
        actions: `numbered` lists the possible moves with numbers, which replies may use
        thoughts: how thoughts are separated from the rest of a reply (dsl.answer_text)
        """
        from calibrant.baselines.blickets.dialogue import BASE, CG, CG_DB
        from calibrant.bench.blickets.agents import text_episode

        prompts = {"base": BASE, "cg": CG, "cg+db": CG_DB}
        return text_episode(self.check_item(item), prompts[prompting], actions=actions, thoughts=thoughts)


FUNCTIONS = BlicketFunctions(BENCHMARK, BlicketItem)


def hypotheses(item: BlicketItem) -> Hypotheses:
    """Return the rules of the item's class, each weighted by the number of its detectors."""
    objects = item.task.objects

    def key(score: Mapping[str, Any]) -> str | None:
        return None if score["answer"] is None else _text(rule_from_json(score["answer"], objects))

    def _text(rule: Rule) -> str:
        return rule.canonical.in_words(objects)

    space = FUNCTIONS.version_space(item)
    num_detectors: dict[str, int] = {}
    for rule, count in space.verdicts().items():
        num_detectors[_text(rule)] = num_detectors.get(_text(rule), 0) + count
    return weighted_hypotheses("rules", space.in_words, num_detectors, key)


# --- Training ---------------------------------------------------------------------------------------------------------


class BlicketTraining:
    """Implements Trainable (bench.core.capabilities); `share` is over sets of objects on the detector."""

    @property
    def stages(self) -> Sequence[str]:
        """Names of generator settings, in the order of a curriculum."""
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
        """Return the rule in force at the start; None if moves or a switch must come before an answer."""
        exposure = item.sealed.exposure
        if exposure.moves or exposure.after_switch:
            return None
        return item.sealed.mechanisms[item.sealed.phase(activations=0, moves=0)].rule.as_json(item.task.objects)

    def share(self, item: BlicketItem, verdict: BlicketScore) -> float:
        """Return the share of sets of objects on which the answered rule and the rule in force agree."""
        item_grade = verdict.details
        if item_grade.correct:
            return 1.0
        if item_grade.answer is None:
            return 0.0
        truth, answer, sets = item_grade.rule_in_force, item_grade.answer, range(1 << item.task.n)
        num_equal = sum(truth.active(present) == answer.active(present) for present in sets)
        # below 1: `conjunctive A` agrees with `disjunctive A` on every set, and is wrong where the type counts
        return min(num_equal, len(sets) - 1) / len(sets)

    # fits and agrees differ in ReplaySCM alone
    def fits(self, verdict: BlicketScore) -> bool:
        return verdict.correct is True

    def agrees(self, verdict: BlicketScore) -> bool:
        return verdict.correct is True


TRAINING = BlicketTraining()
