"""The protocol `staged-exact-search`: the paper's symbolic exact-search with its caps."""

from __future__ import annotations

from typing import Annotated

import msgspec

from calibrant.bench.protocols.base import ProtocolResult
from calibrant.bench.replayscm.protocols.answers import scm_answer
from calibrant.bench.replayscm.protocols.exact import warming_task
from calibrant.bench.replayscm.protocols.plain_row import PlainRow
from calibrant.dsl.replayscm.item import Task, TaskKind

Count = Annotated[int, msgspec.Meta(ge=1)]


class StagedExactSearch(PlainRow, frozen=True):
    """The first train-exact SCM of three stages of growing caps, as the paper's symbolic exact-search.

    stages: how many of the three stages are run
    nodes_per_second: how many choices stand for a second of the published budgets
    """

    name = "staged-exact-search"
    stages: Annotated[int, msgspec.Meta(ge=1, le=3)] = 3
    nodes_per_second: Count = 50_000

    def warm_up(self) -> None:
        self.answer(warming_task())

    def answer(self, task: Task) -> ProtocolResult:
        from calibrant.baselines.replayscm.staged import NODES_PER_SECOND, STAGES, NotFound, staged_search

        if task.kind is TaskKind.ALTERNATIVE:  # the published search has no row there
            return ProtocolResult("impossible", provenance={"reason": "no Alternative-SCM row"})
        stages = [
            stage._replace(nodes=stage.nodes // NODES_PER_SECOND * self.nodes_per_second)
            for stage in STAGES[: self.stages]
        ]
        result = staged_search(task, stages)
        if isinstance(result, NotFound):
            provenance = {"without_candidates": list(result.without), "out_of_nodes": result.out_of_nodes}
            return ProtocolResult("out_of_budget", provenance=provenance)
        return ProtocolResult("found", scm_answer(task.kind, result.model), result.model.size, {"stage": result.stage})
