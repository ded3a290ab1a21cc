"""Rank of a network among all that the knowledge admits: how many score higher, and which arc to change first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, fsum
from typing import Any

import numpy as np

from calibrant.baselines.structure_learning._kernels_equivalence import essential_graphs
from calibrant.baselines.structure_learning._kernels_optimum import TIE
from calibrant.baselines.structure_learning.classes import separated_pairs
from calibrant.baselines.structure_learning.graph import Dag, Mask
from calibrant.baselines.structure_learning.levels import F64, I64, changes_of, num_changes
from calibrant.baselines.structure_learning.score_optimum import MAX_STEPS, ScoreOptimum
from calibrant.dsl.knowledge import CheckedKnowledge

MAX_RANKED = 1_000_000  # networks that score as high
LocalScore = Callable[[int, Mask], float]


@dataclass(frozen=True)
class Ranking:
    """Rank of a network.

    score: its own; gap: optimum less score, natural logarithms; is_gap_exact: whether the optimum is proven
    better_networks, better_classes: admitted networks, and their classes, with a higher score; equal_networks: with
        this score, it included; None where there are more than MAX_RANKED
    posterior: logarithm of its probability among all admitted networks; None without a Bayesian score
    gain, changes: best single change, and all (kind, from, to) that reach it; None and empty if none is admitted
    distance: fewest changes to an optimal network; violations: of the knowledge, in words
    """

    score: float
    gap: float
    better_networks: int | None
    better_classes: int | None
    equal_networks: int | None
    posterior: float | None
    gain: float | None
    changes: tuple[tuple[str, str, str], ...]
    distance: int
    violations: tuple[str, ...]
    is_gap_exact: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        beyond = f">{MAX_RANKED:,}"
        values: dict[str, Any] = {
            "score": self.score,
            "gap": self.gap,
            "better_networks": beyond if self.better_networks is None else self.better_networks,
            "better_classes": beyond if self.better_classes is None else self.better_classes,
            "equal_networks": beyond if self.equal_networks is None else self.equal_networks,
            "best_change": None if self.gain is None else {"gain": self.gain, "changes": [*map(list, self.changes)]},
            "distance": self.distance,
            "violations": list(self.violations),
        }
        if self.posterior is not None:
            values["posterior_dags"] = log_text(self.posterior)
        return values


def log_text(logarithm: float) -> str:
    """Return the number with this natural logarithm, ten digits, also where floating point has no such number."""
    exponent = int(np.floor(logarithm / np.log(10)))
    mantissa = exp(logarithm - exponent * float(np.log(10)))
    if round(mantissa, 9) >= 10:
        mantissa, exponent = mantissa / 10, exponent + 1
    return f"{mantissa:.9f}e{exponent:+03d}"


def rank_dag(
    dag: Dag,
    names: Sequence[str],
    knowledge: CheckedKnowledge,
    local: LocalScore,
    best: float,
    optimal: Sequence[Dag],
    *,
    optimum: ScoreOptimum | None,
    targets: Sequence[Mask],
    log_sum: float | None,
    is_proven: bool = True,
) -> Ranking:
    """Rank a network. best, optimal: highest score and networks that have it; log_sum: over all admitted networks.

    optimum: of at most 18 columns, from which higher networks are listed
    """
    score = fsum(local(v, parents) for v, parents in enumerate(dag))
    better: int | None = None
    classes: int | None = None
    equal: int | None = None
    if optimum is not None:
        counted = _count_higher(optimum, best, score, targets)
        if counted is not None:
            better, classes, equal = counted

    def gain_of(changed: Dag) -> float:
        return fsum(local(v, changed[v]) - local(v, dag[v]) for v in range(len(dag)) if changed[v] != dag[v])

    gain, changes = _best_changes(dag, names, knowledge, gain_of)
    return Ranking(
        score,
        max(0.0, best - score),
        better,
        classes,
        equal,
        None if log_sum is None else score - log_sum,
        gain,
        changes,
        min(num_changes(dag, network) for network in optimal),
        tuple(knowledge.violations(dag)),
        is_proven,
    )


def rank_listed(
    dag: Dag,
    names: Sequence[str],
    knowledge: CheckedKnowledge,
    networks: I64,
    scores: F64,
    score_of: Callable[[Dag], float],
    targets: Sequence[Mask],
) -> Ranking:
    """Rank a network among listed ones, by a score that is no sum of local ones, a log marginal likelihood.

    networks: all that the knowledge admits, [networks, columns]; scores: theirs
    """
    score, best = score_of(dag), float(scores.max())
    higher, optimal = networks[scores > score + TIE], networks[scores >= best - TIE]
    gain, changes = _best_changes(dag, names, knowledge, lambda changed: score_of(changed) - score)
    return Ranking(
        score,
        max(0.0, best - score),
        len(higher),
        count_classes(higher, targets),
        int(np.count_nonzero(abs(scores - score) <= TIE)),
        score - float(np.logaddexp.reduce(scores)),
        gain,
        changes,
        min(num_changes(dag, tuple(network)) for network in optimal.tolist()),
        tuple(knowledge.violations(dag)),
    )


def _count_higher(
    optimum: ScoreOptimum, best: float, score: float, targets: Sequence[Mask]
) -> tuple[int, int, int] | None:
    """Return networks and classes above a score, and networks with it; None beyond MAX_RANKED."""
    networks, is_complete = optimum.list_within(max(0.0, best - score) + TIE, MAX_RANKED, MAX_STEPS)
    if not is_complete:
        return None
    totals = optimum.totals_of(networks)
    higher = networks[totals > score + TIE]
    return len(higher), count_classes(higher, targets), int(np.count_nonzero(abs(totals - score) <= TIE))


def count_classes(dags: I64, targets: Sequence[Mask]) -> int:
    """Count the classes of networks, [networks, columns]."""
    if not len(dags):
        return 0
    num_vars = dags.shape[1]
    graphs = np.empty((len(dags), 2 * num_vars), np.int64)
    essential_graphs(np.ascontiguousarray(dags), np.array(separated_pairs(num_vars, targets), np.int64), graphs)
    return len(np.unique(graphs, axis=0))


def _best_changes(
    dag: Dag, names: Sequence[str], knowledge: CheckedKnowledge, gain_of: Callable[[Dag], float]
) -> tuple[float | None, tuple[tuple[str, str, str], ...]]:
    gains: list[tuple[float, str, int, int]] = []
    for kind, parent, child, changed in changes_of(dag, knowledge):
        gains.append((gain_of(changed), kind, parent, child))
    if not gains:
        return None, ()
    best = max(gain for gain, *_ in gains)
    return best, tuple((kind, names[u], names[v]) for gain, kind, u, v in gains if gain >= best - TIE)
