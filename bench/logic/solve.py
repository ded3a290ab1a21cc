"""Logic models behind the public names."""

from __future__ import annotations

from calibrant.bench.core.solutions import ItemScore, Solution
from calibrant.bench.logic.benchmark import BENCHMARK
from calibrant.bench.logic.verdict import score_record
from calibrant.bench.pools.operations import ItemApi
from calibrant.bench.scoring.input.raw_answers import invalid_answer_message, parse_answer
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.json_objects import last_object
from calibrant.dsl.logic.clause import Model, model_size
from calibrant.dsl.logic.grading import Verdict, answer_json, grade
from calibrant.dsl.logic.item import LogicItem
from calibrant.solvers.logic.family import LogicFamily, solve_family
from calibrant.solvers.outcome import Found, Outcome


class LogicScore(ItemScore[Verdict]):
    """The verdict on a model, or on probabilities of held-out answers."""


class LogicFunctions(ItemApi[LogicItem]):
    """Implements ItemFunctions (bench.core.solutions)."""

    def score(self, item: LogicItem, answer: object) -> LogicScore:
        """Return the verdict; a text counts by its last JSON object."""
        item, parsed = self.check_item(item), parse_answer(answer)
        stated = last_object(parsed) if isinstance(parsed, str) else parsed
        verdict = grade(item, stated)
        failure: str | None = None
        if parsed is None:
            failure = invalid_answer_message(answer)
        elif stated is None:
            failure = "no JSON object in the text"
        elif verdict.error or verdict.heldout_exact is False:
            failure = verdict.error or "wrong: a held-out answer differs"
        record = score_record(item, verdict, stated or {})
        return LogicScore(item.id, not verdict.error, verdict.heldout_exact, failure, verdict, record)

    def solve(self, item: LogicItem) -> Outcome[Solution[Model]]:
        """Return a model of the least misfit, and of these of the least size."""
        outcome = solve_family(self.check_item(item).task)
        if not isinstance(outcome, Found):
            return outcome
        family = outcome.value
        provenance = {"class": family.in_words, "misfit": family.optimum[0], "members": str(family.count)}
        size = model_size(family.witness)
        return Found(Solution(answer_json(family.witness), family.witness, size, provenance))

    def version_space(self, item: LogicItem) -> LogicFamily:
        """Return all models within the item's tolerances."""
        outcome = solve_family(self.check_item(item).task)
        if isinstance(outcome, Found):
            return outcome.value
        raise CalibrantError(f"the models that fit {item.id} are not counted: {outcome.reached}")


FUNCTIONS = LogicFunctions(BENCHMARK, LogicItem)
