"""Scores under the published scorer's keys. Keys that do not apply to an answer are absent, as they are there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from dsl.replayscm.alternative import AlternativeScore
from dsl.replayscm.mechanisms import Mechanism
from dsl.replayscm.problem import Problem, TaskKind
from dsl.replayscm.reference import Cell
from dsl.replayscm.replay import SplitReplay
from dsl.replayscm.structure import RootScore
from dsl.replayscm.submission import Rejection, Submission

BLOAT_SLACK = 25  # a train-exact map larger than gold by more than this is called bloated


class Scored(Protocol):
    """What is read of a score (dsl.replayscm.score)."""

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
    def valid(self) -> bool: ...
    @property
    def correct(self) -> bool: ...
    @property
    def train_exact(self) -> bool: ...
    @property
    def heldout_exact(self) -> bool: ...
    @property
    def failure(self) -> str | None: ...


def score_dict(score: Scored) -> dict[str, Any]:
    """A flat object: verdict first, then whatever its task kind and validity define."""
    kind = score.problem.task.kind
    made: dict[str, Any] = {
        "valid": score.valid,
        "correct": score.correct,
        "taskName": kind.value,
        "failureExplanation": score.failure,
        "parseError": None,
    }
    if score.rejection:
        made |= {key: value for key, value in score.rejection.fields.items() if key != "variable"}
        made |= {"stage": score.rejection.stage}
        if kind is TaskKind.ALTERNATIVE and score.rejection.stage not in ("extracted", "schema"):
            made |= _invalid_alternative()
    else:
        made |= _replayed(score)
    if score.roots is not None:
        made |= _roots(score, score.roots)
    if score.alternative is not None:
        made |= _alternative(score)
    return made


def _replayed(score: Scored) -> dict[str, Any]:
    train, heldout = score.train, score.heldout
    assert train is not None
    assert heldout is not None
    assert score.submission is not None
    stats = _candidate_stats(score.submission.mechanisms)
    sealed, size = score.problem.sealed, stats["astSize"]
    gold_size, train_exact, heldout_exact = sealed.gold_size, train.all_exact, heldout.all_exact
    return {
        "trainExact": train_exact,
        "trainAccuracy": train.accuracy,
        "trainWorldExactAccuracy": train.world_accuracy,
        "trainWorlds": train.num_worlds,
        "trainWorldExactCount": train.num_exact_worlds,
        "heldoutExact": train_exact and heldout_exact,
        "heldoutAllWorldsExact": heldout_exact,
        "heldoutAccuracy": heldout.accuracy,
        "heldoutWorldExactAccuracy": heldout.world_accuracy,
        "heldoutWorlds": heldout.num_worlds,
        "heldoutWorldExactCount": heldout.num_exact_worlds,
        "firstTrainMismatch": _cell(train.first_mismatch),
        "firstHeldoutMismatch": _cell(heldout.first_mismatch),
        "perVariableTrainAccuracy": train.variable_accuracy,
        "perVariableHeldoutAccuracy": heldout.variable_accuracy,
        "goldAstSize": gold_size,
        "accGoldPlus": {f"delta_{delta}": train_exact and size <= gold_size + delta for delta in sealed.budget_deltas}
        if gold_size is not None
        else None,
        "bloat": None if gold_size is None else train_exact and size > gold_size + BLOAT_SLACK,
        "candidateStats": stats,
    }


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
    counts: dict[str, int] = {}
    size = depth = num_parents = 0
    for variable, mechanism in mechanisms.items():
        own_size, own_depth, variables, operators = mechanism.stats
        names = list(variables)
        own_counts = dict(operators)
        per_variable[variable] = {
            "astSize": own_size,
            "maxDepth": own_depth,
            "parentCount": len(names),
            "operatorCounts": own_counts,
            "containsIf": "if" in own_counts,
            "variables": names,
        }
        parents[variable] = names
        size += own_size
        if own_depth > depth:
            depth = own_depth
        num_parents += len(names)
        for name, count in own_counts.items():
            counts[name] = counts.get(name, 0) + count
    return {
        "astSize": size,
        "maxDepth": depth,
        "parentCount": num_parents,
        "operatorCounts": counts,
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
    made: dict[str, Any] = {
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
        return made
    return made | {
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
