"""Networks on a table with gaps: the marginal likelihood of the known cells, summed over all completions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import prod

import numpy as np

from calibrant.baselines.structure_learning.classes import arcs_of_dag
from calibrant.baselines.structure_learning.effects import count_classes, rank_listed
from calibrant.baselines.structure_learning.graph import Dag
from calibrant.baselines.structure_learning.levels import (
    DagSum,
    LevelFrame,
    LevelScore,
    LevelScores,
    ScoreOptimum,
    frame_of_codes,
)
from calibrant.bench.replayscm.fitting.columns import GAP
from calibrant.bench.replayscm.fitting.network_fit import Network, NetworkFit
from calibrant.bench.replayscm.fitting.table import Table
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.knowledge import CheckedKnowledge, Knowledge
from calibrant.dsl.text import plural

MAX_COMPLETIONS = 4_096
MAX_COLUMNS = 10  # 4**10 layers of a sum over DAGs, 50 ms a completion
MAX_LISTED_COLUMNS = 5  # 29,281 networks
TIE = 1e-9
WAYS_ON = "leave out rows with gaps (--gaps drop) or columns (--drop COL)"


def refuse_unsummed(table: Table, unsummed: Mapping[str, str]) -> None:
    """Refuse options that have no effect on a table with gaps. unsummed: option -> the reason."""
    for name, reason in unsummed.items():
        raise CalibrantError(
            f"{table.source} has {plural(table.num_gaps, 'gaps')}, and {name} (--{name}) {reason}: leave it out, or"
            f" {WAYS_ON}"
        )


def learn_with_gaps(
    table: Table, score: str, iss: float, knowledge: CheckedKnowledge, k: int, graph: Dag | None
) -> NetworkFit:
    """Return networks by the sum over all completions of exp(score), the probabilities of arcs, the rank of a graph.

    The best k and the number of optima are listed up to MAX_LISTED_COLUMNS columns. `CalibrantError` for other scores,
    and beyond MAX_COMPLETIONS or MAX_COLUMNS.
    """
    rule = LevelScore(score, float(iss))
    number = _count_completions(table, rule, k, has_graph=graph is not None)
    names = table.names
    logs: list[float] = []
    arcs = np.zeros((number, len(names), len(names)))
    totals: list[np.ndarray] = []
    networks = None
    for place, frame in enumerate(completed_frames(table)):
        local = LevelScores(frame, rule, knowledge).scored_sets()[1]
        dag_sum = DagSum(local)
        logs.append(dag_sum.log_sum)
        arcs[place] = dag_sum.arcs()
        if len(names) <= MAX_LISTED_COLUMNS:
            optimum = ScoreOptimum.of_table(names, local, knowledge.earlier)
            if networks is None:  # which networks are admitted does not depend on the completion
                networks, _ = optimum.list_within(float("inf"), 30_000, 1 << 40)
            totals.append(optimum.totals_of(networks))
    weights = np.exp(np.array(logs) - max(logs))
    shares = np.tensordot(weights / weights.sum(), arcs, 1)
    probabilities = {
        (parent, child): float(shares[a, b])
        for a, parent in enumerate(names)
        for b, child in enumerate(names)
        if a != b
    }
    best: tuple[Network, ...] = ()
    optimal: tuple[tuple[tuple[str, str], ...], ...] = ()
    num_classes = num_admitted = ranking = None
    if networks is not None:
        scores = np.logaddexp.reduce(np.array(totals), axis=0)
        dags = [tuple(dag) for dag in networks.tolist()]
        ranked = sorted(range(len(dags)), key=lambda i: (-scores[i], dags[i]))
        best = tuple(Network(arcs_of_dag(names, dags[i]), float(scores[i])) for i in ranked[:k])
        ties = [i for i in ranked if scores[i] >= scores[ranked[0]] - TIE]
        optimal = tuple(arcs_of_dag(names, dags[i]) for i in ties)
        targets = sorted(set(table.set_masks.tolist()))
        num_classes = count_classes(networks[ties], targets)
        if graph is not None:
            score_of = _summed_score(table, rule)
            ranking = rank_listed(graph, names, knowledge, networks, scores, score_of, targets)
        num_admitted = len(dags)
    return NetworkFit(
        names,
        score,
        best,
        len(optimal),
        networks is not None,
        probabilities,
        table,
        imaginary_rows=iss,
        num_admitted=num_admitted,
        optimal=optimal,
        num_classes=num_classes,
        arcs_by_dags=probabilities,
        ranking=ranking,
        graph=None if graph is None else arcs_of_dag(names, graph),
        num_completions=number,
    )


def _summed_score(table: Table, rule: LevelScore) -> Callable[[Dag], float]:
    """Return the score, summed over completions, of any network, whatever the knowledge."""
    free = Knowledge().check(table.names)
    tables = np.array([LevelScores(frame, rule, free).scored_sets()[1] for frame in completed_frames(table)])
    columns = np.arange(len(table.names))
    return lambda dag: float(np.logaddexp.reduce(tables[:, columns, np.array(dag)].sum(axis=1)))


def _count_completions(table: Table, rule: LevelScore, k: int, *, has_graph: bool) -> int:
    """Return the number of completions; `CalibrantError` for what is not summed or not listed."""
    if not rule.is_bayesian:
        raise CalibrantError(
            f"{table.source} has {plural(table.num_gaps, 'gaps')}, and {rule.name} is no marginal likelihood that can"
            " be summed over them (bde, k2 and bdj are); scores of incomplete families, EM and imputation are not"
            f" offered, since they rest on more: {WAYS_ON}"
        )
    if len(table.names) > MAX_LISTED_COLUMNS:
        reason = f"lists networks with gaps up to {MAX_LISTED_COLUMNS} columns"
        refuse_unsummed(
            table, {name: reason for name, is_asked in {"best": k > 1, "graph": has_graph}.items() if is_asked}
        )
    number: int = prod(prod(levels) ** count for levels, count in _open_cells(table))
    if number > MAX_COMPLETIONS or len(table.names) > MAX_COLUMNS:
        raise CalibrantError(
            f"{table.source} has {plural(len(table.names), 'columns')} and {plural(table.num_gaps, 'gaps')} with"
            f" {_short(number)} completions; networks are summed over at most {MAX_COMPLETIONS:,} of at most"
            f" {MAX_COLUMNS} columns: {WAYS_ON}"
        )
    return number


def _short(number: int) -> str:
    return f"{number:,}" if number < 10**12 else f"more than 10^{len(str(number)) - 1}"


def _open_cells(table: Table) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield, per pattern with gaps, the numbers of values of its gaps, and its number of rows."""
    levels = [column.num_levels for column in table.used]
    for codes, count in zip(table.codes, table.counts.tolist(), strict=True):
        gaps = tuple(levels[k] for k in np.flatnonzero(codes == GAP))
        if gaps:
            yield gaps, count


def completed_frames(table: Table) -> Iterator[LevelFrame]:
    """Yield the table with every completion of its gaps; every row has gaps of its own."""
    levels = [column.num_levels for column in table.used]
    pattern = np.repeat(np.arange(len(table.counts)), table.counts)
    codes = np.ascontiguousarray(table.codes[pattern].T, np.int32)  # [columns, rows]
    cells = [tuple(cell) for cell in np.argwhere(codes == GAP).tolist()]
    masks = table.set_masks[pattern]
    for values in product(*(range(levels[column]) for column, _ in cells)):
        for (column, row), value in zip(cells, values, strict=True):
            codes[column, row] = value
        yield frame_of_codes(table.names, levels, codes.copy(), masks)
