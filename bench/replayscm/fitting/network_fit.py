"""Networks of highest score on a table, as a result: text, JSON, exports, page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import exp, isclose
from pathlib import Path
from typing import Any

import msgspec
from markupsafe import Markup

from calibrant.audits.replayscm.fits.networks import MAX_ARCS, MAX_OPTIMUM_COLUMNS, StatementRecord
from calibrant.baselines.structure_learning.classes import always_set
from calibrant.baselines.structure_learning.effects import MAX_RANKED, Query, Ranking
from calibrant.baselines.structure_learning.large import ROUNDING, TIE, Price
from calibrant.baselines.structure_learning.levels import LevelFrame
from calibrant.bench.pages import graphs as pages_graphs
from calibrant.bench.pages.charts import text_at
from calibrant.bench.pages.page import design_page
from calibrant.bench.replayscm.fitting.graph_files import WrittenNetwork, export_network, to_networkx, to_pgmpy
from calibrant.bench.replayscm.fitting.results import Claim, Unclaimed, write_claims
from calibrant.bench.replayscm.fitting.table import Table
from calibrant.bench.report.tidy import Framed
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.knowledge import Knowledge, Statement
from calibrant.dsl.pictures import Picture, PictureEdge
from calibrant.dsl.text import plural

ARCS_SHOWN = 12  # lines of the terminal
MAX_OPTIMA_STATED = 20  # networks of JSON
MAX_ARC_ROWS = 200
MAX_LABELLED = 40  # arcs of a drawing with their probability; more numbers would cover each other

Arcs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Network:
    """A network. arcs: pairs (parent, child) by name; score: sum of its local scores, natural logarithms."""

    arcs: Arcs
    score: float


@dataclass(frozen=True)
class ClassSummary:
    """Class of the first network. left_after: expected members once a column is set again, where there are several."""

    members: int
    directed: Arcs
    undirected: Arcs
    modelstring: str
    left_after: Mapping[str, Fraction | None]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "members": self.members,
            "directed": [*map(list, self.directed)],
            "undirected": [*map(list, self.undirected)],
            "left_after": {v: None if size is None else str(size) for v, size in self.left_after.items()},
        }

    def next_experiment(self) -> tuple[str, Fraction] | None:
        """Return the column whose setting leaves the fewest members, and their expected number."""
        sizes = [(size, v) for v, size in self.left_after.items() if size is not None and size < self.members]
        size, name = min(sizes, key=lambda pair: pair[0], default=(None, ""))
        return None if size is None else (name, size)


@dataclass(frozen=True)
class EffectSummary:
    """An effect. question: in the user's words; in_graph: in the given network; values: over the class of the optimum.

    mean_dags, mean_orders: mean over the posterior, and its standard error if networks were sampled
    contrast: (other value of X, difference to it), in the given network, else in the first
    """

    question: str
    in_graph: Fraction | float | None
    values: tuple[Fraction | float, ...] | None
    members: int | None
    mean_dags: tuple[float, float | None] | None
    mean_orders: tuple[float, float | None] | None
    contrast: tuple[tuple[str, float], ...] | None

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; fractions are texts."""
        entries: dict[str, Any] = {"question": self.question}
        if self.in_graph is not None:
            entries["graph"] = _stated(self.in_graph)
        if self.values:
            entries |= {
                "class_members": self.members,
                "class_values": [_stated(value) for value in self.values],
                "range": [_stated(self.values[0]), _stated(self.values[-1])],
            }
        for key, mean in (("mean_dags", self.mean_dags), ("mean_orders", self.mean_orders)):
            if mean is not None:
                entries[key] = mean[0]
                if mean[1] is not None:
                    entries[f"{key}_standard_error"] = mean[1]
        if self.contrast is not None:
            entries["differences"] = dict(self.contrast)
        return entries

    def lines(self) -> Iterator[str]:
        """Yield the lines of the terminal."""
        if self.in_graph is not None:
            yield f"{self.question} = {_short(self.in_graph)} in your graph"
        if self.values:
            over = f"over the {plural(self.members or 1, 'networks')} of the optimum's class"
            if len(self.values) == 1:
                yield f"{self.question} = {_short(self.values[0])} {over}"
            else:
                least, most = _short(self.values[0]), _short(self.values[-1])
                yield f"{self.question} from {least} to {most} {over}, {len(self.values):,} different values"
        else:
            yield f"{self.question}: not listed over the class, which has too many members"
        means = (("every network alike", self.mean_dags), ("weighted by orders", self.mean_orders))
        for prior, mean in means:
            if mean is not None:
                error = "" if mean[1] is None else f" (standard error {mean[1]:.4f}, 2,000 sampled networks)"
                yield f"  mean over the posterior, {prior}: {mean[0]:.4f}{error}"
        network = "the first network" if self.in_graph is None else "your graph"
        for word, difference in self.contrast or ():
            yield f"  difference to {word}, in {network}: {difference:+.4f}"
        yield "  assumed: no confounder outside the table; nothing is conditioned on after the intervention"


def words_of_query(table: Table, query: Query) -> str:
    """Return an effect in the user's words."""
    words, names = [column.word for column in table.used], table.names
    setting = ", ".join(f"{names[v]}={words[v](code)}" for v, code in sorted(query.setting.items()))
    return f"P({names[query.target]}={words[query.target](query.value)} | do({setting}))"


def _stated(value: Fraction | float) -> str | float:
    return str(value) if isinstance(value, Fraction) else value


def _short(value: Fraction | float) -> str:
    text = f"{float(value):.4f}"
    return f"{value} ({text})" if isinstance(value, Fraction) and len(str(value)) <= 12 else text


@dataclass(frozen=True)
class NetworkFit(Framed):
    """Networks of highest score on a table.

    networks: by falling score, the first is the optimum; num_optimal: as good as it, within 1e-9
    all_counted: `num_optimal` is their number, and not only a lower bound
    arcs: probability of each arc under the prior in use, for Bayesian scores; empty for others
    table: the table as it was read
    num_admitted: DAGs that the knowledge admits; optimal: arcs of the best networks; num_classes: of these
    summary: class of the first network; log_evidence: logarithm of the mean likelihood over all admitted networks
    ranking, effect: of the graph and the effect asked for; price: of the knowledge
    upper_bound: no network scores more; None if the first is an exact optimum; method: how it was found, in words
    rounding: nats, a gap that the rounding of an integer program's whole costs explains
    max_parents: default limit that holds because there are many columns; num_completions: of the gaps, None without
    knowledge: statements that every network keeps
    """

    variables: tuple[str, ...]
    score: str
    networks: tuple[Network, ...]
    num_optimal: int
    all_counted: bool
    arcs: Mapping[tuple[str, str], float]
    table: Table
    frame: LevelFrame | None = field(default=None, repr=False)
    imaginary_rows: float = 1.0
    num_admitted: int | None = None
    optimal: tuple[Arcs, ...] = ()
    num_classes: int | None = None
    summary: ClassSummary | None = None
    log_evidence: float | None = None
    arcs_by_dags: Mapping[tuple[str, str], float] | None = None
    arcs_by_orders: Mapping[tuple[str, str], float] | None = None
    ranking: Ranking | None = None
    graph: Arcs | None = None
    effect: EffectSummary | None = None
    price: Price | None = None
    upper_bound: float | None = None
    method: str | None = None
    rounding: float = ROUNDING
    max_parents: int | None = None
    num_completions: int | None = None
    knowledge: Knowledge = field(default_factory=Knowledge, repr=False)

    def __repr__(self) -> str:
        number = f"{self.num_optimal:,}" if self.all_counted else f"at least {self.num_optimal:,}"
        columns = f"{plural(len(self.variables), 'columns')}, score {self.score}"
        best = self.networks[0]
        return f"<NetworkFit: {columns}, best {best.score:.4f} with {len(best.arcs)} arcs, {number} as good>"

    def __str__(self) -> str:
        """Return the text of the terminal."""
        return "\n".join(self.lines())

    @property
    def fits(self) -> bool:
        """True: some network always has the highest score."""
        return True

    @property
    def refutes_graph(self) -> bool:
        """Whether a graph was given that other networks beat."""
        return self.ranking is not None and self.ranking.gap > TIE

    @property
    def gap(self) -> float:
        """Nats by which a better network could exceed the first; 0 for an exact optimum."""
        return 0.0 if self.upper_bound is None else max(0.0, self.upper_bound - self.networks[0].score)

    @property
    def proof(self) -> str:
        """Return in words how the first network is proven."""
        if self.num_completions is not None:
            summed = f"summed over {plural(self.num_completions, 'completions')} of the gaps"
            if self.upper_bound is None:
                return f"proven highest over all networks, {summed}"
            return f"not proven: at most {self.gap:.4g} nats below the optimum, {summed}; bound: {self.method}"
        if self.upper_bound is None:
            return "proven highest over all networks"
        if self.gap <= self.rounding:
            rounding = f", to {self.gap:.1g} nats" if self.gap > 0 else ""
            return f"proven highest{rounding}: {self.method}"
        return f"not proven: at most {self.gap:.4g} nats below the optimum; {self.method}"

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        entries: dict[str, Any] = {
            "variables": list(self.variables),
            "rows": self.table.num_rows,
            "coding": self.table.coding,
            "notes": list(self.table.notes),
            "score": self.score,
            "networks": self.num_admitted,
            "best_score": self.networks[0].score,
            "best": [{"arcs": [*map(list, network.arcs)], "score": network.score} for network in self.networks],
            "optimal_networks": self.num_optimal if self.all_counted else None,
            "optimal_networks_at_least": self.num_optimal,
            "optimal_classes": self.num_classes,
            "optimal": [[*map(list, arcs)] for arcs in self.optimal[:MAX_OPTIMA_STATED]],
            "class": None if self.summary is None else self.summary.to_dict(),
            "modelstring": None if self.summary is None else self.summary.modelstring,
            "proof": self.proof,
        }
        if self.upper_bound is not None:
            entries |= {"upper_bound": self.upper_bound, "gap": self.gap}
        if self.num_completions is not None:
            entries |= {"gaps": self.table.num_gaps, "completions": self.num_completions}
        if self.log_evidence is not None:
            entries["log_evidence_dags"] = self.log_evidence
        for key, arcs in (("arcs_by_dags", self.arcs_by_dags), ("arcs_by_orders", self.arcs_by_orders)):
            if arcs is not None:
                entries[key] = [[parent, child, probability] for (parent, child), probability in arcs.items()]
        optional = {"graph": self.ranking, "effect": self.effect}
        entries |= {key: value.to_dict() for key, value in optional.items() if value is not None}
        if self.price is not None:
            entries |= {"price": self.price.value, "price_bounds": [self.price.least, self.price.greatest]}
        return entries

    def lines(self, *, verbose: bool = False) -> Iterator[str]:
        """Yield the lines of the terminal; verbose: all notes on columns, all arcs."""
        yield from self.table.reading_lines(every=verbose, networks=True)
        if self.num_completions is not None:
            gaps = plural(self.table.num_gaps, "gaps")
            yield f"{gaps}: summed over {self.num_completions:,} completions; assumed: why a cell is a gap does not"
            yield "  depend on its value"
        always = always_set(self.table.set_masks.tolist())
        for name in (name for v, name in enumerate(self.variables) if always >> v & 1):
            yield f"{name} was set in every row: it is a root here, its own mechanism is not in the data"
        if self.max_parents is not None:
            yield f"at most {self.max_parents} parents a column, since there are more than 18 (--max-parents)"
        if self.ranking is not None:
            yield from self.rank_lines(self.ranking)
        for place, network in enumerate(self.networks, 1):
            arcs = ", ".join(f"{parent} -> {child}" for parent, child in network.arcs) or "no arcs"
            yield f"{place}  {network.score:.4f}  {arcs}"
        yield from self._proof_lines()
        if self.effect is not None:
            yield ""
            yield from self.effect.lines()
        if self.arcs:
            yield ""
            prior = "every network alike" if self.arcs_by_dags is not None else "weighted by their number of orders"
            yield f"probability of arcs, over all networks by their score; a priori {prior}"
            ranked = sorted(self.arcs.items(), key=lambda item: -item[1])
            for (parent, child), probability in ranked if verbose else ranked[:ARCS_SHOWN]:
                yield f"{probability:.3f}  {parent} -> {child}"
            if not verbose and len(ranked) > ARCS_SHOWN:
                yield f"and {len(ranked) - ARCS_SHOWN:,} more (--verbose)"

    def _proof_lines(self) -> Iterator[str]:
        number = f"{self.num_optimal:,}" if self.all_counted else f"at least {self.num_optimal:,}"
        classes = "" if self.num_classes is None else f", in {plural(self.num_classes, 'classes')}"
        yield f"score {self.score}: the first is {self.proof}; networks with that score: {number}{classes}"
        if self.price is not None:
            yield self.price_line(self.price)
        if self.summary is not None and self.summary.members > 1:
            undirected = ", ".join(f"{a} - {b}" for a, b in self.summary.undirected[:ARCS_SHOWN])
            members = plural(self.summary.members, "networks")
            yield f"class of the first: {members} that these data cannot tell apart; either way: {undirected}"
            experiment = self.summary.next_experiment()
            if experiment is not None:
                name, size = experiment
                yield f"next experiment: set {name}; {float(size):.3g} of {self.summary.members:,} expected to be left"

    def price_line(self, price: Price) -> str:
        """Return the price of the knowledge in words, or its bounds where a proof stopped."""
        if price.value is not None:
            nats = f"{price.value:.4f} nats"
        else:
            nats = f"at least {price.least:.4f}, at most {price.greatest:.4f} nats (a proof stopped)"
        limit = "" if self.upper_bound is None else ", among networks with the same limit of parents"
        return f"price of the knowledge: {nats}{limit}"

    def rank_lines(self, ranking: Ranking) -> Iterator[str]:
        """Yield the rank of the given graph, and its first change."""
        yield from (f"your graph violates the knowledge: {line}" for line in ranking.violations)
        admitted = "" if self.num_admitted is None else f" of {self.num_admitted:,}"
        if ranking.violations and ranking.gap < -TIE:
            more = f"{-ranking.gap:.4g} nats more than the best{admitted} that the knowledge admits"
            yield f"Your graph scores {ranking.score:.4f}, {more}"
            return
        if ranking.better_networks == 0 or (ranking.is_gap_exact and ranking.gap <= TIE):
            yield f"Your graph is as good as the best{admitted} (score {ranking.score:.4f})"
            return
        if not ranking.is_counted and ranking.posterior is not None:
            place = f"Your graph scores {ranking.score:.4f}; too many networks to list may score higher, but fewer than"
            place += f" {ranking.num_better_below}"
        elif not ranking.is_counted:
            place = f"Your graph scores {ranking.score:.4f}"
        elif ranking.better_networks is None:
            place = f"more than {MAX_RANKED:,} networks{admitted} score higher than your graph ({ranking.score:.4f})"
        else:
            place = f"Your graph is {_ordinal(ranking.better_networks + 1)}{admitted} (score {ranking.score:.4f})"
        ratio = exp(min(ranking.gap, 50))
        times = (
            f"the best are {ratio:,.{0 if ratio >= 10 else 1}f} times as probable, "
            if self.arcs and ranking.gap < 50
            else ""
        )
        bound = "" if ranking.is_gap_exact else " or more"
        best = f"{times}gap to the best {ranking.gap:.4g} nats{bound}"
        change = ""
        if ranking.gain is not None and ranking.gain > 0:
            kind, parent, child = ranking.changes[0]
            more = f", {len(ranking.changes) - 1} more as good" if len(ranking.changes) > 1 else ""
            change = f"; first change: {kind} {parent} -> {child} ({ranking.gain:+.4g}{more})"
        yield f"{place}; {best}{change}; {plural(ranking.distance, 'changes')} to an optimum"

    def _written(self) -> WrittenNetwork:
        words = tuple(tuple(column.word(code) for code in range(column.num_levels)) for column in self.table.used)
        arcs = self.networks[0].arcs
        return WrittenNetwork(self.variables, words, arcs, self.arcs, self.frame, self.imaginary_rows)

    def to_networkx(self) -> Any:
        """Return the first network as a `networkx.DiGraph`, with the probability of each arc where there is one."""
        return to_networkx(self._written())

    def to_pgmpy(self) -> Any:
        """Return the first network as a pgmpy `DiscreteBayesianNetwork` with tables of posterior means."""
        return to_pgmpy(self._written())

    @property
    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """A row for each arc: its probability, None without a posterior, and whether the best network has it."""
        best = self.networks[0].arcs
        arcs = [*self.arcs] or list(best)
        return {
            "from": [a for a, _ in arcs],
            "to": [b for _, b in arcs],
            "probability": [self.arcs.get(arc) for arc in arcs],
            "in_best": [arc in best for arc in arcs],
        }

    def picture(self) -> Picture:
        """Return the best network, and the table of arcs."""
        arcs = self.networks[0].arcs
        edges = tuple(PictureEdge(*arc, label=f"{self.arcs[arc]:.2f}" if arc in self.arcs else "") for arc in arcs)
        nodes = dict.fromkeys(self.variables, "")
        return replace(super().picture(), nodes=nodes, edges=edges, facts=(self.proof,), caption="Arcs")

    def write_certificates(self, folder: Path) -> Iterator[str]:
        """Write certificates of the optimum and its class; yields a line for what has none, and a last one."""
        yield from write_claims(self.table, _claims(self), folder)

    def write_page(self, name: str, path: Path) -> None:
        """Write a page. name: of the table."""
        write_atomically(path, networks_page(self, name))

    def export(self, path: Path) -> None:
        """Write the first network; the suffix is .dot, .graphml, .bif or .txt (model string)."""
        export_network(self._written(), path)


# --- Certificates --------------------------------------------------------------------------------------------------
def _claims(fitted: NetworkFit) -> Iterator[Claim | Unclaimed]:
    """Yield the claims of networks: the optimum, or the score of the best, and its class."""
    if fitted.num_completions is not None:
        yield Unclaimed("networks", "sums over completions of gaps are not recounted; --gaps drop leaves rows out")
        return
    statements = [_statement(statement) for statement in fitted.knowledge.statements]
    best = fitted.networks[0]
    arcs = [list(arc) for arc in best.arcs]
    scored = {"score": fitted.score, "iss": float(fitted.imaginary_rows), "knowledge": statements, "arcs": arcs}
    scored["best_score"] = best.score
    if len(fitted.variables) <= MAX_OPTIMUM_COLUMNS:
        number = fitted.num_optimal if fitted.all_counted else None
        yield Claim("network-optimum", "", {**scored, "optimal_networks": number})
    else:
        yield Claim("network-score", "", scored)
    if fitted.summary is None:
        yield Unclaimed("class", "its members were not counted")
    elif len(arcs) > MAX_ARCS:
        yield Unclaimed("class", f"{len(arcs)} arcs; classes are recounted up to {MAX_ARCS}")
    else:
        summary = fitted.summary
        data = {"knowledge": statements, "arcs": arcs, "members": summary.members}
        data |= {"directed": [*map(list, summary.directed)], "undirected": [*map(list, summary.undirected)]}
        yield Claim("class-size", "", data)


def _statement(statement: Statement) -> dict[str, Any]:
    content = {name: getattr(statement, name) for name in StatementRecord.__struct_fields__}  # networks take no formula
    return dict(msgspec.to_builtins(msgspec.convert(msgspec.to_builtins(content), StatementRecord)))


# --- Page -------------------------------------------------------------------------------------------------------------
def networks_page(fitted: NetworkFit, name: str) -> str:
    """Return the page. name: of the table."""
    best = fitted.networks[0].arcs
    undirected = set() if fitted.summary is None else {frozenset(edge) for edge in fitted.summary.undirected}
    prior = ", every one alike a priori" if fitted.arcs_by_dags is not None else ", weighted by their numbers of orders"
    ranked = sorted(fitted.arcs.items(), key=lambda item: -item[1])
    experiments: list[tuple[str, str]] = []
    if fitted.summary is not None:
        sizes = [(size, v) for v, size in fitted.summary.left_after.items() if size is not None]
        experiments = [(v, f"{float(size):.3g}") for size, v in sorted(sizes, key=lambda pair: pair[0])]
    content = {
        "title": f"Networks of {name}",
        "crumbs": ["fit", name],
        "reason": _in_words(fitted, best, undirected),
        "facts": list(_facts(fitted)),
        "reading": list(fitted.table.reading_lines(every=True, networks=True)),
        "drawing": Markup(draw_class(fitted.variables, best, undirected, fitted.arcs)),
        "has_open": bool(undirected),
        "prior": prior,
        "effect": [] if fitted.effect is None else [*fitted.effect.lines()],
        "ranking": [] if fitted.ranking is None else [*fitted.rank_lines(fitted.ranking)],
        "compared": [] if fitted.graph is None else _compared(fitted.variables, fitted.graph, best),
        "changes": [] if fitted.graph is None else list(compare_arcs(fitted.graph, best)),
        "experiments": experiments,
        "members": 0 if fitted.summary is None else f"{fitted.summary.members:,}",
        "arcs": [
            (f"{a} → {b}", f"{probability:.3f}", _status((a, b), best, undirected))
            for (a, b), probability in ranked[:MAX_ARC_ROWS]
        ],
        "num_arcs": len(ranked),
    }
    return design_page("networks.html", content)


def _in_words(fitted: NetworkFit, best: Arcs, undirected: set[frozenset[str]]) -> str:
    """Return the best network in a sentence, arcs that have one direction first."""
    if not best:
        return "The best network has no arcs: no column tells anything of another."
    decided = [f"{a} → {b}" for a, b in best if frozenset((a, b)) not in undirected]
    either = [f"{a} - {b}" for a, b in best if frozenset((a, b)) in undirected]
    parts = ["; ".join(decided)] if decided else []
    parts += [f"{'; '.join(either)} (either way)"] if either else []
    return f"Best network: {', and '.join(parts)}."


def _facts(fitted: NetworkFit) -> Iterator[str]:
    yield plural(fitted.table.num_rows, "rows")
    yield f"score {fitted.score}"
    yield f"{fitted.networks[0].score:.4f}"
    yield fitted.proof
    number = f"{fitted.num_optimal:,}" if fitted.all_counted else f"at least {fitted.num_optimal:,}"
    yield f"networks with that score: {number}"
    if fitted.num_classes is not None:
        yield f"classes of these: {fitted.num_classes:,}"
    if fitted.summary is not None:
        yield f"as good on any such data: {fitted.summary.members:,}"
    if fitted.price is not None and not isclose(fitted.price.greatest, 0, abs_tol=1e-9):
        yield fitted.price_line(fitted.price)


def _status(arc: tuple[str, str], best: Arcs, undirected: set[frozenset[str]]) -> str:
    if frozenset(arc) in undirected:
        return "either way"
    return "yes" if arc in best else "reversed" if (arc[1], arc[0]) in best else ""


def compare_arcs(graph: Arcs, best: Arcs) -> Iterator[tuple[str, str]]:
    """Yield the arcs of a graph and of the best network, with what the best network has of them."""
    for a, b in graph:
        yield f"{a} → {b}", "kept" if (a, b) in best else "reversed" if (b, a) in best else "missing"
    for a, b in best:
        if (a, b) not in graph and (b, a) not in graph:
            yield f"{a} → {b}", "added"


def _compared(names: Sequence[str], graph: Arcs, best: Arcs) -> list[tuple[str, Markup]]:
    nodes = {name: pages_graphs.GraphNode(name) for name in names}
    parents = [{v: [a for a, b in arcs if b == v] for v in names} for arcs in (graph, best)]
    graphs = [
        pages_graphs.Graph(of, nodes, f"{heading}: {plural(len(arcs), 'arcs')}")
        for of, heading, arcs in zip(parents, ("your graph", "best network"), (graph, best), strict=True)
    ]
    return list(
        zip(("Your graph", "Best network"), map(Markup, pages_graphs.draw_together(graphs, "compared")), strict=True)
    )


def draw_class(
    names: Sequence[str],
    best: Arcs,
    undirected: set[frozenset[str]],
    probabilities: Mapping[tuple[str, str], float],
) -> str:
    """Return a network in layers; arcs that may point either way are dashed.

    The first and the last arc into a node have their probability beside them, where two numbers do not meet.
    """
    parents = {v: tuple(a for a, b in best if b == v) for v in names}
    ordered: dict[str, tuple[str, ...]] = {}
    while len(ordered) < len(names):
        ordered |= {v: of for v, of in parents.items() if v not in ordered and all(a in ordered for a in of)}
    widths = {v: pages_graphs.node_width(v) for v in names}
    layout = pages_graphs.Layers(ordered, widths, pages_graphs.SPACING)
    edges, labels = [], []
    for child, of in ordered.items():
        by_place = sorted(of, key=lambda parent: layout.place(parent)[0])
        for k, parent in enumerate(by_place):
            tone: pages_graphs.Tone = "open" if frozenset((parent, child)) in undirected else ""
            share = 0.5 + ((k + 0.5) / len(by_place) - 0.5) * 0.7
            probability = probabilities.get((parent, child))
            title = f"{parent} to {child}" + (", or reversed" if tone else "")
            title += "" if probability is None else f": probability {probability:.3f}"
            edges.append(
                pages_graphs.arrow(pages_graphs.curve_path(layout.route(parent, child, share)), tone, "class-", title)
            )
            is_first, is_last = k == 0 and len(by_place) > 1, k == len(by_place) - 1
            if probability is not None and len(best) <= MAX_LABELLED and (is_first or is_last):
                x, y = layout.place(child)
                x += (share - 0.5) * widths[child] + (-7 if is_first else 7)
                labels.append(text_at(f"{probability:.2f}", x, y - 9, "soft halo", "end" if is_first else "start"))
    boxes = [pages_graphs.node_box(pages_graphs.GraphNode(v), *layout.place(v), widths[v]) for v in names]
    marks = [pages_graphs.arrow_heads(("", "open"), "class-"), *edges, *boxes, *labels]
    label = f"best network: {plural(len(best), 'arcs')} between {plural(len(names), 'columns')}"
    return pages_graphs.graph_figure(layout.width, layout.height, label, marks, scale=pages_graphs.LEAST_SCALE)


def _ordinal(number: int) -> str:
    """Return 1st, 2nd, 11th."""
    suffix = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{suffix}"
