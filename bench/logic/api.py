"""Item functions of logic models (`calibrant.score`, `solve`, `version_space`), and what training needs of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from calibrant.audits.logic.generation import SUITES
from calibrant.baselines.logic.rows import fitting_network
from calibrant.bench.core.attribution import Hypotheses
from calibrant.bench.core.capabilities import ItemScore, Solution
from calibrant.bench.logic.benchmark import BENCHMARK
from calibrant.bench.logic.scoring import score_record
from calibrant.bench.pools.capabilities import ItemApi
from calibrant.bench.scoring.answers import invalid_answer_message, parse_answer
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.json_objects import last_object
from calibrant.dsl.logic.item import LogicItem, Model, model_size, model_texts
from calibrant.dsl.logic.score import Verdict, answer_json, grade
from calibrant.dsl.logic.trajectories import grade_states, is_trajectory_item, states_json
from calibrant.solvers.logic.family import LogicFamily, solve_family
from calibrant.solvers.networks.trajectories import FittingNetworks, fit_networks
from calibrant.solvers.outcome import Found, Outcome, OutOfBudget

# --- Item functions of logic models -----------------------------------------------------------------------------------


class LogicScore(ItemScore[Verdict]):
    """The verdict on a model, or on probabilities of held-out answers."""


class LogicFunctions(ItemApi[LogicItem]):
    """Implements ItemFunctions (bench.core.capabilities)."""

    def check_item(self, item: object) -> LogicItem:
        """Return `item` if it is a LogicItem or an item of trajectories, which is of another class."""
        return cast("LogicItem", item) if is_trajectory_item(item) else super().check_item(item)

    def score(self, item: LogicItem, answer: object) -> LogicScore:
        """Return the score of an answer; the answer in a text is its last JSON object."""
        item, parsed = self.check_item(item), parse_answer(answer)
        answer_object = last_object(parsed) if isinstance(parsed, str) else parsed
        verdict = grade_states(item, answer_object) if is_trajectory_item(item) else grade(item, answer_object)
        failure: str | None = None
        if parsed is None:
            failure = invalid_answer_message(answer)
        elif answer_object is None:
            failure = "no JSON object in the text"
        elif verdict.error or verdict.heldout_exact is False:
            failure = verdict.error or "wrong: a held-out answer differs"
        record = score_record(item, verdict, answer_object or {})
        return LogicScore(item.id, not verdict.error, verdict.heldout_exact, failure, verdict, record)

    def solve(self, item: LogicItem) -> Outcome[Solution[Model]]:
        """Return a model of least misfit and, among these, of least size; of trajectories, a network that fits."""
        if is_trajectory_item(item):
            answer = fitting_network(item.task)
            if not isinstance(answer, Found):
                return answer
            return Found(Solution(dict(answer.value), frozenset(), None, {"class": item.task.in_words}))
        outcome = solve_family(self.check_item(item).task)
        if not isinstance(outcome, Found):
            return outcome
        family = outcome.value
        provenance = {"class": family.in_words, "misfit": family.optimum[0], "members": str(family.count)}
        size = model_size(family.witness)
        return Found(Solution(answer_json(family.witness), family.witness, size, provenance))

    def version_space(self, item: LogicItem) -> LogicFamily | FittingNetworks:
        """Return all models within the item's tolerances; of trajectories, the networks consistent with them."""
        outcome: Found[LogicFamily] | Found[FittingNetworks] | OutOfBudget
        outcome = fit_networks(item.task) if is_trajectory_item(item) else solve_family(self.check_item(item).task)
        if isinstance(outcome, Found):
            return outcome.value
        raise CalibrantError(f"what fits {item.id} is not counted: {outcome.reached}")


FUNCTIONS = LogicFunctions(BENCHMARK, LogicItem)


# --- Training on logic models -----------------------------------------------------------------------------------------


class LogicTraining:
    """Implements Trainable (bench.core.capabilities); partial credit is the share of right held-out answers."""

    @property
    def stages(self) -> Sequence[str]:
        return tuple(SUITES)

    def difficulty(self, item: LogicItem) -> Mapping[str, int]:
        if is_trajectory_item(item):
            return {"edges": sum(map(len, item.task.candidates.values())), "experiments": len(item.task.evidence)}
        return {"edges": len(item.task.edges), "experiments": len(item.task.experiments)}

    def gold(self, item: LogicItem) -> dict[str, Any] | None:
        """Return the true model, None if it is unknown; of trajectories, the states in question."""
        if is_trajectory_item(item):
            return states_json(item.sealed.answer, item.task)
        return None if item.sealed is None else {"model": model_texts(item.sealed.gold)}

    def share(self, item: LogicItem, verdict: LogicScore) -> float:
        """Return the share of held-out answers that are right."""
        return verdict.details.heldout_accuracy or 0.0

    def fits(self, verdict: LogicScore) -> bool:
        return verdict.details.fits is True

    def agrees(self, verdict: LogicScore) -> bool:
        return verdict.correct is True


TRAINING = LogicTraining()


# --- Sets of logic models within the tolerances of an item ------------------------------------------------------------


def hypotheses(item: LogicItem) -> Hypotheses:
    """Return the family of the item; its members have equal weight."""
    family = FUNCTIONS.version_space(item)
    if not isinstance(family, LogicFamily):
        raise CalibrantError(f"{item.id} asks about trajectories; its networks are counted and not listed")
    return Hypotheses("models", family.in_words, family.count, _model_text, lambda score, key: score["fits"] is True)


def _model_text(score: Mapping[str, Any]) -> str | None:
    """Return the normal form of a model; None of a table of probabilities, whose `fits` is None."""
    meaning: str | None = score["meaning"] if score["fits"] is not None else None
    return meaning
