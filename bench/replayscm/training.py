"""ReplaySCM for trainers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.bench.replayscm.rows.exact import alternative_answer, scm_answer
from calibrant.dsl.replayscm.extensions.evaluation import ExtendedScore
from calibrant.dsl.replayscm.generation.strata import NAMED_STRATA
from calibrant.dsl.replayscm.item import Problem, TaskKind
from calibrant.dsl.replayscm.score import Score
from calibrant.solvers.outcome import Found

MIN_LOSS = 0.01  # bits a cell of a forecast that is not right, so that it is worth less than one that is


class ReplayScmTraining:
    """Scored cells, of training and held-out worlds, are what a share counts."""

    @property
    def stages(self) -> Sequence[str]:
        return tuple(f"{stratum.name}/hidden-order" for stratum in NAMED_STRATA)

    def difficulty(self, item: Problem) -> Mapping[str, int]:
        gold = item.sealed.gold
        parents = [] if gold is None else [len(local.parents) for local in gold.local_functions.values()]
        graph_labels = {} if gold is None else {"edges": sum(parents), "parents": max(parents, default=0)}
        return {"variables": len(item.task.variables), "worlds": len(item.task.training.worlds), **graph_labels}

    def gold(self, item: Problem) -> dict[str, Any] | None:
        """Gold; of an Alternative-SCM item, another model that a search finds."""
        if item.task.kind is TaskKind.ALTERNATIVE:
            from calibrant.solvers.replayscm.alternative import find_alternative

            alternative = find_alternative(item.task)
            return alternative_answer(alternative.value) if isinstance(alternative, Found) else None
        return None if item.sealed.gold is None else scm_answer(item.task.kind, item.sealed.gold)

    def share(self, item: Problem, verdict: Score) -> float:
        """Right scored cells over scored cells; half of 1 where all are right but the task asks for more than that.

        Of items with a stated class see `extended_share`.
        """
        if isinstance(verdict, ExtendedScore):
            return extended_share(verdict)
        splits = [split for split in (verdict.train, verdict.heldout) if split is not None]
        cells, wrong = sum(split.num_cells for split in splits), sum(split.num_wrong for split in splits)
        if cells and not wrong:
            return 1.0 if verdict.correct else 0.5
        return (cells - wrong) / cells if cells else 0.0

    def fits(self, verdict: Score) -> bool:
        """Return whether an answer is train-exact; under noise no map of the class is excluded."""
        if isinstance(verdict, ExtendedScore) and verdict.is_noisy:
            return verdict.valid
        return verdict.train_exact

    def agrees(self, verdict: Score) -> bool:
        return verdict.heldout_exact


def extended_share(verdict: ExtendedScore) -> float:
    """Return 1 for a right answer; of a map the mean of matched training cells and exact held-out worlds.

    Of a forecast 1 less the bits a cell that it loses against gold's law, at least 0.
    """
    if verdict.correct or not verdict.valid:
        return float(verdict.correct is True)
    if verdict.replay is None:
        loss = 1.0 if verdict.forecast is None else verdict.forecast.excess_log_loss
        return max(0.0, 1.0 - max(loss, MIN_LOSS))
    parts = [verdict.replay.train_match, verdict.replay.world_accuracy]
    stated = [float(part) for part in parts if part is not None]
    return sum(stated) / len(stated) if stated else 0.0


TRAINING = ReplayScmTraining()
