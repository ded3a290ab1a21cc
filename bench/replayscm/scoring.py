"""Answers of ReplaySCM: how they are read, scored and attributed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from calibrant.bench.core.attribution import attribution_record
from calibrant.bench.core.scoring import Scorable
from calibrant.bench.replayscm.items import ITEMS
from calibrant.bench.replayscm.options import ScoreOptions
from calibrant.bench.scoring.evaluator_cache import EvaluatorCache
from calibrant.dsl.episode import ActionError, Step
from calibrant.dsl.replayscm.item import Problem

if TYPE_CHECKING:
    from calibrant.audits.replayscm.attribution import HeldoutDecision
    from calibrant.bench.replayscm.episodes import ExtendedVerdicts

MAX_OBJECTS = 2_000  # whose digests are cached, as many as a pool has at hand (dsl.records)
MAX_VERDICTS = 64  # extended items whose counts are cached


class ReplayScmScoring(Scorable[Problem]):
    """Implements Scorable (bench.core.scoring)."""

    report_options = ScoreOptions(structure=True)

    @property
    def verdict_record(self) -> type[msgspec.Struct]:
        from calibrant.bench.replayscm.fields import VerdictLine

        return VerdictLine

    def no_answer(self, item: Problem) -> dict[str, Any]:
        from calibrant.bench.replayscm.rows.exact import no_answer

        return no_answer(item.task.kind)

    def score(self, item: Problem, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> dict[str, Any]:
        from calibrant.bench.replayscm.verdict import score_record
        from calibrant.dsl.replayscm.score import Evaluator

        if item.task.extension is not None:
            verdicts = _extended_verdicts(item)
            return verdicts.record(verdicts.score(answer, steps), steps)
        return score_record(Evaluator(item).score_answer(answer))

    def score_ties(
        self, item: Problem, answers: Sequence[Mapping[str, Any]], steps: Sequence[Step[Any]]
    ) -> list[dict[str, Any]]:
        from calibrant.bench.replayscm.verdict import score_record
        from calibrant.dsl.replayscm.score import Evaluator

        if item.task.extension is not None:
            verdicts = _extended_verdicts(item)
            scores = (verdicts.evaluator.score_answer(answer, steps) for answer in answers)
            return [verdicts.record(score, steps) for score in scores]
        evaluator = Evaluator(item)  # one for all: it packs the worlds
        records = [score_record(evaluator.score_answer(answer)) for answer in answers]
        for record in records:  # distinct ones are kept: what explains a single answer would make each distinct
            for key in ("firstTrainMismatch", "firstHeldoutMismatch"):
                record[key] = None
            if "candidateStats" in record:
                record["candidateStats"] = {"astSize": record["candidateStats"]["astSize"]}
        return records

    def extract(self, item: Problem, response: str | Mapping[str, Any]) -> dict[str, Any]:
        """Return the best object that the extractor finds in a text; the verdict checks what it states."""
        from calibrant.dsl.replayscm.extraction import EXTRACTORS
        from calibrant.dsl.replayscm.score import Evaluator

        if item.task.extension is not None:
            from calibrant.bench.replayscm.episodes import read_submission

            return read_submission(item, response)
        if not isinstance(response, str):
            return dict(response)
        extraction = EXTRACTORS["paper"](response, Evaluator(item).shape)
        if not extraction.candidates:
            raise ActionError(f"no answer in the response: {extraction.failure}")
        return dict(extraction.candidates[0])


SCORING = ReplayScmScoring()
_EXTENDED: EvaluatorCache[ExtendedVerdicts] = EvaluatorCache(MAX_VERDICTS)


def _extended_verdicts(item: Problem) -> ExtendedVerdicts:
    from calibrant.bench.replayscm.episodes import ExtendedVerdicts

    return _EXTENDED.get_for(item, lambda: ExtendedVerdicts(item))


class ReplayScmAttribution:
    """Implements Attribute (bench.core.scoring).

    Decided: every SCM of the class replays the held-out worlds alike. The class is the smallest with gold; extended
    items state theirs. Under noise a behaviour is decided from a posterior of 0.99 on.
    """

    def __init__(self) -> None:
        self._digests: EvaluatorCache[bytes] = EvaluatorCache(MAX_OBJECTS)
        self._decisions: EvaluatorCache[HeldoutDecision | None] = EvaluatorCache()

    def __call__(
        self, item: Problem, answer: Mapping[str, Any], steps: Sequence[Step[Any]], score: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        from calibrant.bench.replayscm.verdict import METRICS

        correct = METRICS.success.judge(score, item.setting)
        if item.task.extension is not None:
            return _extended_verdicts(item).decision(score.get("trainExact"), steps, correct=correct)
        decision = None if correct is None else self.decide_heldout(item)
        if decision is None or correct is None:
            return None
        return attribution_record(decision.attribution(fits=score.get("trainExact") is True, correct=correct))

    def decide_heldout(self, item: Problem) -> HeldoutDecision | None:
        """Return the counts of an item, the same for every answer to it; large pools make their items again and again.

        Hence the key: what the item holds. Digests of objects are cached: reports have the same items for each system.
        """
        from calibrant.audits.replayscm.attribution import heldout_decision

        digest = self._digests.get_for(item, lambda: sha256(msgspec.json.encode(ITEMS.record(item))).digest())
        return self._decisions.get(digest, lambda: heldout_decision(item))


ATTRIBUTE = ReplayScmAttribution()
