"""Semantic structure metrics of the paper (section 3): functional parents of a submission against those of gold.

The published scorer has none of these; its analysis code uses mentioned parents, the paper's text functional ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from calibrant.dsl.replayscm.scm import Scm


@dataclass(frozen=True, slots=True)
class StructureMetrics:
    """Functional-parent graph and local functions against gold.

    precision, recall, f1: over directed edges; 1 where both graphs are empty in the respect that is divided by
    shd: additions and deletions cost 1, a reversed edge costs 1 in all
    variable_exact: share of endogenous variables with exactly the gold parents; exact_map: all of them
    local_match: share of endogenous variables with the gold local function (parents and truth table)
    """

    precision: float
    recall: float
    f1: float
    shd: int
    variable_exact: float
    exact_map: bool
    local_match: float


def structure_metrics(gold: Scm, model: Scm) -> StructureMetrics:
    """Metrics of a model that has the gold roots."""
    if model.endogenous != gold.endogenous:
        raise ValueError("structure metrics need the gold root set")
    gold_edges, model_edges = gold.functional_edges, model.functional_edges
    common = len(gold_edges & model_edges)
    precision = common / len(model_edges) if model_edges else 1.0
    recall = common / len(gold_edges) if gold_edges else 1.0
    endogenous = gold.endogenous
    model_functions, gold_functions = model.local_functions, gold.local_functions
    same_parents = sum(model_functions[v].parents == gold_functions[v].parents for v in endogenous)
    same_function = sum(model_functions[v] == gold_functions[v] for v in endogenous)
    return StructureMetrics(
        precision,
        recall,
        2 * common / (len(gold_edges) + len(model_edges)) if gold_edges or model_edges else 1.0,
        _shd(gold_edges, model_edges),
        same_parents / len(endogenous) if endogenous else 1.0,
        same_parents == len(endogenous),
        same_function / len(endogenous) if endogenous else 1.0,
    )


def _shd(gold_edges: frozenset[tuple[str, str]], model_edges: frozenset[tuple[str, str]]) -> int:
    extra, missing = model_edges - gold_edges, gold_edges - model_edges
    reversed_edges = sum((v, u) in missing for u, v in extra)
    return len(extra) + len(missing) - reversed_edges


@dataclass(frozen=True)
class RootScore:
    """Hidden-roots: how the predicted root set compares. Both tuples are in latent order.

    gold: empty where the file has no gold SCM; then no root set is exact, and shares are None. Of no predicted root at
        all the precision is 0.
    """

    predicted: tuple[str, ...]
    gold: tuple[str, ...] = field(repr=False)

    @cached_property
    def exact(self) -> bool:
        return bool(self.gold) and set(self.predicted) == set(self.gold)

    @cached_property
    def precision(self) -> float | None:
        if not self.gold:
            return None
        return len(set(self.predicted) & set(self.gold)) / len(self.predicted) if self.predicted else 0.0

    @cached_property
    def recall(self) -> float | None:
        return len(set(self.predicted) & set(self.gold)) / len(self.gold) if self.gold else None
