"""Model results that official files embed, scored again for tables; every disagreement is recorded.

The score is that of the stored answer object, as in the published tables: in the official sample these objects
reproduce the stored verdicts, and the texts do not always (docs/semantics.md, "From response to answer"). The stored
text is scored too, for whether it was strict JSON, and to compare its verdict with the file's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.replayscm.verdict import score_record
from calibrant.dsl.answer_text import Thoughts, read_answer_text
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.records import file_digest
from calibrant.dsl.replayscm.item import ModelResult, Problem
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.pools.official import VERDICT, table_setting
from calibrant.dsl.replayscm.score import Evaluator

NOT_COMPARED = frozenset({"failureExplanation", "referenceRole"})  # free wording, and a constant of the file
TOLERANCE = 1e-9  # rates are quotients of small integers; files may print fewer digits


class Disagreement(NamedTuple):
    """A key of a stored evaluation with another value by this evaluator.

    source: "answer" or "text": what was scored, a text being compared in its verdict keys only; "result": the file's
        verdict beside the evaluation; "evaluation": a verdict key that the stored evaluation lacks
    """

    instance: str
    model: str
    source: str
    key: str
    stored: Any
    ours: Any

    def __str__(self) -> str:
        where = f"{self.instance}: {self.model}: {self.source}"
        return f"{where}: {self.key} is {short_repr(self.stored)} in the file, {short_repr(self.ours)} here"


class StoredResults:
    """The embedded results of one file.

    thoughts: how thoughts are separated from the rest of a stored text
    num_results, num_evaluated: results scored so far, and those with an evaluation in the file
    disagreements: those so far, in file order
    """

    def __init__(self, path: Path, thoughts: Thoughts = "strip") -> None:
        self._pool = read_pool(path)
        self._digest = file_digest(path)
        self._path = path
        self._thoughts = thoughts
        self.num_results = 0
        self.num_evaluated = 0
        self.disagreements: list[Disagreement] = []

    def answers(self) -> Iterator[tuple[AnswerContext, Mapping[str, Any]]]:
        """Yield every result's context and score; `CalibrantError` if the file embeds none."""
        for problem in self._pool.problems:
            evaluator = Evaluator(problem)
            for result in problem.results():
                self.num_results += 1
                yield self._context(problem, result.model), self._score(evaluator, result)
        if not self.num_results:
            raise CalibrantError(f"{self._path}: embeds no model results")

    def _context(self, problem: Problem, model: str) -> AnswerContext:
        return AnswerContext(
            model,
            self._pool.name,
            self._digest,
            len(self._pool),
            problem.id,
            table_setting(self._digest, problem.setting),
            problem.stratum,
            benchmark=problem.benchmark,
        )

    def _score(self, evaluator: Evaluator, result: ModelResult) -> Mapping[str, Any]:
        text = evaluator.score_text(read_answer_text(result.raw_response or "", self._thoughts).text)
        has_answer = isinstance(result.extracted_answer, dict)
        score = evaluator.score_answer(result.extracted_answer) if has_answer else text
        computed = score_record(score) | {"strictJson": text.strict_json if result.raw_response is not None else None}
        if result.evaluation or result.verdict:
            self.num_evaluated += 1
        instance, stored, score_keys = evaluator.problem.id, result.evaluation, score.to_dict()
        verdict_keys = [key for key in result.verdict if result.verdict[key] is not None]
        self._compare(instance, result.model, "result", verdict_keys, result.verdict, score_keys)
        if stored:
            missing = {key: None for key in VERDICT if key not in stored}
            self._compare(instance, result.model, "evaluation", list(missing), missing, score_keys)
            keys = [key for key in stored if key not in NOT_COMPARED]
            self._compare(instance, result.model, "answer" if has_answer else "text", keys, stored, score_keys)
            if has_answer and result.raw_response is not None:
                verdict = [key for key in ("valid", "correct", "trainExact", "heldoutExact") if key in stored]
                self._compare(instance, result.model, "text", verdict, stored, text.to_dict())
        return computed

    def _compare(
        self,
        instance: str,
        model: str,
        source: str,
        keys: list[str],
        stored: Mapping[str, Any],
        computed: Mapping[str, Any],
    ) -> None:
        self.disagreements += (
            Disagreement(instance, model, source, key, stored[key], computed.get(key))
            for key in keys
            if not is_same_value(stored[key], computed.get(key))
        )


def is_same_value(stored: Any, computed: Any) -> bool:
    """Return whether two JSON values are equal: numbers up to TOLERANCE; true differs from 1."""
    if isinstance(stored, Mapping) and isinstance(computed, Mapping):
        return stored.keys() == computed.keys() and all(
            is_same_value(value, computed[key]) for key, value in stored.items()
        )
    if isinstance(stored, list | tuple) and isinstance(computed, list | tuple):
        return len(stored) == len(computed) and all(map(is_same_value, stored, computed))
    if isinstance(stored, bool) or isinstance(computed, bool):
        return stored is computed
    if isinstance(stored, int | float) and isinstance(computed, int | float):
        return math.isclose(stored, computed, rel_tol=0, abs_tol=TOLERANCE)
    return bool(stored == computed)
