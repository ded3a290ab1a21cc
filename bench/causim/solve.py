"""CauSim behind the public names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.bench.causim.benchmark import BENCHMARK
from calibrant.bench.causim.verdict import score_record
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.solutions import ItemScore, Solution
from calibrant.bench.pools.operations import ItemApi
from calibrant.bench.scoring.evaluator_cache import EvaluatorCache
from calibrant.bench.scoring.input.raw_answers import invalid_answer_message, parse_answer
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import plain
from calibrant.solvers.outcome import Found, Outcome

if TYPE_CHECKING:
    from calibrant.solvers.causim.exact import Judge, Judgement  # noqa: F401  # in a base that is a text
    from calibrant.solvers.causim.solution import WorkedSolution
    from calibrant.solvers.causim.space import WorldSpace

_WORDS = {
    "no_object": "no JSON object in the text",
    "wrong_keys": "the object has not exactly the keys that are asked for",
    "wrong_answer": "wrong: no world that fits the question gives this",
}


class CausimScore(ItemScore["Judgement"]):
    """The verdict on an answer to a causal question, with a reason for every node where there is one."""


class CausimFunctions(ItemApi[CausimItem]):
    """Implements ItemFunctions (bench.core.solutions)."""

    def __init__(self, benchmark: Benchmark[CausimItem]) -> None:
        super().__init__(benchmark, CausimItem)
        self._judges: EvaluatorCache[Judge] = EvaluatorCache()

    def score(self, item: CausimItem, answer: object) -> CausimScore:
        """Return the score of an answer; a text counts by its last JSON object, and so does an answer object."""
        item, parsed = self.check_item(item), parse_answer(answer)
        judge = self.judge(item)
        verdict = (
            judge.judge_reply(parsed or "") if parsed is None or isinstance(parsed, str) else judge.judge_object(parsed)
        )
        failure = invalid_answer_message(answer) if parsed is None else None
        if parsed is not None and verdict.why is not None:
            remark = "" if verdict.why == "no_object" else self.benchmark.scoring.read_answer(item, parsed)[1]
            failure = remark or _WORDS[verdict.why]
        return CausimScore(
            item.id,
            verdict.answer is not None,
            verdict.reward == 1,
            failure,
            verdict,
            score_record(judge, verdict, item.vocabulary),
        )

    def judge(self, item: CausimItem) -> Judge:
        """Return the judge of answers to an item, cached."""
        from calibrant.solvers.causim.exact import Judge

        return self._judges.get_for(item, lambda: Judge(item.task))

    def solve(self, item: CausimItem) -> Outcome[Solution[WorkedSolution]]:
        """Any member of the complete answer set; the model is the solution worked out in words."""
        from calibrant.solvers.causim.solution import work_solution
        from calibrant.solvers.causim.space import WorldSpace

        item = self.check_item(item)
        outcome = work_solution(item.task.model, item.task.question)
        if not isinstance(outcome, Found):
            return outcome
        in_words = WorldSpace(item.task.model, item.task.question).in_words
        return Found(Solution(plain(outcome.value.answer), outcome.value, None, {"class": in_words}))

    def version_space(self, item: CausimItem) -> WorldSpace:
        from calibrant.solvers.causim.space import WorldSpace

        item = self.check_item(item)
        return WorldSpace(item.task.model, item.task.question)


FUNCTIONS = CausimFunctions(BENCHMARK)
