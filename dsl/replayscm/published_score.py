"""Scores under the published scorer's keys. Keys that do not apply to an answer are absent, as they are there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

from calibrant.dsl.replayscm.alternatives.alternative import AlternativeScore
from calibrant.dsl.replayscm.mechanisms import Mechanism, OperatorCounts, sum_counts
from calibrant.dsl.replayscm.problem import Problem, TaskKind
from calibrant.dsl.replayscm.reference import Cell
from calibrant.dsl.replayscm.replay import SplitReplay
from calibrant.dsl.replayscm.structure import RootScore
from calibrant.dsl.replayscm.submission import Rejection, Submission
from calibrant.dsl.replayscm.world import MAX_CACHED_ORDERS

ScoreCache: TypeAlias = dict[tuple[str, ...], dict[str, Any]]
"""Of one problem: what answers that are right in every row have in common, by evaluation order."""

NOTHING_HELD_OUT = "nothingHeldOut"  # ours: the published scorer calls every answer to such an item wrong
BLOAT_SLACK = 25  # a train-exact map larger than gold by more than this is called bloated


class Scored(Protocol):
    """The attributes of a score (dsl.replayscm.score) that the published form reads."""

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


def score_dict(score: Scored) -> dict[str, Any]:
    """Return a flat object: verdict first, then whatever its task kind and validity define."""
    fields = _rejection_fields(score, score.rejection) if score.rejection is not None else _replay_fields(score)
    if score.roots is not None:
        fields.update(_roots(score, score.roots))
    if score.alternative is not None:
        fields.update(_alternative(score))
    if not score.problem.has_heldout_cells:
        fields[NOTHING_HELD_OUT] = True
    return fields


def _rejection_fields(score: Scored, rejection: Rejection) -> dict[str, Any]:
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


def _replay_fields(score: Scored) -> dict[str, Any]:
    train, heldout, submission = score.train, score.heldout, score.submission
    assert train is not None
    assert heldout is not None
    assert submission is not None
    cache = score.cache
    if cache is None or train.wrong_rows or heldout.wrong_rows:
        fields = _measure_replay(score, train, heldout)
    else:
        fields = _right_everywhere(score, train, heldout, cache)
    stats = _candidate_stats(submission.mechanisms)
    gold_size, size = fields["goldAstSize"], stats["astSize"]
    if gold_size is None:
        fields["accGoldPlus"] = fields["bloat"] = None
    else:
        over = size - gold_size
        fields["accGoldPlus"] = _within(fields["trainExact"], over, score.problem.sealed.budget_deltas).copy()
        fields["bloat"] = fields["trainExact"] and over > BLOAT_SLACK
    fields["candidateStats"] = stats
    return fields


def _right_everywhere(score: Scored, train: SplitReplay, heldout: SplitReplay, cache: ScoreCache) -> dict[str, Any]:
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


def _measure_replay(score: Scored, train: SplitReplay, heldout: SplitReplay) -> dict[str, Any]:
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
def _within(train_exact: bool, over: int, deltas: tuple[int, ...]) -> dict[str, bool]:
    """Return, for each budget, whether the answer exceeds gold by at most that much."""
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
        own_size, own_depth, variables, counts = mechanism.described or mechanism.stats
        names = parents[variable] = [*variables]
        own_parents = len(names)
        per_variable[variable] = {
            "astSize": own_size,
            "maxDepth": own_depth,
            "parentCount": own_parents,
            "operatorCounts": counts.by_name.copy(),
            "containsIf": counts.has_if,
            "variables": names,
        }
        operators.append(counts)
        size += own_size
        num_parents += own_parents
        if own_depth > depth:
            depth = own_depth
    return {
        "astSize": size,
        "maxDepth": depth,
        "parentCount": num_parents,
        "operatorCounts": dict(sum_counts(*operators)),
        "equationCount": len(per_variable),
        "perVariable": per_variable,
        "parentsByVar": parents,
    }


def _roots(score: Scored, roots: RootScore) -> dict[str, Any]:
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


def _alternative(score: Scored) -> dict[str, Any]:
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
