"""Item functions of CauSim (`calibrant.score`, `solve`, `version_space`), and what training needs of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.bench.causim.benchmark import BENCHMARK
from calibrant.bench.causim.verdict import score_record
from calibrant.bench.core.attribution import Hypotheses, Prior, weighted_hypotheses
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.capabilities import ItemScore, Solution
from calibrant.bench.core.scoring import EvaluatorCache, Prediction
from calibrant.bench.pools.capabilities import ItemApi
from calibrant.bench.scoring.answers import invalid_answer_message, parse_answer
from calibrant.dsl.atomic_write import write_pieces
from calibrant.dsl.causim.generated_functions import TOPOLOGIES
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import plain, symbols
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.text import plural
from calibrant.solvers.causim.exact import AnswerSet, Judge
from calibrant.solvers.causim.space import work_solution
from calibrant.solvers.outcome import BudgetSpent, Found, Outcome

if TYPE_CHECKING:
    from calibrant.solvers.causim.exact import Judge, Judgement  # noqa: F401  # in a base that is a text
    from calibrant.solvers.causim.space import WorkedSolution, WorldSpace


# --- Item functions of CauSim -----------------------------------------------------------------------------------------
_WORDS = {
    "no_object": "no JSON object in the text",
    "wrong_keys": "the object has not exactly the keys that are asked for",
    "wrong_answer": "wrong: no world that fits the question gives this",
}


class CausimScore(ItemScore["Judgement"]):
    """The verdict on an answer to a causal question, with a reason for every node where there is one."""


class CausimFunctions(ItemApi[CausimItem]):
    """Implements ItemFunctions (bench.core.capabilities)."""

    def __init__(self, benchmark: Benchmark[CausimItem]) -> None:
        super().__init__(benchmark, CausimItem)
        self._judges: EvaluatorCache[Judge] = EvaluatorCache()

    def score(self, item: CausimItem, answer: object) -> CausimScore:
        """Return the score of an answer; of a text, as of an answer object, the last JSON object counts."""
        item, parsed = self.check_item(item), parse_answer(answer)
        judge = self.judge(item)
        verdict = judge.judge_text(parsed or "") if isinstance(parsed, str | None) else judge.judge_object(parsed)
        failure = invalid_answer_message(answer) if parsed is None else None
        if parsed is not None and verdict.why is not None:
            form_problem = "" if verdict.why == "no_object" else self.benchmark.scoring.read_answer(item, parsed)[1]
            failure = form_problem or _WORDS[verdict.why]
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
        return self._judges.get_for(item, lambda: Judge(item.task))

    def solve(self, item: CausimItem) -> Outcome[Solution[WorkedSolution]]:
        """Return any right answer; `model` is the solution, worked out step by step in words."""
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


# --- Training on CauSim: labels and rewards, and worked solutions of questions ----------------------------------------


class CausimTraining:
    """Implements Trainable (bench.core.capabilities); partial credit is a share of nodes."""

    @property
    def stages(self) -> Sequence[str]:
        return tuple(TOPOLOGIES)

    def difficulty(self, item: CausimItem) -> Mapping[str, int]:
        return {"nodes": len(item.task.model), "answers": item.labels.size}

    def gold(self, item: CausimItem) -> dict[str, Any] | None:
        """Return one of the right answers, chosen by the solver; None if it found none."""
        outcome = work_solution(item.task.model, item.task.question)
        return plain(outcome.value.answer) if isinstance(outcome, Found) else None

    def share(self, item: CausimItem, verdict: CausimScore) -> float:
        """Return the share of nodes whose value follows from their parents' values in the answer; else 0 or 1."""
        if verdict.correct:
            return 1.0
        nodes = verdict.details.nodes or {}
        return sum(reason == "ok" for reason in nodes.values()) / len(nodes) if nodes else 0.0

    def fits(self, verdict: CausimScore) -> bool:
        return verdict.correct is True

    def agrees(self, verdict: CausimScore) -> bool:
        return verdict.correct is True


TRAINING = CausimTraining()


class CausimSolutions:
    """Implements WorkedSolutions (bench.core.capabilities)."""

    @property
    def orders(self) -> Sequence[str]:
        from calibrant.audits.causim.training import ORDERS

        return ORDERS

    @property
    def curricula(self) -> Sequence[str]:
        from calibrant.audits.causim.training import CURRICULA

        return CURRICULA

    def write(self, path: Path, items: Sequence[CausimItem], order: str) -> tuple[int, int]:
        from calibrant.audits.causim.training import ORDERS, write_training

        return write_training(path, items, ORDERS[ORDERS.index(order)])

    def write_curriculum(self, folder: Path, items: Sequence[CausimItem], curriculum: str) -> Sequence[str]:
        from calibrant.audits.causim.training import CURRICULA, write_curriculum

        return write_curriculum(folder, items, CURRICULA[CURRICULA.index(curriculum)])

    def select(self, path: Path, items: Sequence[CausimItem], completions: Iterable[Prediction]) -> Sequence[str]:
        from calibrant.audits.causim.training import select_first_correct

        by_id = {item.id: item for item in items}
        judged: dict[str, list[tuple[str, bool]]] = {}
        for completion in completions:
            if (item := by_id.get(completion.instance)) is not None:
                judged.setdefault(item.id, []).append((completion.response.text or "", _is_right(item, completion)))
        chats, totals = select_first_correct(items, judged)
        write_pieces(path, (f"{json.dumps(chat)}\n" for chat in chats))
        return [*totals.lines(), f"{plural(len(chats), 'chats')} written to {path}"]


def _is_right(item: CausimItem, completion: Prediction) -> bool:
    """Return whether `calibrant score` reads a right answer in the text; no chat is made of objects and calls."""
    reading, answer = completion.reading, completion.answer
    if reading is None or reading.reason or reading.source != "text" or not isinstance(answer, dict):
        return False
    return FUNCTIONS.judge(item).judge_object(answer).reward == 1


WORKED_SOLUTIONS = CausimSolutions()


# --- Sets of answers to a question about a program --------------------------------------------------------------------


def hypotheses(item: CausimItem) -> Hypotheses:
    """Return the answers of the worlds consistent with the evidence, each with its share of these worlds."""
    space = FUNCTIONS.version_space(item)
    try:
        num_worlds = space.verdicts()
    except BudgetSpent as spent:
        raise CalibrantError(f"the answers to {item.id} are not counted: {spent}") from None
    return weighted_hypotheses("answers", space.in_words, num_worlds, _answer_text, _prior(item, num_worlds))


def _prior(item: CausimItem, texts: Iterable[str]) -> Prior | None:
    """Return the posterior of answers under the samplers of the noise; None if no world fits the evidence."""
    answers = AnswerSet(item.task.model, item.task.question)
    if not answers.fitting:
        return None
    posterior = [float(answers.probability(symbols(json.loads(text)))) for text in texts]
    return Prior(
        "the samplers of the noise",
        lambda answer: float(answers.probability(symbols(answer))),
        [(probability, probability) for probability in posterior],
    )


def _answer_text(score: Mapping[str, Any]) -> str | None:
    """Return the answer in canonical text, the key of its hypothesis; None of an answer without a value."""
    meaning: str | None = score["meaning"]
    return meaning
