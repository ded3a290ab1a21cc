"""Networks of highest score on a table: optimum, class, arcs, rank of a graph, effects; exact or with a bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from math import comb, fsum, log
from pathlib import Path
from typing import Any, Literal, Unpack, get_args

import numpy as np

from calibrant.audits.replayscm.fits.networks import MAX_IMAGINARY_ROWS
from calibrant.baselines.structure_learning import classes as structure_learning_classes
from calibrant.baselines.structure_learning.constraints import Dag, Mask
from calibrant.baselines.structure_learning.effects import Effects, Ranking, count_classes, list_higher, rank_dag
from calibrant.baselines.structure_learning.large import Price, best_large_network
from calibrant.baselines.structure_learning.levels import (
    MAX_DENSE_VARIABLES,
    MAX_LAYERED_VARIABLES,
    DagSum,
    LevelFrame,
    LevelScore,
    LevelScores,
    ScoredDag,
    ScoreOptimum,
    draw_by_orders,
    family_score,
    frame_of_codes,
)
from calibrant.bench.core.capabilities import Steps
from calibrant.bench.replayscm.fitting import network_fit
from calibrant.bench.replayscm.fitting.gap_networks import learn_with_gaps, refuse_unsummed
from calibrant.bench.replayscm.fitting.graph_files import read_effect, read_graph
from calibrant.bench.replayscm.fitting.reading import Reading, read_with, reading_options
from calibrant.bench.replayscm.fitting.table import Gaps, Table, handle_gaps
from calibrant.dsl.errors import CalibrantError, readable_repr
from calibrant.dsl.knowledge import CheckedKnowledge, Knowledge, read_knowledge, state_knowledge
from calibrant.solvers.acyclic.count import Weights, total
from calibrant.solvers.outcome import BudgetSpent

SCORES = ("bde", "bds", "bdj", "k2", "bic", "aic")
BAYESIAN = ("bde", "bds", "bdj", "k2")  # marginal likelihoods, of which posteriors are made
Prior = Literal["dags", "orders"]
MAX_NETWORKS = 1_000
MAX_LISTED_OPTIMA = 10_000
DEFAULT_LARGE_PARENTS = 3  # parents of a column where there are more than 18 columns
MAX_LISTED_COLUMNS = 5  # 29,281 networks
NUM_SAMPLES = 2_000  # samples of networks, for the mean effect
MAX_COUNTED_COLUMNS = 9  # columns of the admitted networks under knowledge: 3**9 terms of large integers


@dataclass(frozen=True)
class NetworkOptions:
    """Question about a table.

    k: number of best networks; knowledge: as it was stated; graph, effect: texts or objects, None for none
    prior: of the posterior, None for the default by the number of columns
    seconds: on the clock, of the integer program, None for counted steps; is_search: a search with a bound is enough
    """

    score: str = "bde"
    iss: float = 1.0
    k: int = 1
    knowledge: Knowledge = field(default_factory=Knowledge)
    graph: Any = None
    effect: Any = None
    prior: Prior | None = None
    seconds: float | None = None
    is_search: bool = False

    def check(self) -> None:
        """Refuse values that are not allowed."""
        if self.score not in SCORES:
            raise CalibrantError(f"unknown score {readable_repr(self.score)}; known: {', '.join(SCORES)}")
        if not _is_number(self.iss) or not 0 < self.iss < float("inf"):
            raise CalibrantError(f"iss is {readable_repr(self.iss)}; a number above 0 is allowed")
        if self.iss > MAX_IMAGINARY_ROWS:
            reason = f"at most {MAX_IMAGINARY_ROWS:,} are allowed, with more a score is lost in rounding"
            raise CalibrantError(f"iss is {readable_repr(self.iss)}; {reason}")
        if not _is_number(self.k) or self.k != int(self.k) or not 1 <= self.k <= MAX_NETWORKS:
            raise CalibrantError(f"k is {readable_repr(self.k)}; 1 to {MAX_NETWORKS:,} networks are listed")
        if self.prior is not None and self.prior not in get_args(Prior):
            raise CalibrantError(f"prior is {readable_repr(self.prior)}; allowed: {', '.join(get_args(Prior))}")
        if self.seconds is not None and (not _is_number(self.seconds) or not self.seconds > 0):
            raise CalibrantError(f"seconds is {readable_repr(self.seconds)}; a number above 0 is allowed")

    @property
    def unsummed(self) -> Mapping[str, str]:
        """Options chosen that a sum over completions of gaps leaves without effect -> the reason."""
        large = "is for more than 18 columns, and networks are summed over gaps of at most 10"
        chosen = {
            "prior": (self.prior == "orders", "of orders is not computed over completions of gaps"),
            "seconds": (self.seconds is not None, large),
            "search": (self.is_search, large),
        }
        return {name: reason for name, (is_chosen, reason) in chosen.items() if is_chosen}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def learn_networks(
    data: Any,
    *,
    score: str = "bde",
    iss: float = 1.0,
    k: int = 1,
    require: str | Sequence[Any] = (),
    forbid: str | Sequence[Any] = (),
    tiers: str | Sequence[Sequence[str]] = (),
    order: str | Sequence[str] = (),
    roots: Sequence[str] = (),
    max_parents: int | None = None,
    max_parents_of: Mapping[str, int] | None = None,
    knowledge: str | Path | Knowledge | None = None,
    graph: Any = None,
    effect: Any = None,
    prior: Prior | None = None,
    seconds: float | None = None,
    search: bool = False,
    gaps: Gaps = "complete",
    **reading: Unpack[Reading],
) -> network_fit.NetworkFit:
    """Learn networks of columns by a score, exactly: for noisy columns, of which `fit` finds no functions.

    data, gaps, reading: as `fit` takes them; rows in which a column was set do not count for its own parents
    score: bde, bds, bdj, k2, bic or aic; iss: equivalent sample size of bde and bds
    k: number of best networks
    require, forbid, tiers, order, roots: knowledge, as texts or objects
    max_parents, max_parents_of: largest numbers of parents, of every column and of single ones
    knowledge: further lines such as `require A -> B`, as a text, or a file (`Path`)
    graph: a network to rank: a file, a text, pairs, or a graph of networkx or pgmpy
    effect: `Y=yes | do(X=no)`, or {"of": {"Y": "yes"}, "do": {"X": "no"}}
    prior: "dags" (every network alike; default to 12 columns) or "orders" (weighted by topological orders)
    seconds: on the clock, beyond 18 columns; None stops after as many steps on every machine
    search: a search over orders with a bound instead of a proof there
    """
    stated = state_knowledge(
        require=require,
        forbid=forbid,
        tiers=tiers,
        order=order,
        roots=roots,
        max_parents=max_parents,
        max_parents_of=max_parents_of,
    )
    if knowledge is not None:
        stated += read_knowledge(knowledge, "knowledge")
    options = NetworkOptions(score, iss, k, stated, graph, effect, prior, seconds, bool(search))
    return learn_in_steps(data, options, gaps, reading, lambda step, done, total: None, lambda line: None)


def rank_graph(data: Any, graph: Any, **options: Any) -> Ranking:
    """Rank a network of one's own among all: how many score higher, and which arc to change first.

    data, options: as `learn_networks` takes them; graph: as there
    """
    if graph is None:
        raise CalibrantError("no graph is given; give a file, a text 'A -> B', pairs, or a graph of networkx or pgmpy")
    ranking = learn_networks(data, graph=graph, **options).ranking
    assert ranking is not None  # a graph was given
    return ranking


def learn_in_steps(
    data: Any,
    options: NetworkOptions,
    gaps: Gaps,
    reading: Mapping[str, Any],
    listen: Steps,
    report: Callable[[str], None],
) -> network_fit.NetworkFit:
    """Learn networks as `learn_networks` does.

    listen: called with the share of the scores that are computed; report: with the state of an integer program
    """
    options.check()
    table = handle_gaps(read_with(data, reading_options(reading), "networks"), gaps)
    if not table.names:
        raise CalibrantError(f"{table.source} has no column with two to 64 values; networks need at least one")
    if table.num_gaps:
        refuse_unsummed(table, options.unsummed)
        knowledge = checked_knowledge(table, options)
        table, dag = _read_dag(table, options.graph)
        query = None if options.effect is None else read_effect(options.effect, table)
        free = checked_knowledge(table, replace(options, knowledge=Knowledge())) if options.knowledge else None
        return learn_with_gaps(table, options.score, options.iss, knowledge, options.k, dag, query, listen, free=free)
    return replace(_Learning(table, options, listen, report).fit(), knowledge=options.knowledge)


def checked_knowledge(table: Table, options: NetworkOptions) -> CheckedKnowledge:
    """Return the knowledge on the columns of a table; beyond 18 columns with a limit of parents.

    A column that is set in every row has no mechanism in the data: it is a root.
    """
    num_vars = len(table.names)
    options.knowledge.refuse_scm_words("is about mechanisms of SCMs (--assume); networks with a score have no formulas")
    checked = options.knowledge.check(table.names, table.left_out)
    has_limit = any(s.word == "max-parents" for s in options.knowledge.statements)
    limits = checked.limits
    if num_vars > MAX_DENSE_VARIABLES and not has_limit:
        least = [max(mask.bit_count(), DEFAULT_LARGE_PARENTS) for mask in checked.required]
        limits = tuple(min(limit, at_least) for limit, at_least in zip(checked.limits, least, strict=True))
    always = structure_learning_classes.always_set(sorted(set(table.set_masks.tolist())))
    for v in range(num_vars):
        if always >> v & 1 and checked.required[v]:
            raise CalibrantError(
                f"{table.names[v]} was set in every row, so its parents are not in the data; take the required arcs"
                " into it away"
            )
    allowed = tuple(0 if always >> v & 1 else mask for v, mask in enumerate(checked.allowed))
    return replace(checked, limits=limits, allowed=allowed)


def level_frame(table: Table) -> LevelFrame:
    """Return the rows of a table without gaps."""
    levels = [column.num_levels for column in table.used]
    return frame_of_codes(
        table.names, levels, np.ascontiguousarray(table.codes.T, np.int32), table.set_masks, table.counts
    )


def _read_dag(table: Table, graph: Any) -> tuple[Table, Dag | None]:
    """Return the table with remarks on how the graph was read, and the graph."""
    if graph is None:
        return table, None
    arcs, remarks = read_graph(graph, table)
    return replace(table, remarks=(*table.remarks, *remarks)), structure_learning_classes.dag_of_arcs(table.names, arcs)


class _Learning:
    """One table, and all that is asked of it."""

    def __init__(self, table: Table, options: NetworkOptions, listen: Steps, report: Callable[[str], None]) -> None:
        self.options = options
        self.listen = listen
        self.report = report
        self.names = table.names
        self.frame = level_frame(table)
        self.score = LevelScore(options.score, float(options.iss))
        self.knowledge = checked_knowledge(table, options)
        self.is_restricted = bool(options.knowledge)
        self.is_dense = len(self.names) <= MAX_DENSE_VARIABLES
        # read before anything is scored: a fault of the graph or the effect is reported at once
        self.table, self.graph = _read_dag(table, options.graph)
        self.query = None if options.effect is None else read_effect(options.effect, table)
        wide = next((column.name for column in table.used if column.num_levels > 2), None)
        if options.score == "bds" and wide is not None:
            where = f"{table.source}, column {readable_repr(wide)}"
            raise CalibrantError(f"{where}: bds is for columns of two values, it has more: --score bde or --drop")

    def local(self, child: int, parents: Mask) -> float:
        """Return one local score, whatever the knowledge."""
        return family_score(self.frame, self.score, child, parents)

    def fit(self) -> network_fit.NetworkFit:
        """Answer everything."""
        return self._fit_dense() if self.is_dense else self._fit_large()

    def _table_of_scores(self, knowledge: CheckedKnowledge) -> np.ndarray[Any, np.dtype[np.float64]]:
        def heard(done: int, total: int) -> None:
            self.listen("scores of parent sets", done, total + 1)

        return LevelScores(self.frame, self.score, knowledge).scored_sets(heard)[1]

    def _fit_dense(self) -> network_fit.NetworkFit:
        scores = self._table_of_scores(self.knowledge)
        optimum = ScoreOptimum.of_table(self.names, scores, self.knowledge.earlier)
        best = [optimum.best()] if self.options.k == 1 else optimum.k_best(self.options.k)  # 1: a tenth of the time
        optimal = optimum.co_optimal(limit=MAX_LISTED_OPTIMA)
        dags = [network.dag for network in optimal.dags] or [best[0].dag]
        classes = count_classes(np.array(dags, np.int64), self.frame.targets) if optimal.is_complete else None
        num_admitted = self._count_admitted(scores)
        by_dags: dict[tuple[str, str], float] | None = None
        by_orders: dict[tuple[str, str], float] | None = None
        evidence: float | None = None
        dag_sum: DagSum | None = None
        is_bayesian = self.options.score in BAYESIAN
        if is_bayesian and len(self.names) <= MAX_LAYERED_VARIABLES and self.options.prior != "orders":
            dag_sum = DagSum(scores)
            by_dags = self._arcs(dag_sum.arcs())
            evidence = None if num_admitted is None else dag_sum.log_sum - log(num_admitted)
        if is_bayesian and self.options.prior != "dags":
            by_orders = self._arcs(optimum.posteriors().arcs().frequency())
        return network_fit.NetworkFit(
            self.names,
            self.options.score,
            tuple(self._network(network) for network in best),
            len(dags),
            optimal.is_complete,
            by_dags if by_dags is not None else by_orders or {},
            self.table,
            frame=self.frame,
            imaginary_rows=self.options.iss,
            num_admitted=num_admitted,
            optimal=tuple(structure_learning_classes.arcs_of_dag(self.names, dag) for dag in dags),
            num_classes=classes,
            summary=self._summary(best[0].dag),
            log_evidence=evidence,
            arcs_by_dags=by_dags,
            arcs_by_orders=by_orders,
            ranking=self._rank(best[0].score, dags, optimum, None if dag_sum is None else dag_sum.log_sum),
            graph=None if self.graph is None else structure_learning_classes.arcs_of_dag(self.names, self.graph),
            effect=self._effect(best[0].dag, scores, dag_sum),
            price=self._price(best[0].score),
            max_parents=self._stated_limit(),
        )

    def _fit_large(self) -> network_fit.NetworkFit:
        free = self._without_knowledge()

        def heard(done: int, total: int) -> None:
            self.listen("scores of parent sets", done, total)

        optimum, price = best_large_network(
            LevelScores(self.frame, self.score, free or self.knowledge),
            None if free is None else self.knowledge,
            is_search=self.options.is_search,
            seconds=self.options.seconds,
            report=self.report,
            listen=heard,
        )
        return network_fit.NetworkFit(
            self.names,
            self.options.score,
            (self._network(ScoredDag(optimum.dag, optimum.score)),),
            optimum.num_networks or 1,
            optimum.num_networks is not None,
            {},
            self.table,
            frame=self.frame,
            imaginary_rows=self.options.iss,
            optimal=(structure_learning_classes.arcs_of_dag(self.names, optimum.dag),),
            num_classes=optimum.num_classes,
            summary=self._summary(optimum.dag),
            ranking=self._rank(optimum.score, [optimum.dag], is_proven=optimum.is_proven),
            graph=None if self.graph is None else structure_learning_classes.arcs_of_dag(self.names, self.graph),
            effect=self._effect(optimum.dag, None, None),
            price=price,
            upper_bound=optimum.upper_bound,
            method=optimum.method,
            rounding=optimum.rounding,
            max_parents=self._stated_limit(),
        )

    def _rank(
        self,
        best: float,
        optimal: Sequence[Dag],
        optimum: ScoreOptimum | None = None,
        log_sum: float | None = None,
        *,
        is_proven: bool = True,
    ) -> Ranking | None:
        """Return the rank of the given graph; None without one. optimum: None beyond 18 columns, nothing is listed."""
        dag = self.graph
        if dag is None:
            return None
        score = fsum(self.local(v, parents) for v, parents in enumerate(dag))

        def gain_of(changed: Dag) -> float:
            return fsum(
                self.local(v, changed[v]) - self.local(v, dag[v]) for v in range(len(dag)) if changed[v] != dag[v]
            )

        return rank_dag(
            dag,
            self.names,
            self.knowledge,
            score,
            best,
            optimal,
            gain_of,
            higher=None if optimum is None else list_higher(optimum, best, score, self.frame.targets),
            log_sum=log_sum,
            is_proven=is_proven,
            is_counted=optimum is not None,
        )

    @cached_property
    def _certified(self) -> Callable[[int, Mask], float]:
        return cache(self.local)  # best networks share parent sets

    def _network(self, scored: ScoredDag) -> network_fit.Network:
        """Return a network to be shown, its score summed again from the definition of its local scores."""
        score = fsum(self._certified(v, parents) for v, parents in enumerate(scored.dag))
        if abs(score - scored.score) > 1e-6 + 1e-9 * abs(score):  # sums of up to 10^6 logarithms
            raise AssertionError(f"a network failed its certificate: its score is {score}, not {scored.score}")
        return network_fit.Network(structure_learning_classes.arcs_of_dag(self.names, scored.dag), scored.score)

    def _arcs(self, frequency: Any) -> dict[tuple[str, str], float]:
        return {
            (parent, child): float(frequency[a, b])
            for a, parent in enumerate(self.names)
            for b, child in enumerate(self.names)
            if a != b
        }

    def _stated_limit(self) -> int | None:
        """Return the default limit of parents where it holds."""
        has_limit = any(s.word == "max-parents" for s in self.options.knowledge.statements)
        return None if has_limit or self.is_dense else DEFAULT_LARGE_PARENTS

    def _class_of(self, dag: Dag) -> structure_learning_classes.EssentialGraph | None:
        """Return the class of a network under the knowledge; None if its members are too many to be listed."""
        graph = structure_learning_classes.essential_graph(dag, self.frame.targets)
        try:
            return graph.restrict(self.knowledge.admits if self.is_restricted else None)
        except BudgetSpent:
            return None

    def _summary(self, dag: Dag) -> network_fit.ClassSummary | None:
        graph = self._class_of(dag)
        if graph is None:
            return None
        after: dict[str, Any] = {}
        if graph.num_members > 1:
            after = {v: graph.left_after(i) for i, v in enumerate(self.names)}
        return network_fit.ClassSummary(
            graph.num_members,
            structure_learning_classes.arcs_of_dag(self.names, graph.directed),
            graph.undirected_names(self.names),
            structure_learning_classes.model_string(self.names, dag),
            after,
        )

    def _count_admitted(self, scores: Any) -> int | None:
        """Return the number of admitted networks; None where it would take long."""
        num_vars = len(self.names)
        if not self.is_restricted and not structure_learning_classes.always_set(self.frame.targets):
            return count_dags(num_vars)
        if num_vars > MAX_COUNTED_COLUMNS:
            return None
        sets = {v: {int(mask): 1 for mask in np.flatnonzero(np.isfinite(row))} for v, row in enumerate(scores)}
        return total(Weights(sets, 0))

    def _without_knowledge(self) -> CheckedKnowledge | None:
        """Return what the optimum with knowledge is compared with; None without knowledge.

        Beyond 18 columns the numbers of parents define the class: --max-parents stays, or its default.
        """
        statements = self.options.knowledge.statements
        stated = () if self.is_dense else tuple(s for s in statements if s.word == "max-parents")
        if len(stated) == len(statements):
            return None
        free = checked_knowledge(self.table, replace(self.options, knowledge=Knowledge(stated)))
        return replace(free, limits=tuple(map(max, free.limits, self.knowledge.limits)))

    def _price(self, best: float) -> Price | None:
        """Return the optimum without knowledge less the one with it; None without knowledge."""
        free = self._without_knowledge()
        if free is None:
            return None
        optimum = ScoreOptimum.of_table(self.names, self._table_of_scores(free), free.earlier).best().score
        price = max(0.0, optimum - best)
        return Price(price, price, price)

    def _effect(self, dag: Dag, scores: Any, dag_sum: DagSum | None) -> network_fit.EffectSummary | None:
        if self.query is None:
            return None
        from fractions import Fraction

        effects = Effects(self.frame, Fraction(str(self.options.iss)))
        graph = self._class_of(dag)
        over = None if graph is None else effects.over_class(graph, self.query)
        means: dict[str, tuple[float, float | None]] = {}
        if scores is not None and self.options.score in BAYESIAN:
            means = self._mean_effects(effects, scores, dag_sum)
        contrast = None
        if len(self.query.setting) == 1:
            contrast = self._contrast(effects, self.graph if self.graph is not None else dag)
        return network_fit.EffectSummary(
            network_fit.words_of_query(self.table, self.query),
            None if self.graph is None else effects.in_network(self.graph, self.query),
            None if over is None else over.values,
            None if over is None else over.members,
            means.get("dags"),
            means.get("orders"),
            contrast,
        )

    def _contrast(self, effects: Effects, dag: Dag) -> tuple[tuple[str, float], ...]:
        """Return the differences to the effects of the other values of X."""
        assert self.query is not None
        ((v, code),) = self.query.setting.items()
        base = effects.in_network(dag, self.query)
        return tuple(
            (
                self.table.used[v].word(value),
                float(base - effects.in_network(dag, self.query._replace(setting={v: value}))),
            )
            for value in range(self.frame.levels[v])
            if value != code
        )

    def _mean_effects(
        self, effects: Effects, scores: Any, dag_sum: DagSum | None
    ) -> dict[str, tuple[float, float | None]]:
        """Return the mean effect under each prior that was asked for, with its standard error if it is sampled."""
        assert self.query is not None
        means: dict[str, tuple[float, float | None]] = {}
        num_vars = len(self.names)
        if num_vars <= MAX_LISTED_COLUMNS:
            optimum = ScoreOptimum.of_table(self.names, scores, self.knowledge.earlier)
            networks, _ = optimum.list_within(float("inf"), 30_000, 1 << 40)
            logs = optimum.totals_of(networks)
            weights = np.exp(logs - logs.max())
            dags = [tuple(dag) for dag in networks.tolist()]
            values = np.array([float(effects.in_network(dag, self.query, is_exact=False)) for dag in dags])
            orders = np.array([_count_orders(dag, self.knowledge.earlier) for dag in dags], np.float64)
            if self.options.prior != "orders":
                means["dags"] = float((weights * values).sum() / weights.sum()), None
            if self.options.prior != "dags" and orders.any():
                weights = weights * orders
                means["orders"] = float((weights * values).sum() / weights.sum()), None
            return means
        samples: dict[str, list[Dag]] = {}
        if dag_sum is not None:
            samples["dags"] = dag_sum.sample(NUM_SAMPLES, np.random.default_rng(0))
        if self.options.prior != "dags" and (dag_sum is None or self.options.prior == "orders"):
            rng = np.random.default_rng(0)
            samples["orders"] = draw_by_orders(scores, self.knowledge.earlier, NUM_SAMPLES, rng)
        for prior, dags in samples.items():
            values = np.array([float(effects.in_network(dag, self.query, is_exact=False)) for dag in dags])
            means[prior] = float(values.mean()), float(values.std(ddof=1) / NUM_SAMPLES**0.5)
        return means


def count_dags(num_vars: int) -> int:
    """Return the number of DAGs (R. W. Robinson, 1973)."""
    counts = [1]
    for n in range(1, num_vars + 1):
        counts.append(sum((-1) ** (k + 1) * comb(n, k) * 2 ** (k * (n - k)) * counts[n - k] for k in range(1, n + 1)))
    return counts[num_vars]


def _count_orders(dag: Dag, earlier: Sequence[Mask]) -> int:
    """Return the number of topological orders that also put `earlier` of each column before it."""
    before = [a | b for a, b in zip(dag, earlier, strict=True)]
    counts = [1] + [0] * ((1 << len(dag)) - 1)
    for placed in range(1, 1 << len(dag)):
        counts[placed] = sum(
            counts[placed ^ (1 << v)]
            for v in range(len(dag))
            if placed >> v & 1 and not before[v] & ~(placed ^ (1 << v))
        )
    return counts[-1]
