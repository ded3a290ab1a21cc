"""Networks of highest score on a table of 0 and 1 with interventions: exact optimum, the k best, posteriors of arcs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from calibrant.baselines.structure_learning.graph import Frame, free_constraints
from calibrant.baselines.structure_learning.score_optimum import ScoredDag, ScoreOptimum
from calibrant.baselines.structure_learning.scores import (
    Interventional,
    LocalScores,
    NetworkScore,
    aic,
    bdj,
    bds,
    bic,
    k2,
    mbde,
)
from calibrant.bench.replayscm.fitting.reading import Reading, read_with, reading_options
from calibrant.bench.replayscm.fitting.table import Gaps, Table, complete_table
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.text import plural

SCORES: Mapping[str, Callable[[float], NetworkScore]] = {
    "bde": mbde,
    "bds": lambda iss: Interventional(bds(iss)),
    "bdj": lambda iss: Interventional(bdj()),
    "k2": lambda iss: Interventional(k2()),
    "bic": lambda iss: Interventional(bic()),
    "aic": lambda iss: Interventional(aic()),
}
BAYESIAN = ("bde", "bds", "bdj", "k2")  # marginal likelihoods, of which posteriors are made
SAMPLE_SIZED = ("bde", "bds")  # that have an equivalent sample size
MAX_COLUMNS = 18  # 2**18 parent sets of each column are scored
MAX_NETWORKS = 1_000
ARCS_SHOWN = 12  # lines of the terminal


@dataclass(frozen=True)
class Network:
    """A network. arcs: pairs (parent, child) by name; score: sum of its local scores, natural logarithms."""

    arcs: tuple[tuple[str, str], ...]
    score: float


@dataclass(frozen=True)
class NetworkFit:
    """Networks of highest score on a table.

    networks: by falling score, the first is an exact optimum; num_optimal: as good as it, within 1e-9
    all_counted: `num_optimal` is their number, and not only a lower bound
    arcs: probability of each arc, averaged over all networks, for Bayesian scores; empty for others
    table: the table as it was read
    """

    variables: tuple[str, ...]
    score: str
    networks: tuple[Network, ...]
    num_optimal: int
    all_counted: bool
    arcs: Mapping[tuple[str, str], float]
    table: Table

    def __repr__(self) -> str:
        number = f"{self.num_optimal:,}" if self.all_counted else f"at least {self.num_optimal:,}"
        best = self.networks[0]
        columns = f"{plural(len(self.variables), 'columns')}, score {self.score}"
        return f"<NetworkFit: {columns}, best {best.score:.4f} with {len(best.arcs)} arcs, {number} as good>"

    def __str__(self) -> str:
        """Return the text of the terminal."""
        return "\n".join(self.lines())

    @property
    def fits(self) -> bool:
        """True: some network always has the highest score."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "variables": list(self.variables),
            "rows": self.table.num_rows,
            "coding": self.table.coding,
            "notes": list(self.table.notes),
            "score": self.score,
            "networks": [{"arcs": [*map(list, network.arcs)], "score": network.score} for network in self.networks],
            "num_optimal": self.num_optimal,
            "all_counted": self.all_counted,
            "arcs": [{"from": a, "to": b, "probability": p} for (a, b), p in self.arcs.items()],
        }

    def lines(self, *, verbose: bool = False) -> Iterator[str]:
        """Yield the lines of the terminal; verbose: all notes on columns."""
        yield from self.table.reading_lines(every=verbose, networks=True)
        for place, network in enumerate(self.networks, 1):
            arcs = ", ".join(f"{parent} -> {child}" for parent, child in network.arcs) or "no arcs"
            yield f"{place}  {network.score:.4f}  {arcs}"
        number = f"{self.num_optimal:,}" if self.all_counted else f"at least {self.num_optimal:,}"
        yield f"score {self.score}: the first is proven highest over all networks; networks with that score: {number}"
        if self.arcs:
            yield ""
            yield "probability of arcs, over all networks weighted by their score and number of orders"
            for (parent, child), probability in sorted(self.arcs.items(), key=lambda item: -item[1])[:ARCS_SHOWN]:
                yield f"{probability:.3f}  {parent} -> {child}"


def learn_networks(
    data: Any,
    *,
    score: str = "bde",
    iss: float = 1.0,
    k: int = 1,
    max_parents: int | None = None,
    gaps: Gaps = "complete",
    **reading: Unpack[Reading],
) -> NetworkFit:
    """Learn networks of columns by a score, exactly: for noisy columns, of which `fit` finds no functions.

    data, gaps, reading: as `fit` takes them; rows in which a column was set do not count for its own parents
    score: bde, bds, bdj, k2, bic or aic; iss: equivalent sample size of bde and bds
    k: number of best networks; max_parents: largest number of parents of a column, None for no limit
    """
    return learn_in_steps(data, score, iss, k, max_parents, gaps, reading, lambda step, done, total: None)


def learn_in_steps(
    data: Any,
    score: str,
    iss: float,
    k: int,
    max_parents: int | None,
    gaps: Gaps,
    reading: Mapping[str, Any],
    listen: Callable[[str, int, int], None],
) -> NetworkFit:
    """Learn networks as `learn_networks` does; `listen` is called with the share of the scores that are computed."""
    table = complete_table(read_with(data, reading_options(reading), "networks"), gaps)
    _check(table, score, iss, k, max_parents)
    constraints = free_constraints(len(table.names), max_parents=max_parents)
    scores = LocalScores(_frame(table), SCORES[score](iss))
    optimum = ScoreOptimum(scores, constraints, lambda done, total: listen("scores of parent sets", done, total + 1))
    best = optimum.k_best(k)
    optimal = optimum.co_optimal()
    arcs: dict[tuple[str, str], float] = {}
    if score in BAYESIAN:
        frequency = optimum.posteriors().arcs().frequency()
        for a, parent in enumerate(table.names):
            arcs |= {(parent, child): float(frequency[a, b]) for b, child in enumerate(table.names) if a != b}
    networks = tuple(_network(table.names, scored) for scored in best)
    return NetworkFit(table.names, score, networks, len(optimal.dags), optimal.is_complete, arcs, table)


def _check(table: Table, score: str, iss: object, k: object, max_parents: object) -> None:
    if score not in SCORES:
        raise CalibrantError(f"unknown score {short_repr(score)}; known: {', '.join(SCORES)}")
    if isinstance(iss, bool) or not isinstance(iss, int | float) or not 0 < iss < float("inf"):
        raise CalibrantError(f"iss is {short_repr(iss)}; a number above 0 is allowed")
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MAX_NETWORKS:
        raise CalibrantError(f"k is {short_repr(k)}; 1 to {MAX_NETWORKS:,} networks are listed")
    if max_parents is not None and (not isinstance(max_parents, int) or max_parents < 0):
        raise CalibrantError(f"max_parents is {short_repr(max_parents)}; a whole number from 0, or None, is allowed")
    if len(table.names) > MAX_COLUMNS:
        raise CalibrantError(
            f"{table.source} has {len(table.names)} columns; exact optima are for at most {MAX_COLUMNS}: leave some out"
        )


def _frame(table: Table) -> Frame:
    wide = next((column.name for column in table.used if column.num_levels > 2), None)
    if wide is not None:
        raise CalibrantError(f"{table.source}, column {short_repr(wide)}: more than two values; give --binarize")
    values = np.zeros(len(table.counts), np.uint64)
    for k in range(len(table.used)):
        values |= table.codes[:, k].astype(np.uint64) << np.uint64(k)
    return Frame(table.names, values[table.pattern_of_row], table.set_masks[table.pattern_of_row])


def _network(names: Sequence[str], scored: ScoredDag) -> Network:
    arcs = tuple(
        (names[parent], names[child])
        for child, parents in enumerate(scored.dag)
        for parent in range(len(names))
        if parents >> parent & 1
    )
    return Network(arcs, scored.score)
