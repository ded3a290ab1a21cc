"""Findings about released files, and about the paper's printed rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import exp, log
from statistics import fmean
from typing import NamedTuple, TypeAlias

import numpy as np

from calibrant.audits.causalab.attribution import decided_frequency, space_of
from calibrant.audits.causalab.items import after_every_setting, mattering_edges
from calibrant.audits.causalab.verify import NOT_A_MEAN
from calibrant.audits.claims import ClaimStatus, Finding, certify
from calibrant.dsl.causalab.configs import Config, candidates, item_of_config, released_records
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY, HIGHEST, TOLERANCE, Edge, Mechanism, winnable
from calibrant.dsl.causalab.reference import values
from calibrant.dsl.causalab.score import imec_size, into_frequency
from calibrant.dsl.graph_metrics import edge_scores
from calibrant.solvers.acyclic.count import Weights, total
from calibrant.solvers.causalab.evidence import evidence_of
from calibrant.solvers.causalab.space import PER_UNIT, Local, explain_node, reason_not_enumerable
from calibrant.solvers.outcome import BudgetSpent

# --- Findings about released files: shares of flawed episodes, leaks, duplicates, evidence that never suffices --------
MAX_BASE = 100  # of a property; the generator draws whole numbers from 0 to 100
MAX_EFFECTS = 9  # properties with an effect: 101 ** 9 combinations of bases still fit into 64 bits
Suites: TypeAlias = Mapping[str, Sequence[Config]]
Episodes: TypeAlias = Sequence[Sequence[LabItem]]  # by config, then by seed


def suite_findings(suites: Suites, seeds: Sequence[int]) -> Iterator[Finding]:
    """Yield every finding about these files; each config and seed gives one episode."""
    yield from duplicate_findings(suites)
    for suite, configs in suites.items():
        items = [[item_of_config(config, seed) for seed in seeds] for config in configs]
        for audit in (unwinnable_share, idle_share, trivial_share, ambiguous_share, static_share):
            finding = audit(suite, items)
            if finding is not None:
                yield finding
        yield from leak_findings(suite, configs)


def unwinnable_share(suite: str, items: Episodes) -> Finding | None:
    """Return a finding on the share of episodes whose target the dial cannot reach; None if it is 0.

    For linear mechanisms with whole weights it also states the probability over all crystals.
    """
    lost = [sum(not winnable(item.sealed.target, item.task.tries) for item in config_items) for config_items in items]
    episodes = sum(map(len, items))
    if not sum(lost):
        return None
    worst = max(n / len(config_items) for n, config_items in zip(lost, items, strict=True))
    graphs = sum(map(bool, lost))
    data = {"episodes": episodes, "unwinnable": sum(lost), "graphs": graphs, "worst_graph": worst}
    claim = f"{sum(lost) / episodes:.1%} of episodes cannot be won, in {graphs} graphs, up to {worst:.0%} of one"
    try:
        chances = [unwinnable_chance(config_items[0].sealed.mechanism) for config_items in items]
    except ValueError:
        chances = []
    if any(chances):
        data["chance"], data["chance_graphs"] = float(sum(chances) / len(chances)), sum(map(bool, chances))
        claim += f"; over all crystals that can be drawn {data['chance']:.2%}, in {data['chance_graphs']} graphs"
    return Finding("unwinnable", ClaimStatus.PROVED, suite, claim, data)


def unwinnable_chance(mechanism: Mechanism) -> Fraction:
    """Return the probability of a target beyond the dial, for bases drawn as the generator draws them.

    The target is the frequency's base plus a sum of independent whole numbers from 0 to 100, each times its total
    effect, so its distribution is a convolution. `ValueError` unless weights and base are whole and effects are few.
    """
    effects = [effect for effect in effects_on_frequency(mechanism).values() if effect]
    if len(effects) > MAX_EFFECTS or mechanism.frequency_base != int(mechanism.frequency_base):
        raise ValueError(f"{len(effects)} properties and the base {mechanism.frequency_base:g}")
    ways = np.ones(1, dtype=np.int64)
    for effect in effects:
        convolved = np.zeros(len(ways) + MAX_BASE * effect, dtype=np.int64)
        for base in range(MAX_BASE + 1):
            convolved[base * effect : base * effect + len(ways)] += ways
        ways = convolved
    beyond = max(0, int(HIGHEST + TOLERANCE) - int(mechanism.frequency_base))
    return Fraction(int(ways[beyond:].sum()), int(ways.sum()))


def effects_on_frequency(mechanism: Mechanism) -> dict[str, int]:
    """Return the total effect of each property's base on the frequency; `ValueError` unless whole and linear."""
    effects: dict[str, int] = {}

    def effect(node: str) -> int:
        if node == FREQUENCY:
            return 1
        if node not in effects:
            terms = [(child, term) for child, e in mechanism.equations.items() for term in e.terms]
            outgoing = [(child, term) for child, term in terms if term.parent == node]
            if any(term.power != 1 or term.weight != int(term.weight) for _, term in outgoing):
                raise ValueError("an equation that is not linear with whole weights")
            effects[node] = sum(int(term.weight) * effect(child) for child, term in outgoing)
        return effects[node]

    return {node: effect(node) for node in mechanism.properties}


def idle_share(suite: str, items: Episodes) -> Finding | None:
    """Return a finding on the share of edges that cannot matter for the prediction, as a mean over graphs."""
    edges = [config_items[0].sealed.mechanism.edges for config_items in items]
    shares = [1 - len(mattering_edges(config_items[0])) / len(e) for config_items, e in zip(items, edges, strict=True)]
    claim = f"{fmean(shares):.0%} of the edges of a graph cannot matter for the prediction"
    return Finding("vacuous", ClaimStatus.PROVED, suite, claim, {"graphs": len(items), "share": fmean(shares)})


def trivial_share(suite: str, items: Episodes) -> Finding | None:
    """Return a finding on the share of episodes whose frequency the records decide, for any bases.

    None if mechanisms are not enumerated.
    """
    every = [item for config_items in items for item in config_items]
    try:
        decided = [decided_frequency(space_of(item.task)) is not None for item in every]
    except BudgetSpent:
        return None
    claim = f"in {fmean(decided):.1%} of episodes the frequency is decided before any setting"
    data = {"episodes": len(every), "decided": sum(decided)}
    return Finding("trivial", ClaimStatus.PROVED if any(decided) else ClaimStatus.REFUTED, suite, claim, data)


def ambiguous_share(suite: str, items: Episodes) -> Finding | None:
    """Return a finding on the mean number of mechanisms that fit after every property was set.

    None if mechanisms are not enumerated, and if the frequency is no possible parent: then one mechanism fits.
    """
    every = [item for config_items in items for item in config_items]
    if any(reason_not_enumerable(i.task) is not None or not i.task.allowance or not i.task.freq_parent for i in every):
        return None
    counts = [outcome[0].count for item in every if (outcome := after_every_setting(item)) is not None]
    unique = counts.count(1) / len(counts)
    claim = f"{fmean(counts):.2f} mechanisms are left on average after all settings; unique in {unique:.0%}"
    data = {"episodes": len(counts), "mean": fmean(counts), "unique": counts.count(1)}
    return Finding("ambiguous", ClaimStatus.PROVED, suite, claim, data)


def static_share(suite: str, items: Episodes) -> Finding | None:
    """Return a finding on the static records without a setting, which decide no graph; None without static records."""
    traces = [config_items[0].task.trace for config_items in items]
    if not any(traces):
        return None
    without = sum(all(entry.property is None for entry in trace) for trace in traces)
    status = ClaimStatus.PROVED if without else ClaimStatus.REFUTED
    claim = f"{without} of {len(traces)} static records hold no setting, so their graph is never decided"
    return Finding("never suffices", status, suite, claim, {"records": len(traces), "without": without})


def duplicate_findings(suites: Suites) -> Iterator[Finding]:
    """Yield a finding for every two files with equal configs, apart from names."""
    names = list(suites)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            if _contents(suites[first]) == _contents(suites[second]):
                claim = f"the {len(suites[first])} configs are those of {second}, one by one"
                where = f"{first} = {second}"
                yield Finding("duplicate", ClaimStatus.PROVED, where, claim, {"configs": len(suites[first])})


def _contents(configs: Sequence[Config]) -> list[object]:
    return [
        (c.mechanism, c.settable, c.family, c.freq_parent, c.allowance, c.hidden, c.trace, c.presets) for c in configs
    ]


def leak_findings(suite: str, configs: Sequence[Config]) -> Iterator[Finding]:
    """Yield findings on leaks of the graph: by names, by the seed of the records, by the order of keys."""
    num_candidates = [len(candidates(configs, config.mechanism.nodes_with_drawn_base, ())) for config in configs]
    fewest, most_candidates = min(num_candidates), max(num_candidates)
    claim = (
        f"the names of the properties alone leave {fewest} to {most_candidates} of the file's {len(configs)} configs"
    )
    yield Finding(
        "leak",
        ClaimStatus.PROVED,
        f"{suite}: names",
        claim,
        {"least": fewest, "most": most_candidates},
    )
    if any(c.family.value != "linear" or c.trace for c in configs):
        return
    for kind, count_members, words in (
        ("seed", _count_given_seed, "with the records' fixed seed, that is their bases, known"),
        ("key order", _count_given_order, "with the topological order of the released records' keys known"),
    ):
        counts = list(map(count_members, configs))
        mean, decided = exp(fmean(map(log, counts))), counts.count(1)
        remaining = f"{mean:.3g} mechanisms are left on average before any setting"
        claim = f"{words}, {remaining}, a single one for {decided} of {len(counts)} configs"
        data = {"configs": len(counts), "geometric_mean": mean, "decided": decided}
        yield Finding("leak", ClaimStatus.PROVED, f"{suite}: {kind}", claim, data)


def _released_locals(config: Config) -> tuple[LabItem, list[Local]]:
    """Return the item with the released records, and the weight vectors of each node that fit it."""
    item = item_of_config(config, 0, records="released")
    evidence = evidence_of(replace(item.task, noise=False))
    return item, [explain_node(evidence, node, bounded=False) for node in range(len(evidence.nodes))]


def _count_given_seed(config: Config) -> int:
    """Count the members whose bases in the released records are those that the seed draws."""
    item, local_spaces = _released_locals(config)
    bases = released_records(config)
    readings = np.array([[record[node] for node in item.task.nodes] for record in item.task.records])
    consistent = []
    for local_space in local_spaces:
        node = item.task.nodes[local_space.node]
        if node != FREQUENCY:
            seed_bases = np.rint([b[node] * PER_UNIT for b in bases])
            local_space = local_space.filter(np.asarray(np.all(local_space.bases(readings) == seed_bases, axis=1)))
        consistent.append(local_space)
    return _count_members(consistent)


def _count_given_order(config: Config) -> int:
    """Count the members whose edges agree with the order in which the released code writes a record's keys."""
    item, local_spaces = _released_locals(config)
    order = list(values(config.mechanism, released_records(config)[0]))
    before = {node: order[:i] for i, node in enumerate(order)}
    nodes = item.task.nodes
    consistent = []
    for local_space in local_spaces:
        allowed = sum(1 << i for i, node in enumerate(nodes) if node in before[nodes[local_space.node]])
        consistent.append(local_space.filter(np.asarray(local_space.masks & ~allowed == 0)))
    return _count_members(consistent)


def _count_members(local_spaces: Sequence[Local]) -> int:
    """Count the acyclic mechanisms with a weight vector of each local space."""
    options = {
        local_space.node: {
            int(m): int(n) for m, n in zip(*np.unique(local_space.masks, return_counts=True), strict=True)
        }
        for local_space in local_spaces
    }
    return total(Weights(options, 0))


# --- Printed rows of the paper, compared with what can be computed: abstention, mixtures, denominators ----------------
MAX_SPREAD = 0.125  # of the graph scores, for a finding that perfect and empty records are mixed
MIN_ACCURACY_GAP = 0.25  # accuracy minus the largest graph score, for the same finding
ROWS_CLAIMED = 50  # number of rows that the paper states, unless a row states its own


class PrintedRow(NamedTuple):
    """One row of a table; `figures`: printed texts by column name."""

    where: str
    figures: Mapping[str, str]


def abstention_finding(row: PrintedRow, graphs: Sequence[frozenset[Edge]]) -> Finding:
    """Return a finding on whether a printed row has the scores of stating the frequency's edges alone, correctly.

    graphs: the true edges of every item that the row is about
    """
    scores = [edge_scores(edges, into_frequency(edges)) for edges in graphs]
    abstaining = {
        f"all_edge_{name}": f"{sum(getattr(s, name) for s in scores) / len(scores):.3f}"
        for name in ("precision", "recall", "f1")
    }
    printed = {name: row.figures[name] for name in abstaining}
    is_abstention = printed == abstaining
    figures = "/".join(printed.values())
    agreement = "digit for digit" if is_abstention else "not"
    return Finding(
        "abstention",
        ClaimStatus.PROVED if is_abstention else ClaimStatus.REFUTED,
        row.where,
        f"P/R/F1 {figures} are {agreement} those of correct abstention on all other edges",
        {"graphs": len(graphs), **{f"printed_{k}": v for k, v in printed.items()}, **abstaining},
    )


def mean_class_sizes(mechanisms: Sequence[Mechanism]) -> list[float]:
    """Return at index j the mean size of the interventional equivalence class after j properties were set.

    The mean is over mechanisms and all sets of j properties; the mechanisms have equally many properties.
    """
    properties = [mechanism.properties for mechanism in mechanisms]
    return [
        fmean(
            imec_size(mechanism.edges, targets)
            for mechanism, names in zip(mechanisms, properties, strict=True)
            for targets in combinations(names, num_set)
        )
        for num_set in range(len(properties[0]) + 1)
    ]


def class_size_finding(row: PrintedRow, column: str, sizes: Sequence[float]) -> Finding:
    """Return a finding on the numbers of properties set between whose class sizes a size of Table 8 lies.

    The reason stays open; sizes: from `mean_class_sizes`
    """
    printed = float(row.figures[column])
    num_set = max((index for index, size in enumerate(sizes) if size >= printed), default=None)
    size_texts = ", ".join(f"{size:.2f}" for size in sizes)
    between = f"between those of {num_set} and {(num_set or 0) + 1} properties set"
    interval = "above that of none set" if num_set is None else between
    claim = f"class size {row.figures[column]} lies {interval} ({size_texts} with none, one, .. set)"
    return Finding("class size", ClaimStatus.OPEN, f"{row.where}, {column}", claim, {"printed": printed})


def mixture_finding(row: PrintedRow) -> Finding:
    """Return a finding on whether graph scores are so close that a mix of perfect and empty records explains them.

    It is an inference, so it stays open.
    """
    names = ("all_edge_precision", "all_edge_recall", "all_edge_f1", "freq_edge_f1", "freq_weight_f1")
    figures = [float(row.figures[name]) for name in names]
    accuracy = float(row.figures["accuracy_percent"]) / 100
    spread = max(figures) - min(figures)
    alike = spread <= MAX_SPREAD and accuracy - max(figures) > MIN_ACCURACY_GAP
    range_of = f"figures from {min(figures):.3f} to {max(figures):.3f} at {accuracy:.0%} accuracy"
    verdict = "look like perfect and empty records mixed: an inference, no proof" if alike else "show no such mixture"
    claim = f"{range_of} {verdict}"
    data = {"lowest": min(figures), "highest": max(figures), "accuracy": accuracy}
    return Finding("mixture", ClaimStatus.OPEN, row.where, claim, data)


def denominator_findings(rows: Iterable[PrintedRow], column: str = "shd") -> Iterator[Finding]:
    """Yield a finding for each printed mean that no whole number divided by the claimed rows rounds to.

    It lists the denominators that do. The evidence of its certificate is {"printed": text, "rows": number}.
    """
    for row in rows:
        printed, claimed = row.figures[column], int(row.figures.get("rows", ROWS_CLAIMED))
        denominators = [n for n in range(1, claimed + 1) if _sum_over(printed, n) is not None]
        if claimed in denominators:
            continue
        sums = {n: _sum_over(printed, n) for n in denominators}
        best = max(denominators, default=0)
        evidence = {"printed": printed, "rows": claimed}
        certificate = certify(NOT_A_MEAN, "means of whole numbers", evidence, {"denominators": denominators})
        claim = f"{column} {printed} is no mean over {claimed} rows; {sums.get(best)}/{best} is printed so"
        data: dict[str, int | float | str] = {
            "printed": printed,
            "rows": claimed,
            "denominator": best,
            "total": sums.get(best) or 0,
        }
        yield Finding("misprint", ClaimStatus.PROVED, row.where, claim, data, certificate)


def _sum_over(printed: str, rows: int) -> int | None:
    """Return a whole number that, divided by `rows`, rounds to the printed text; None if there is none."""
    num_decimals = len(printed.partition(".")[2])
    near = round(float(printed) * rows)
    fitting = (total for total in (near, near - 1, near + 1) if f"{total / rows:.{num_decimals}f}" == printed)
    return next(fitting, None)
