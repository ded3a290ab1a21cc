"""The published metrics of one answer to one problem, under the published scorer's keys.

`Evaluator` is made once per problem and is pure: no clock, no randomness, the same answer always gets the same score.
`Score.to_dict` has the published scorer's keys; keys that do not apply are absent there, not zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol, TypeAlias

from calibrant.dsl.answer_text import UNREAD, ReadScore, ScoreReading
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.formulas.table import MAX_TABLE_VARS
from calibrant.dsl.memory import CacheBudget, TextCache
from calibrant.dsl.pictures import Picture, Pictured, verdict_picture
from calibrant.dsl.replayscm.alternatives import AlternativeScore, score_alternative
from calibrant.dsl.replayscm.evaluator import known_mismatches
from calibrant.dsl.replayscm.extraction import EXTRACTORS, PLAIN, Extraction, Kind
from calibrant.dsl.replayscm.item import Problem, TaskKind
from calibrant.dsl.replayscm.reference import Cell
from calibrant.dsl.replayscm.replay import Split, SplitReplay
from calibrant.dsl.replayscm.scm import RootScore, Scm, StructureMetrics, compare_structure
from calibrant.dsl.replayscm.submission import (
    STAGES,
    Mechanism,
    OperatorCounts,
    Rejection,
    Submission,
    SubmissionChecker,
    sum_counts,
)
from calibrant.dsl.replayscm.world import MAX_CACHED_ORDERS, Panel

# --- Scores under the published scorer's keys. Keys that do not apply to an answer are absent, as they are there ------
ScoreCache: TypeAlias = dict[tuple[str, ...], dict[str, Any]]
"""Evaluation order -> fields that all answers to a problem share if they are right in every row."""

NOTHING_HELD_OUT = "nothingHeldOut"  # not a published key: the published scorer calls all answers to such items wrong
BLOAT_SLACK = 25  # a train-exact SCM larger than gold by more than this (formula nodes) is bloated


class ScoreLike(Protocol):
    """Interface of a score, for `score_dict`."""

    @property
    def problem(self) -> Problem: ...
    @property
    def rejection(self) -> Rejection | None: ...
    @property
    def submission(self) -> Submission | None: ...
    @property
    def train(self) -> SplitReplay | None: ...
    @property
    def heldout(self) -> SplitReplay | None: ...
    @property
    def roots(self) -> RootScore | None: ...
    @property
    def alternative(self) -> AlternativeScore | None: ...
    @property
    def cache(self) -> ScoreCache | None: ...
    @property
    def valid(self) -> bool: ...
    @property
    def correct(self) -> bool | None: ...
    @property
    def train_exact(self) -> bool: ...
    @property
    def heldout_exact(self) -> bool: ...
    @property
    def failure(self) -> str | None: ...


def score_dict(score: ScoreLike) -> dict[str, Any]:
    """Return the published keys as a flat dictionary: the verdict, then what applies to task kind and validity."""
    fields = _rejection_fields(score, score.rejection) if score.rejection is not None else _replay_fields(score)
    if score.roots is not None:
        fields.update(_root_fields(score, score.roots))
    if score.alternative is not None:
        fields.update(_alternative_fields(score))
    if not score.problem.has_heldout_cells:
        fields[NOTHING_HELD_OUT] = True
    return fields


def _rejection_fields(score: ScoreLike, rejection: Rejection) -> dict[str, Any]:
    kind = score.problem.task.kind
    fields: dict[str, Any] = {
        "valid": False,
        "correct": score.correct,
        "taskName": kind.value,
        "failureExplanation": score.failure,
        "parseError": None,
    }
    fields |= {key: value for key, value in rejection.fields.items() if key != "variable"}
    fields |= {"stage": rejection.stage}
    if kind is TaskKind.ALTERNATIVE and rejection.stage not in ("extracted", "schema"):
        fields |= _invalid_alternative()
    return fields


def _replay_fields(score: ScoreLike) -> dict[str, Any]:
    train, heldout, submission = score.train, score.heldout, score.submission
    assert train is not None
    assert heldout is not None
    assert submission is not None
    cache = score.cache
    if cache is None or train.wrong_rows or heldout.wrong_rows:
        fields = _measure_replay(score, train, heldout)
    else:
        fields = _shared_exact_fields(score, train, heldout, cache)
    stats = _candidate_stats(submission.mechanisms)
    gold_size, size = fields["goldAstSize"], stats["astSize"]
    if gold_size is None:
        fields["accGoldPlus"] = fields["bloat"] = None
    else:
        over = size - gold_size
        fields["accGoldPlus"] = _budget_flags(fields["trainExact"], over, score.problem.sealed.budget_deltas).copy()
        fields["bloat"] = fields["trainExact"] and over > BLOAT_SLACK
    fields["candidateStats"] = stats
    return fields


def _shared_exact_fields(
    score: ScoreLike, train: SplitReplay, heldout: SplitReplay, cache: ScoreCache
) -> dict[str, Any]:
    """Return the fields of `_measure_replay`, shared by the exact answers with one evaluation order."""
    order = tuple(train.wrong)
    common = cache.get(order)
    if common is None:
        if len(cache) >= MAX_CACHED_ORDERS:
            cache.clear()
        common = cache[order] = _measure_replay(score, train, heldout)
    fields = common.copy()
    fields["correct"], fields["failureExplanation"] = score.correct, score.failure
    for key in ("perVariableTrainAccuracy", "perVariableHeldoutAccuracy"):
        fields[key] = common[key].copy()
    return fields


def _measure_replay(score: ScoreLike, train: SplitReplay, heldout: SplitReplay) -> dict[str, Any]:
    """Return the fields that depend on the replay alone, not on the formulas."""
    train_worlds, heldout_worlds = train.num_exact_worlds, heldout.num_exact_worlds
    train_exact, heldout_exact = train.all_exact, heldout.all_exact
    return {
        "valid": True,
        "correct": score.correct,
        "taskName": score.problem.task.kind.value,
        "failureExplanation": score.failure,
        "parseError": None,
        "trainExact": train_exact,
        "trainAccuracy": train.accuracy,
        "trainWorldExactAccuracy": train_worlds / train.num_worlds if train.num_worlds else None,
        "trainWorlds": train.num_worlds,
        "trainWorldExactCount": train_worlds,
        "heldoutExact": train_exact and heldout_exact,
        "heldoutAllWorldsExact": heldout_exact,
        "heldoutAccuracy": heldout.accuracy,
        "heldoutWorldExactAccuracy": heldout_worlds / heldout.num_worlds if heldout.num_worlds else None,
        "heldoutWorlds": heldout.num_worlds,
        "heldoutWorldExactCount": heldout_worlds,
        "firstTrainMismatch": _cell(train.first_mismatch) if train.wrong_rows else None,
        "firstHeldoutMismatch": _cell(heldout.first_mismatch) if heldout.wrong_rows else None,
        "perVariableTrainAccuracy": train.variable_accuracy,
        "perVariableHeldoutAccuracy": heldout.variable_accuracy,
        "goldAstSize": score.problem.sealed.gold_size,
    }


@lru_cache(maxsize=1 << 10)
def _budget_flags(train_exact: bool, over: int, deltas: tuple[int, ...]) -> dict[str, bool]:
    """Return delta_N -> whether the answer is train-exact and exceeds gold's size by at most N."""
    return {f"delta_{delta}": train_exact and over <= delta for delta in deltas}


def _cell(cell: Cell | None) -> dict[str, Any] | None:
    if cell is None:
        return None
    return {
        "worldId": cell.world,
        "rowIndex": cell.row,
        "variable": cell.variable,
        "predicted": cell.predicted,
        "expected": cell.expected,
    }


def _candidate_stats(mechanisms: Mapping[str, Mechanism]) -> dict[str, Any]:
    per_variable: dict[str, dict[str, Any]] = {}
    parents: dict[str, list[str]] = {}
    operators: list[OperatorCounts] = []
    size = depth = num_parents = 0
    for variable, mechanism in mechanisms.items():
        mechanism_size, mechanism_depth, variables, counts = mechanism.described or mechanism.stats
        names = parents[variable] = [*variables]
        mechanism_parents = len(names)
        per_variable[variable] = {
            "astSize": mechanism_size,
            "maxDepth": mechanism_depth,
            "parentCount": mechanism_parents,
            "operatorCounts": counts.by_name.copy(),
            "containsIf": counts.has_if,
            "variables": names,
        }
        operators.append(counts)
        size += mechanism_size
        num_parents += mechanism_parents
        if mechanism_depth > depth:
            depth = mechanism_depth
    return {
        "astSize": size,
        "maxDepth": depth,
        "parentCount": num_parents,
        "operatorCounts": dict(sum_counts(*operators)),
        "equationCount": len(per_variable),
        "perVariable": per_variable,
        "parentsByVar": parents,
    }


def _root_fields(score: ScoreLike, roots: RootScore) -> dict[str, Any]:
    return {
        "rootSetExact": roots.exact,
        "rootPrecision": roots.precision,
        "rootRecall": roots.recall,
        "predictedRoots": list(roots.predicted),
        "goldRoots": list(roots.gold),
        "mechanismTrainExact": score.train_exact,
        "mechanismHeldoutAllWorldsExact": score.heldout is not None and score.heldout.all_exact,
        "mechanismHeldoutExact": score.heldout_exact,
    }


def _invalid_alternative() -> dict[str, Any]:
    false = ("trainExact", "heldoutExact", "altValid", "altTrainExact", "altHeldoutExact")
    rates = ("Accuracy", "WorldExactAccuracy")
    null = [f"{split}{rate}" for split in ("train", "heldout") for rate in rates]
    null += ["altTrainWorldExactAccuracy", "altHeldoutWorldExactAccuracy", "firstTrainMismatch", "firstHeldoutMismatch"]
    null += ["goldAstSize", "accGoldPlus", "bloat"]
    return {**dict.fromkeys(false, False), **dict.fromkeys(null)}


def _alternative_fields(score: ScoreLike) -> dict[str, Any]:
    alternative, train, heldout = score.alternative, score.train, score.heldout
    assert alternative is not None
    assert train is not None
    assert heldout is not None
    experiment = alternative.experiment
    fields: dict[str, Any] = {
        "altValid": True,
        "altTrainExact": score.train_exact,
        "altHeldoutExact": score.heldout_exact,
        "altTrainWorldExactAccuracy": train.world_accuracy,
        "altHeldoutWorldExactAccuracy": heldout.world_accuracy,
        "altSemanticallyDistinct": alternative.distinct,
        "altSuccess": alternative.success,
        "experimentValid": experiment is not None,
        "experiment": experiment.to_dict() if experiment else alternative.submitted_experiment,
        "witnessProvided": alternative.witness_provided,
    }
    separation, best = alternative.separation, alternative.best
    if separation is None or best is None:
        return fields
    return fields | {
        "pairSeparates": separation.separates,
        "pairDisagreementRate": separation.disagreement_rate,
        "cellDifferenceRate": separation.cell_rate,
        "experimentOptimality": alternative.optimality,
        "experimentResolves": separation.separates,
        "bestPairwiseExperiment": best.experiment.to_dict(),
        "bestPairwiseDisagreementRate": best.disagreement_rate,
        "bestPairwiseCellDifferenceRate": best.cell_rate,
        "witnessValid": alternative.witness_valid,
        "jointSuccess": alternative.joint,
    }


# --- The published metrics of one answer to one problem ---------------------------------------------------------------
SCORE_BUDGET = CacheBudget(1 << 10, max_chars=4_000)  # scores of about 5 kB each: samples of a model often repeat
_SHAPES: dict[TaskKind, Kind] = {
    TaskKind.SCM: "scm",
    TaskKind.EPISODE: "scm",
    TaskKind.ROOTS: "roots",
    TaskKind.ALTERNATIVE: "alternative",
}


def answer_kind(problem: Problem) -> Kind:
    """Return the kind of answer that an item asks for."""
    return _SHAPES[problem.task.kind]


@dataclass(frozen=True, init=False)
class Score(ReadScore, Pictured):
    """Verdict and metrics of one answer.

    rejection: why it is not valid, or None; train and heldout are None iff it is not valid
    strict_json: the response was one JSON object on one line and nothing else (None if no text was given)
    """

    problem: Problem
    answer: Mapping[str, Any] | None
    rejection: Rejection | None
    submission: Submission | None
    train: SplitReplay | None
    heldout: SplitReplay | None
    roots: RootScore | None
    alternative: AlternativeScore | None
    strict_json: bool | None

    def __init__(
        self,
        problem: Problem,
        answer: Mapping[str, Any] | None,
        rejection: Rejection | None,
        submission: Submission | None = None,
        train: SplitReplay | None = None,
        heldout: SplitReplay | None = None,
        roots: RootScore | None = None,
        alternative: AlternativeScore | None = None,
        strict_json: bool | None = None,
        cache: ScoreCache | None = None,
    ) -> None:
        """Set the fields of a score.

        cache: fields that exact answers to the problem share, or None; no part of this score
        """
        fields = self.__dict__  # bypasses the frozen dataclass's setter, in a third of the time
        fields["problem"], fields["answer"], fields["rejection"] = problem, answer, rejection
        fields["submission"], fields["train"], fields["heldout"] = submission, train, heldout
        fields["roots"], fields["alternative"], fields["strict_json"] = roots, alternative, strict_json
        fields["_kept"] = cache

    @property
    def reading(self) -> ScoreReading:
        """Return the way in which the answer was read from the response."""
        reading: ScoreReading = self.__dict__.get("_reading", UNREAD)
        return reading

    def with_reading(self, reading: ScoreReading) -> Score:
        """Return a copy of the score with this reading."""
        score = copy(self)
        score.__dict__["_reading"] = reading
        return score

    @property
    def is_plain(self) -> bool:
        """Whether the response was one plain answer, for which all extractors agree."""
        return self.__dict__.get("_is_plain", False) is True

    @property
    def cache(self) -> ScoreCache | None:
        """The cache of fields that `to_dict` shares between answers to a problem."""
        cache: ScoreCache | None = self.__dict__["_kept"]
        return cache

    @property
    def valid(self) -> bool:
        return self.rejection is None

    @property
    def train_exact(self) -> bool:
        """Whether every scored training cell is right and there is one."""
        return self.train is not None and self.train.all_exact

    @property
    def heldout_exact(self) -> bool:
        """Whether the answer is train-exact and every scored held-out cell is right."""
        return self.train_exact and self.heldout is not None and self.heldout.all_exact

    @property
    def correct(self) -> bool | None:
        """Published task success: train-exact; in Hidden-roots with the right roots; in Alternative-SCM joint success.

        Reports, lists and attributions call an answer right if it is held-out exact (docs/metrics.md).
        """
        if self.alternative is not None:
            return bool(self.alternative.joint)
        if self.train is None or self.problem.task.kind is TaskKind.ALTERNATIVE:
            return False
        return self.train.all_exact and (self.roots is None or self.roots.exact)

    @property
    def failure(self) -> str | None:
        """Why the answer is invalid, or has wrong roots, experiment or witness; None otherwise."""
        if self.rejection:
            return self.rejection.reason
        if self.roots is not None and not self.roots.exact:
            return "the predicted root set is not the true one" if self.roots.gold else "the true root set is not known"
        return self.alternative.failure if self.alternative else None

    @property
    def funnel(self) -> dict[str, bool]:
        """The validity stages that were passed (paper, Table C.1)."""
        failed = STAGES.index(self.rejection.stage) if self.rejection else len(STAGES)
        return {stage: index < failed for index, stage in enumerate(STAGES)}

    @cached_property
    def model(self) -> Scm | None:
        """The submitted SCM, if valid."""
        return Scm(self.submission.roots, self.submission.candidate.mechanisms) if self.submission else None

    @cached_property
    def structure(self) -> StructureMetrics | None:
        """Functional parents against gold; None for invalid answers, without gold, and for wrong root sets.

        Also None if a mechanism mentions more than MAX_TABLE_VARS variables.
        """
        gold, submission = self.problem.sealed.gold, self.submission
        if submission is None or gold is None or {*submission.roots} != {*gold.roots}:
            return None
        mechanisms = submission.candidate.mechanisms
        # cheap test first, for many ties: a formula of few nodes mentions few variables
        formulas = (*gold.mechanisms.values(), *mechanisms.values())
        longest = max([len(formula.nodes) for formula in formulas], default=0)
        if longest > MAX_TABLE_VARS and any(len(formula.mentioned) > MAX_TABLE_VARS for formula in formulas):
            return None
        return compare_structure(gold, mechanisms)

    def __repr__(self) -> str:
        if self.rejection:
            summary = f"not valid, {self.rejection.stage}: {in_one_line(self.rejection.reason)[:80]}"
        else:
            summary = f"train_exact={self.train_exact}, heldout_exact={self.heldout_exact}"
        return f"<Score of {in_one_line(self.problem.id)[:60]}: {summary}, correct={self.correct}>"

    def picture(self) -> Picture:
        """Return the verdict, with the reason if the answer is invalid."""
        return verdict_picture(self.problem.id, self.valid, self.correct, self.failure)

    def to_dict(self) -> dict[str, Any]:
        """Return the published scorer's keys."""
        return score_dict(self)


class Evaluator:
    """Scores answers to one problem.

    extractor: rule for answers in response texts, a key of dsl.replayscm.extraction.EXTRACTORS
    compiles: whether compiled code may read mechanisms, once many have been new: equal scores in half the time, for
        120 MB of memory (dsl.replayscm.submission.Novelty)
    """

    def __init__(self, problem: Problem, *, extractor: str = "paper", compiles: bool = True) -> None:
        if problem.task.extension is not None:
            raise CalibrantError(f"'{problem.id}' is of the setting {problem.setting}; plain replay does not score it")
        self.problem = problem
        self._plain, self._extract = PLAIN[extractor], EXTRACTORS[extractor]
        self.shape = _SHAPES[problem.task.kind]
        self._scores: TextCache[Score] = SCORE_BUDGET.new_cache()
        train, heldout = problem.task.training, problem.sealed.heldout
        self._whole = Panel(train.variables, (*train.worlds, *heldout.worlds))
        self._checker = SubmissionChecker(problem, self._whole if compiles else None)
        self._split = Split(train, heldout)
        self._kept: ScoreCache = {}
        self._root_scores: dict[tuple[str, ...], RootScore] = {}  # by predicted roots in latent order

    def score_prediction(self, prediction: Mapping[str, Any]) -> Score:
        """Score a prediction record: its `extractedAnswer` object, else the text in rawResponse, response or text."""
        answer = prediction.get("extractedAnswer")
        if isinstance(answer, dict):
            return self.score_answer(answer)
        texts = (prediction.get(key) for key in ("rawResponse", "response", "text"))
        return self.score_text(next((text for text in texts if isinstance(text, str)), ""))

    def score(self, answer: str | Mapping[str, Any]) -> Score:
        """Score a response text or an answer object."""
        return self.score_text(answer) if isinstance(answer, str) else self.score_answer(answer)

    def score_text(self, text: str) -> Score:
        """Score a response text by its first valid candidate object, else by its first."""
        score = self._scores.newer.get(text) or SCORE_BUDGET.promote(self._scores, text)
        if score is None:
            plain = self._plain(text, self.shape)
            score = self._score(*plain) if plain else self._score_extracted(self._extract(text, self.shape))
            score.__dict__["_is_plain"] = plain is not None
            SCORE_BUDGET.store(self._scores, text, score)
        return score

    def _score_extracted(self, extraction: Extraction) -> Score:
        if not extraction.candidates:
            rejection = Rejection("extracted", extraction.failure or "no JSON object found")
            return Score(self.problem, None, rejection, strict_json=extraction.strict_json)
        first: Score | None = None
        for candidate in extraction.candidates:
            score = self._score(candidate, extraction.strict_json)
            if score.valid:
                return score
            first = first or score
        assert first is not None
        return first

    def score_answer(self, answer: Mapping[str, Any], strict_json: bool | None = None) -> Score:
        """Score an answer object; strict_json: whether its text was one JSON object on one line."""
        return self._score(answer, strict_json)

    def _score(self, answer: Mapping[str, Any], strict: bool | None) -> Score:
        match self.problem.task.kind:
            case TaskKind.SCM | TaskKind.EPISODE:
                return self._score_checked(answer, self._checker.mechanisms(answer), strict)
            case TaskKind.ALTERNATIVE:
                return self._score_checked(answer, self._checker.alternative(answer), strict)
            case TaskKind.ROOTS:
                roots = self._checker.roots(answer)
                if isinstance(roots, Rejection):
                    return Score(self.problem, answer, roots, strict_json=strict)
                checked = self._checker.given_roots(roots, answer["mechanisms"])
                return self._score_checked(answer, checked, strict, self._root_score(roots))

    def _root_score(self, named: tuple[str, ...]) -> RootScore:
        root_score = self._root_scores.get(named)
        if root_score is None:
            root_score = self._root_scores[named] = RootScore(named, self._gold_roots)
        return root_score

    @cached_property
    def _gold_roots(self) -> tuple[str, ...]:
        gold = self.problem.sealed.gold
        return tuple(v for v in self.problem.sealed.latent_order if gold is not None and v in gold.roots)

    def _score_checked(
        self,
        answer: Mapping[str, Any],
        checked: Submission | Rejection,
        strict: bool | None,
        roots: RootScore | None = None,
    ) -> Score:
        if isinstance(checked, Rejection):
            return Score(self.problem, answer, checked, roots=roots, strict_json=strict)
        wrong = checked.wrong
        if wrong is None:
            wrong = known_mismatches(checked.mechanisms, checked.order, self._whole)
        train, heldout = self._split.replays(wrong)
        alternative = None
        reference = self.problem.task.reference
        if reference is not None:
            model = Scm(checked.roots, checked.candidate.mechanisms)
            alternative = score_alternative(reference, model, answer, train_exact=train.all_exact)
        return Score(self.problem, answer, None, checked, train, heldout, roots, alternative, strict, self._kept)
