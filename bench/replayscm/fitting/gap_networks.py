"""Networks on a table with gaps: the marginal likelihood of the known cells, summed over all completions.

Beyond five columns the optimum and the rank of a graph are exact where the networks that might score as high can be
listed, else between the best of single completions and a bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import log, prod

import numpy as np
import numpy.typing as npt

from calibrant.baselines.structure_learning.classes import arcs_of_dag, essential_graph
from calibrant.baselines.structure_learning.constraints import Dag
from calibrant.baselines.structure_learning.effects import (
    Effects,
    Query,
    Ranking,
    count_classes,
    count_higher,
    rank_dag,
)
from calibrant.baselines.structure_learning.large import LargeOptimum, Price
from calibrant.baselines.structure_learning.levels import (
    DagSum,
    LevelFrame,
    LevelScore,
    LevelScores,
    ScoreOptimum,
    frame_of_codes,
)
from calibrant.bench.core.capabilities import Steps
from calibrant.bench.replayscm.fitting.columns import GAP
from calibrant.bench.replayscm.fitting.network_fit import EffectSummary, Network, NetworkFit, words_of_query
from calibrant.bench.replayscm.fitting.table import Table
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.knowledge import CheckedKnowledge, Knowledge
from calibrant.dsl.text import plural
from calibrant.solvers.outcome import BudgetSpent

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

MAX_COMPLETIONS = 4_096
MAX_COLUMNS = 10  # 4**10 layers of a sum over DAGs, 50 ms a completion
MAX_LISTED_COLUMNS = 5  # 29,281 networks
MAX_CANDIDATES = 300_000  # networks that are summed, of more columns
MAX_SUMMED = 100_000_000  # networks times completions, a second
MAX_STEPS = 20_000_000  # of listing under one completion
MAX_CELLS = 4_000_000  # scores in memory
MAX_EFFECTS = 100_000  # networks times completions, about 50 us each
NUM_SAMPLES = 2_000  # networks with a completion each, for the mean effect
NOT_LISTED = "networks that might beat it are too many to be listed"
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
    table: Table,
    score: str,
    iss: float,
    knowledge: CheckedKnowledge,
    k: int,
    graph: Dag | None,
    query: Query | None = None,
    listen: Steps = lambda step, done, total: None,
    *,
    free: CheckedKnowledge | None = None,
) -> NetworkFit:
    """Return networks by the sum over all completions of exp(score), arcs, the rank of a graph, an effect.

    free: what holds without the stated knowledge, which then has a price

    Up to MAX_LISTED_COLUMNS columns all networks are listed; beyond, those that may reach the best, or a bound.
    `CalibrantError` for other scores, and beyond MAX_COMPLETIONS or MAX_COLUMNS.
    """
    rule = LevelScore(score, float(iss))
    number = _count_completions(table, rule)
    names = table.names
    local_scores = _CompletionScores(table, rule, number)
    sums = _Sums(names, local_scores, knowledge, listen)
    shares = np.tensordot(sums.weights, sums.arcs, 1)
    probabilities = {
        (parent, child): float(shares[a, b])
        for a, parent in enumerate(names)
        for b, child in enumerate(names)
        if a != b
    }
    networks, scores, is_proven = sums.best_networks(k)
    optimal = networks[scores >= scores[0] - TIE]
    price = None if free is None else Price.between(_Sums(names, local_scores, free, listen).optimum(), sums.optimum())
    targets = sorted(set(table.set_masks.tolist()))
    ranking = None if graph is None else sums.rank(graph, optimal, targets, is_proven=is_proven)
    summary = None if query is None else _effect(table, sums, tuple(optimal[0].tolist()), graph, query, iss)
    listed = sums.listed
    return NetworkFit(
        names,
        score,
        tuple(
            Network(arcs_of_dag(names, dag), float(total))
            for dag, total in zip(networks[:k].tolist(), scores, strict=False)
        ),
        len(optimal),
        is_proven,
        probabilities,
        table,
        imaginary_rows=iss,
        num_admitted=None if listed is None else len(listed),
        optimal=tuple(arcs_of_dag(names, dag) for dag in optimal.tolist()),
        num_classes=count_classes(optimal, targets) if is_proven else None,
        log_evidence=None if listed is None else float(sums.log_total - log(len(listed))),
        arcs_by_dags=probabilities,
        ranking=ranking,
        graph=None if graph is None else arcs_of_dag(names, graph),
        effect=summary,
        price=price,
        upper_bound=None if is_proven else sums.bound,
        method=None if is_proven else f"sum of the best of each completion; {NOT_LISTED}",
        num_completions=number,
    )


class _CompletionScores:
    """Local scores of every completion, once for all knowledge that limits the parents of columns alike."""

    def __init__(self, table: Table, rule: LevelScore, number: int) -> None:
        self._table, self._rule = table, rule
        self._shape = number, len(table.names), 1 << len(table.names)
        self._scored: dict[tuple[tuple[int, ...], ...], F64] = {}

    def under(self, knowledge: CheckedKnowledge) -> F64:
        """Return the scores of the admitted sets; [completions, columns, sets]."""
        limits = knowledge.allowed, knowledge.required, knowledge.limits
        if limits not in self._scored:
            scored = self._scored[limits] = np.empty(self._shape)
            for index, frame in enumerate(completed_frames(self._table)):
                scored[index] = LevelScores(frame, self._rule, knowledge).scored_sets()[1]
        return self._scored[limits]


class _Sums:
    """Scores summed over completions.

    weights: [completions] probability of each; arcs: [completions, from, to]; log_total: of all networks
    bound: no network has a higher sum; listed: all admitted networks, None beyond MAX_LISTED_COLUMNS

    A network with the sum t has, under some completion, at most `bound - t` nats less than the best there: else its
    terms would add up to less. So listing so far under each completion misses no network with that sum.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        local_scores: _CompletionScores,
        knowledge: CheckedKnowledge,
        listen: Steps,
    ) -> None:
        self.names, self.knowledge = names, knowledge
        self.tables, self._free = local_scores.under(knowledge), local_scores.under(Knowledge().check(names))
        self.is_restricted = self.tables is not self._free
        self._listen = listen
        self.optima = [ScoreOptimum.of_table(self.names, local, knowledge.earlier) for local in self.tables]
        bests = [optimum.best() for optimum in self.optima]
        self.bound = float(np.logaddexp.reduce([best.score for best in bests]))
        self._known = np.unique(np.array([best.dag for best in bests], np.int64), axis=0)
        self.listed: I64 | None = None
        if len(names) <= MAX_LISTED_COLUMNS:  # which networks are admitted does not depend on the completion
            self.listed = self.optima[0].list_within(float("inf"), 30_000, 1 << 40)[0]

    @cached_property
    def _posterior(self) -> tuple[float, F64, F64]:
        """Return the logarithm of the sum over all networks, the weights of completions, and their arcs."""
        number, num_columns = self.tables.shape[:2]
        logs, arcs = np.empty(number), np.empty((number, num_columns, num_columns))
        for index, local in enumerate(self.tables):
            self._listen("completions of the gaps", index, number)
            dag_sum = DagSum(local)
            logs[index], arcs[index] = dag_sum.log_sum, dag_sum.arcs()
        log_total = float(np.logaddexp.reduce(logs))
        return log_total, np.exp(logs - log_total), arcs

    @property
    def log_total(self) -> float:
        return self._posterior[0]

    @property
    def weights(self) -> F64:
        return self._posterior[1]

    @property
    def arcs(self) -> F64:
        return self._posterior[2]

    def optimum(self) -> LargeOptimum:
        """Return the best network, or the best one met with the bound."""
        networks, scores, is_proven = self.best_networks(1)
        score = float(scores[0])
        return LargeOptimum(tuple(networks[0].tolist()), score, score if is_proven else self.bound, NOT_LISTED)

    def by_completion(self, dags: I64) -> F64:
        """Return the score under each completion, whatever the knowledge; [completions, networks]."""
        return np.asarray(sum(self._free[:, v, dags[:, v]] for v in range(len(self.names))))

    def totals(self, dags: I64) -> F64:
        """Return the sums; [networks]."""
        step = max(1, MAX_CELLS // len(self.tables))
        parts = [self.by_completion(dags[start : start + step]) for start in range(0, len(dags), step)]
        return np.concatenate([np.logaddexp.reduce(part, axis=0) for part in parts])

    def _list_above(self, total: float) -> I64 | None:
        """Return all admitted networks with a sum of at least `total`, and others; None beyond the budgets."""
        if self.listed is not None:
            return self.listed
        networks: list[I64] = []
        limit = min(MAX_CANDIDATES, MAX_SUMMED // len(self.tables))
        for optimum in self.optima:
            near, is_complete = optimum.list_within(max(0.0, self.bound - total) + TIE, limit, MAX_STEPS)
            limit -= len(near)
            if not is_complete or limit < 0:
                return None
            networks.append(near)
        return np.unique(np.concatenate(networks), axis=0)

    def weighted(self, values: Sequence[float], place: int) -> float:
        """Return the part of a completion in the mean over all networks. values: of `listed`, under this completion."""
        assert self.listed is not None
        logs = np.asarray(sum(self.tables[place, v, self.listed[:, v]] for v in range(len(self.names))))
        return float(np.exp(logs - self.log_total) @ np.array(values))

    def best_networks(self, k: int) -> tuple[I64, F64, bool]:
        """Return networks by falling sum, the best k among them, and whether none beats or equals the first.

        Where k are too many to be proven, the best alone; without a proof the best of single completions.
        """
        totals = self.totals(self._known)
        threshold = float(np.sort(totals)[::-1][:k][-1]) if len(totals) >= k else -float("inf")
        candidates = self._list_above(threshold)
        if candidates is None and k > 1:
            candidates = self._list_above(float(totals.max()))
            if candidates is not None:
                totals = self.totals(candidates)
                candidates = candidates[totals >= totals.max() - TIE]
        is_proven = candidates is not None
        networks = self._known if candidates is None else candidates
        scores = self.totals(networks)
        order = np.lexsort((*networks.T[::-1], -scores))
        return networks[order], scores[order], is_proven

    def rank(self, graph: Dag, optimal: I64, targets: Sequence[int], *, is_proven: bool) -> Ranking:
        """Return the rank of a graph; numbers of higher networks are None beyond the budgets."""

        def score_of(network: Dag) -> float:
            return float(self.totals(np.array([network], np.int64))[0])

        score, best = score_of(graph), score_of(tuple(optimal[0].tolist()))
        networks = self._list_above(score - TIE)
        higher = None if networks is None else count_higher(networks, self.totals(networks), score, targets)
        return rank_dag(
            graph,
            self.names,
            self.knowledge,
            score,
            best,
            map(tuple, optimal.tolist()),
            lambda changed: score_of(changed) - score,
            higher=higher,
            log_sum=self.log_total,
            is_proven=is_proven,
            is_counted=higher is not None,
        )


def _effect(table: Table, sums: _Sums, best: Dag, graph: Dag | None, query: Query, iss: float) -> EffectSummary:
    """Return an effect given the known cells: in a network the mean over completions, weighted by its score there."""
    members = essential_graph(best, sorted(set(table.set_masks.tolist())))
    try:
        members = members.restrict(sums.knowledge.admits if sums.is_restricted else None)
        num_members = members.num_members
    except BudgetSpent:
        num_members = MAX_EFFECTS + 1
    number = len(sums.tables)
    of_class = list(members.members()) if num_members * number <= MAX_EFFECTS else []
    reference = best if graph is None else graph
    others = _other_settings(table, query)
    questions = [(dag, query) for dag in (*of_class, reference)]
    questions += [(reference, query._replace(setting=setting)) for _, setting in others]
    values = np.empty((number, len(questions)))
    every = sums.listed if sums.listed is not None and len(sums.listed) * number <= MAX_EFFECTS else None
    rng = np.random.default_rng(0)
    num_drawn = rng.multinomial(NUM_SAMPLES, sums.weights / sums.weights.sum())
    means: list[float] = []
    for index, frame in enumerate(completed_frames(table)):
        effects = Effects(frame, Fraction(str(iss)))
        values[index] = [float(effects.in_network(dag, one_query, is_exact=False)) for dag, one_query in questions]
        if every is not None:
            dags = [tuple(dag) for dag in every.tolist()]
            means.append(sums.weighted([float(effects.in_network(dag, query, is_exact=False)) for dag in dags], index))
        elif num_drawn[index]:
            dags = DagSum(sums.tables[index]).sample(int(num_drawn[index]), rng)
            means += [float(effects.in_network(dag, query, is_exact=False)) for dag in dags]
    mean = (
        (float(np.mean(means)), float(np.std(means, ddof=1) / NUM_SAMPLES**0.5))
        if every is None
        else (sum(means), None)
    )
    logs = sums.by_completion(np.array([dag for dag, _ in questions], np.int64))
    weights = np.exp(logs - logs.max(axis=0))
    results = ((weights * values).sum(axis=0) / weights.sum(axis=0)).tolist()
    ordered = sorted(results[: len(of_class)])
    base = results[len(of_class)]
    return EffectSummary(
        words_of_query(table, query),
        None if graph is None else base,
        tuple(v for k, v in enumerate(ordered) if not k or v - ordered[k - 1] > TIE) or None,
        num_members if of_class else None,
        mean,
        None,
        tuple((word, base - v) for (word, _), v in zip(others, results[len(of_class) + 1 :], strict=True)) or None,
    )


def _other_settings(table: Table, query: Query) -> list[tuple[str, dict[int, int]]]:
    """Return the other values of X with their words, where a single column is set."""
    if len(query.setting) != 1:
        return []
    ((v, code),) = query.setting.items()
    return [(table.used[v].word(value), {v: value}) for value in range(table.used[v].num_levels) if value != code]


def _count_completions(table: Table, rule: LevelScore) -> int:
    """Return the number of completions; `CalibrantError` for what is not summed or not listed."""
    if not rule.is_bayesian:
        raise CalibrantError(
            f"{table.source} has {plural(table.num_gaps, 'gaps')}, and {rule.name} is no marginal likelihood that can"
            " be summed over them (bde, bds, k2 and bdj are); scores of incomplete families, EM and imputation are not"
            f" offered, since they rest on more: {WAYS_ON}"
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
