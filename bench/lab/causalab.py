"""The command `python -m calibrant.bench.lab.causalab`: rows over the released suites; labels computed again.

Records are the released ones by default, which have one fixed seed: the specification's table was measured on them.

Nothing here asks a solver. Every weighted graph of up to four nodes is listed; which of them are members follows from
the bases that the crystals would have had; what is left after settings follows from playing every sequence of settings
with every member by the reference.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from itertools import product, repeat
from math import log, sqrt
from multiprocessing import get_context
from pathlib import Path
from random import Random
from statistics import mean, stdev
from time import perf_counter
from typing import Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from calibrant.audits.causalab.attribution import attribute_run
from calibrant.audits.causalab.items import generate_labelled
from calibrant.audits.causalab.suites import (
    PrintedRow,
    abstention_finding,
    class_size_finding,
    denominator_findings,
    mean_class_sizes,
    mixture_finding,
    suite_findings,
    unwinnable_chance,
)
from calibrant.audits.claims import Finding
from calibrant.baselines.causalab.rows import ROWS, run
from calibrant.bench.causalab.paper import paper
from calibrant.bench.lab.renamings import RenamedItem, permuted_names, shuffled
from calibrant.bench.pages.terminal_tables import aligned
from calibrant.dsl.causalab.configs import Config, item_of_config, read_configs
from calibrant.dsl.causalab.episode import LabStep
from calibrant.dsl.causalab.generation import BASE, PLANS, SMALL_WEIGHTS
from calibrant.dsl.causalab.item import Family, LabItem, rename_item
from calibrant.dsl.causalab.mechanism import FREQUENCY, HIGHEST, Equation, Mechanism, Reactor, Term, Values
from calibrant.dsl.causalab.records import record_of_item
from calibrant.dsl.causalab.reference import bases_after, values
from calibrant.dsl.causalab.score import imec_by_definition
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.solvers.outcome import BudgetSpent

# --- Results of the methods on the released suites: means over configs, with crystals and noise of several seeds ------
LINEAR = tuple(f"{k}nodes" for k in range(3, 8))
OTHERS = tuple(suite for suite in PLANS if suite not in LINEAR)
SOLVERS = ("exact", "greedy")
QUADRATIC, TO_SIX_DECIMALS = "4nodes_quad_hard", "exact-weights"  # elsewhere that row is `exact`
Records: TypeAlias = Literal["released", "fresh"]


@dataclass(frozen=True)
class MethodResult:
    """One row on one suite.

    episodes: how many; answered: in how many the row had an answer of its own
    by_seed: for each seed the means over the configs, by flat name
    imperfect: episodes with an edge wrong or missing; undecided: in how many of them the readings left several graphs
    """

    episodes: int
    answered: int
    by_seed: Sequence[Mapping[str, float]]
    imperfect: int
    undecided: int

    def mean(self, name: str) -> float:
        return mean(means[name] for means in self.by_seed)

    def error(self, name: str) -> float:
        """Return the standard error of the mean over seeds; 0 for one seed."""
        values = [means[name] for means in self.by_seed]
        return stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0


MethodResults: TypeAlias = dict[tuple[str, str], MethodResult]  # by suite and row


def method_results(
    folder: Path, suites: Iterable[str], rows: Sequence[str], seeds: int, records: Records, jobs: int = 1
) -> MethodResults:
    """Return the results of each row on each suite, over seeds 0, 1, ...; `PoolError` names a missing file."""
    configs = {suite: read_configs(folder / f"{suite}.jsonl") for suite in suites}
    keys = [(suite, row) for suite in configs for row in rows]
    slowest_first = sorted(keys, key=lambda key: (key[1] not in SOLVERS, -PLANS[key[0]].nodes))
    arguments = ([configs[suite] for suite, _ in slowest_first], [row for _, row in slowest_first])
    if jobs == 1:
        results = list(map(_stands, *arguments, repeat(seeds), repeat(records)))
    else:
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as workers:
            results = list(workers.map(_stands, *arguments, repeat(seeds), repeat(records)))
    by_key = dict(zip(slowest_first, results, strict=True))
    return {key: by_key[key] for key in keys}


def _stands(configs: Sequence[Config], row: str, seeds: int, records: Records) -> MethodResult:
    by_seed, answered, imperfect, undecided = [], 0, 0, 0
    for seed in range(seeds):
        flats = []
        for config in configs:
            item = item_of_config(config, seed, records=records)
            played = run(ROWS[row], item)
            answered += played.answered
            flats.append(played.score.flat())
            if row in SOLVERS and played.score.hypothesis.distance.shd:
                imperfect += 1
                undecided += _is_undecided(item, played.steps)
        by_seed.append({name: mean(flat[name] for flat in flats) for name in flats[0]})
    return MethodResult(seeds * len(configs), answered, by_seed, imperfect, undecided)


def _is_undecided(item: LabItem, steps: Sequence[LabStep]) -> bool:
    """Return whether the run's readings left several graphs, of mechanisms with any bases."""
    try:
        return not attribute_run(item, steps).graph.decided
    except BudgetSpent:
        return False


def linear_table(results: MethodResults) -> str:
    """Return a line a row: accuracy in percent / F1 / SHD by suite; where draws decide, with its standard error."""
    suites, rows = _keys(results)
    lines = [[row, *(_triple(results[suite, row]) for suite in suites)] for row in rows]
    return aligned(["Row", *suites], lines)


def solver_table(results: MethodResults) -> str:
    """Return a line for each suite and row with the columns that the first table has no room for."""
    headings = ["Suite", "Row", "Episodes", "Answered", "Accuracy", "Activated", "F1", "SHD", "Root F1"]
    headings += ["Weights 1e-6", "Weights .01", "Settings", "Imperfect", "Undecided"]
    return aligned(headings, [list(_line(results, key)) for key in results])


def reach_table(folder: Path, suites: Iterable[str]) -> str:
    """Return the exact chance, by suite, that a drawn target is beyond the dial, which no prediction activates."""
    lines = []
    for suite in suites:
        chances = [unwinnable_chance(config.mechanism) for config in read_configs(folder / f"{suite}.jsonl")]
        num_graphs = sum(chance > 0 for chance in chances)
        share = float(100 * sum(chances) / len(chances))
        lines.append([suite, f"{share:.2f}", f"{100 - share:.2f}", str(num_graphs), f"{float(max(chances)):.2f}"])
    return aligned(["Suite", "Unwinnable %", "Activated % at most", "Graphs", "Highest chance"], lines)


def _keys(results: MethodResults) -> tuple[list[str], list[str]]:
    return list(dict.fromkeys(suite for suite, _ in results)), list(dict.fromkeys(row for _, row in results))


def _triple(of: MethodResult) -> str:
    error = f"\N{PLUS-MINUS SIGN}{100 * of.error('accuracy'):.1f}" if 0 < of.mean("accuracy") < 1 else ""
    return f"{100 * of.mean('accuracy'):.0f}{error}/{of.mean('all_edge_f1'):.3f}/{of.mean('shd'):.2f}"


def _line(results: MethodResults, key: tuple[str, str]) -> Iterator[str]:
    of = results[key]
    yield from key
    yield from (str(of.episodes), str(of.answered))
    yield f"{100 * of.mean('accuracy'):.1f}"
    yield _with_error(100 * of.mean("activated"), 100 * of.error("activated"), 1)
    yield _with_error(of.mean("all_edge_f1"), of.error("all_edge_f1"), 3)
    names = ("shd", "root_f1", "freq_weight_f1", "freq_weight_display_f1", "settings")
    yield from (f"{of.mean(name):.3f}" for name in names)
    yield from (str(of.imperfect), str(of.undecided))


def _with_error(value: float, error: float, decimals: int) -> str:
    return f"{value:.{decimals}f}" + (f" \N{PLUS-MINUS SIGN}{error:.{decimals}f}" if error else "")


# --- Labels of generated items computed again by brute force, and items drawn again from their seed -------------------
MAX_NODES = 4  # nodes of items whose mechanisms are listed
MAX_EDGES = 7  # edges of graphs whose equivalence class is listed by definition
SETTINGS = (0.0, 100.0, 37.0)  # to which properties are set; at least two of them differ from where a property is
MAX_BASE = 100  # largest base that is drawn for a property


@dataclass(frozen=True)
class Relabelled:
    """The items of one suite, relabelled.

    compared: number of labels that were computed again; wrong: texts on those that differ
    digest: of the native records of all items; the same seed gives the same
    seconds: of drawing, labelling and computing again
    """

    suite: str
    labels: Sequence[Mapping[str, float]]
    compared: Mapping[str, int]
    wrong: tuple[str, ...]
    digest: str
    seconds: float


def relabelled_suite(suite: str, seed: int, count: int) -> Relabelled:
    """Return the labels of drawn items of a suite, compared with those that `recompute_labels` gives for them."""
    start = perf_counter()
    items = list(generate_labelled(PLANS[suite], seed, count))
    compared: dict[str, int] = {}
    wrong = [f"{item.id}: drawn again it is another one" for item in _list_changed(items, suite, seed)]
    for item in items:
        for name, value in recompute_labels(item).items():
            compared[name] = compared.get(name, 0) + 1
            if item.sealed.labels.get(name) != value:
                wrong.append(f"{item.id}: {name} is {item.sealed.labels.get(name)}, computed again {value}")
    digest = hashlib.sha256(b"\n".join(msgspec.json.encode(record_of_item(item)) for item in items)).hexdigest()
    return Relabelled(
        suite, [item.sealed.labels for item in items], compared, tuple(wrong), digest, perf_counter() - start
    )


def _list_changed(items: Sequence[LabItem], suite: str, seed: int) -> Iterator[LabItem]:
    """List items of the first half that differ when only half as many are drawn."""
    for item, again in zip(items, generate_labelled(PLANS[suite], seed, -(-len(items) // 2)), strict=False):
        if item != again:
            yield item


def recompute_labels(item: LabItem) -> dict[str, float]:
    """Recompute the labels of an item that brute force reaches."""
    edges = item.sealed.mechanism.edges
    labels: dict[str, float] = {
        "nodes": len(item.task.nodes),
        "edges": len(edges),
        "mattering": _mattering(item) / len(edges),
        "winnable": float(_opens(item)),
    }
    if len(edges) <= MAX_EDGES:
        labels["imec"] = imec_by_definition(edges)
    if not item.task.allowance and "fewest_settings" in item.sealed.labels:
        labels["fewest_settings"] = 0
    if len(item.task.nodes) > MAX_NODES or item.task.family is not Family.LINEAR or item.task.trace:
        return labels
    labels["members"] = len(_fitting(item, bounded=False))
    members = [_mechanism(item, matrix) for matrix in _fitting(item, bounded=True)]
    labels["members_bounded"] = len(members)
    if not item.task.noise:
        counts = list(_fewest_left(item, members))
        labels["fewest_settings"] = counts.index(counts[-1])
        labels["decidable"] = float(counts[-1] == 1)
    return labels


# --- members ----------------------------------------------------------------------------------------------------------


@cache
def weighted_graphs(nodes: int, *, sink: bool) -> npt.NDArray[np.int64]:
    """Return every acyclic weighted graph in which the last node has a parent: (graphs, nodes, nodes), row = child.

    sink: whether the last node has no child
    """
    pairs = [(child, parent) for child in range(nodes) for parent in range(nodes) if child != parent]
    candidates = [pair for pair in pairs if not (sink and pair[1] == nodes - 1)]
    blocks = []
    for chosen in product((False, True), repeat=len(candidates)):
        edges = [pair for pair, present in zip(candidates, chosen, strict=True) if present]
        if any(child == nodes - 1 for child, _ in edges) and not _cyclic(edges, nodes):
            weights = np.array(list(product(map(int, SMALL_WEIGHTS), repeat=len(edges))), dtype=np.int64)
            graphs = np.zeros((len(weights), nodes, nodes), dtype=np.int64)
            graphs[:, [child for child, _ in edges], [parent for _, parent in edges]] = weights
            blocks.append(graphs)
    return np.concatenate(blocks)


def _cyclic(edges: Sequence[tuple[int, int]], nodes: int) -> bool:
    """Return whether some nodes are left when those without a parent among the rest are taken away again and again."""
    remaining = set(range(nodes))
    while remaining:
        free = {node for node in remaining if not any(child == node and parent in remaining for child, parent in edges)}
        if not free:
            return True
        remaining -= free
    return False


def _fitting(item: LabItem, *, bounded: bool) -> npt.NDArray[np.int64]:
    """Return the graphs whose frequency has one base in all shown crystals; [graphs].

    bounded: only graphs whose bases could have been drawn
    """
    task, nodes = item.task, item.task.nodes
    graphs = weighted_graphs(len(nodes), sink=not task.freq_parent)
    crystals = np.array([[crystal[node] for node in nodes] for crystal in (*task.records, task.baseline)])
    bases = crystals[None] - np.einsum("gcp,rp->grc", graphs, crystals)
    base = bases[:, :1, -1]
    keep = np.all(np.abs(bases[:, :, -1] - base) < 1e-6, axis=1)
    if bounded:
        settings = np.array([task.reactor[node] for node in task.properties])
        frequency = base[:, 0] + graphs[:, -1, :-1] @ settings
        reactor = np.concatenate([np.tile(settings, (len(graphs), 1)), frequency[:, None]], axis=1)
        property_bases = np.concatenate(
            [bases[:, :, :-1], (reactor - np.einsum("gcp,gp->gc", graphs, reactor))[:, None, :-1]], 1
        )
        keep &= np.all(
            (property_bases >= 0) & (property_bases <= MAX_BASE) & (property_bases == np.round(property_bases)),
            axis=(1, 2),
        )
        keep &= (base[:, 0] >= BASE[0]) & (base[:, 0] <= BASE[1]) & (base[:, 0] == np.round(base[:, 0]))
    return np.asarray(graphs[keep])


def _mechanism(item: LabItem, graph: npt.NDArray[np.int64]) -> Mechanism:
    nodes, baseline = item.task.nodes, item.task.baseline
    equations = {}
    for child, row in zip(nodes, graph.tolist(), strict=True):
        terms = tuple(Term(parent, 1, float(weight)) for parent, weight in zip(nodes, row, strict=True) if weight)
        base = baseline[child] - sum(term.weight * baseline[term.parent] for term in terms)
        equations[child] = Equation(terms, base if child == FREQUENCY else None)
    return Mechanism(equations)


# --- settings ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Played:
    """A member with the manipulator crystal as it would be; verdict: its graph and predicted frequency."""

    mechanism: Mechanism
    bases: Values
    verdict: tuple[frozenset[tuple[str, str]], float]

    def after(self, name: str, value: float, item: LabItem) -> _Played:
        return replace(self, bases=bases_after(self.mechanism, self.bases, name, value, item.task.reading))

    @property
    def reading(self) -> Values:
        return values(self.mechanism, self.bases)


def _fewest_left(item: LabItem, members: Sequence[Mechanism]) -> Iterator[int]:
    """Yield the smallest number of verdicts that k settings can leave, for k = 0, 1, ... up to all that may be used."""
    start = [_start(item, member) for member in members]
    layer: list[tuple[_Played, list[_Played]]] = [(_start(item, item.sealed.mechanism), start)]
    best = len({member.verdict for member in start})
    yield best
    for _ in range(min(len(item.task.settable), item.task.allowance)):
        if best > 1:
            layer = [
                _filter_members(item, now, members_left, name, value)
                for now, members_left in layer
                for name, value in product(item.task.settable, SETTINGS)
            ]
            best = min(len({member.verdict for member in members_left}) for _, members_left in layer)
        yield best


def _filter_members(
    item: LabItem, truth: _Played, members: Sequence[_Played], name: str, value: float
) -> tuple[_Played, list[_Played]]:
    """Return the truth after a setting, and the members with the same reading."""
    then = truth.after(name, value, item)
    reading = then.reading
    return then, [
        member for member in (member.after(name, value, item) for member in members) if member.reading == reading
    ]


def _start(item: LabItem, mechanism: Mechanism) -> _Played:
    task = item.task
    bases = {
        node: round(task.baseline[node] - sum(t.weight * task.baseline[t.parent] for t in e.terms), 2)
        for node, e in mechanism.equations.items()
        if node != FREQUENCY
    }
    frequency = mechanism.frequency_base + sum(t.weight * task.reactor[t.parent] for t in mechanism.frequency.terms)
    return _Played(mechanism, bases, (mechanism.edges, frequency))


# --- the others -------------------------------------------------------------------------------------------------------


def _mattering(item: LabItem) -> int:
    """Return the number of edges that matter: those into the frequency, since the reactor shows every property."""
    assert set(item.task.reactor) == set(item.task.properties)
    return sum(child == FREQUENCY for _, child in item.sealed.mechanism.edges)


def _opens(item: LabItem) -> bool:
    """Return whether a whole number near the target, or the end of the dial, opens a fresh reactor."""
    near = (*range(round(item.sealed.target) - 6, round(item.sealed.target) + 7), 0, int(HIGHEST))
    return any(Reactor(item.sealed.target, item.task.tries).dial_frequency(float(dial)).activated for dial in near)


# --- as a table -------------------------------------------------------------------------------------------------------

_COLUMNS = ("edges", "imec", "mattering", "winnable", "fewest_settings", "decidable")


def relabelling_table(suites: Sequence[Relabelled]) -> str:
    """Return a line for each suite: means of its labels, labels computed again, those that differ, seconds."""
    headings = ["Suite", "Items", "Edges", "IMEC", "Mattering", "Winnable", "Fewest", "Decidable", "Members", "Bounded"]
    headings += ["Recomputed", "Fewest again", "Wrong", "Seconds", "Digest"]
    return aligned(headings, [list(_relabelling_line(suite)) for suite in suites])


def _relabelling_line(suite: Relabelled) -> Iterator[str]:
    yield from (suite.suite, str(len(suite.labels)))
    for name in _COLUMNS:
        numbers = [labels[name] for labels in suite.labels if name in labels]
        yield f"{mean(numbers):.3f}" if numbers else "-"
    for name in ("members", "members_bounded"):
        yield f"{np.exp(mean(log(labels[name]) for labels in suite.labels)):.4g}"
    yield from (str(sum(suite.compared.values())), str(suite.compared.get("fewest_settings", 0)), str(len(suite.wrong)))
    yield from (f"{suite.seconds:.1f}", suite.digest[:12])


# --- Findings about the released files and about the paper's printed rows ---------------------------------------------
OBSERVED = {"11": "4nodes", "12": "6nodes"}  # tables whose rows without interventions are compared with abstention
REGIMES = ("9", "10", "11", "12")
CLASS_SIZES = {"imec_3_nodes": "3nodes", "imec_4_nodes": "4nodes"}  # of Table 8
DISTANCES = "7"


def released_findings(folder: Path, seeds: int) -> Iterator[Finding]:
    """Yield findings of every released file, on so many episodes of each config; `PoolError` if one is missing."""
    suites = {suite: read_configs(folder / f"{suite}.jsonl") for suite in PLANS}
    yield from suite_findings(suites, range(seeds))
    for number, suite in OBSERVED.items():
        graphs = [config.mechanism.edges for config in suites[suite]]
        rows = [row for row in printed_rows(number) if "pure observation" in row.where]
        yield from (abstention_finding(row, graphs) for row in rows)
    for column, suite in CLASS_SIZES.items():
        sizes = mean_class_sizes([config.mechanism for config in suites[suite]])
        yield from (class_size_finding(row, column, sizes) for row in printed_rows("8"))
    rows = [row for number in REGIMES for row in printed_rows(number) if "pure intervention" in row.where]
    yield from map(mixture_finding, rows)
    yield from denominator_findings(printed_rows(DISTANCES))


def printed_rows(number: str) -> Sequence[PrintedRow]:
    """Return the rows of one of the paper's tables."""
    table = paper().tables[number]
    width = len(table.labels)
    return [
        PrintedRow(f"Table {number}: {' '.join(row[:width])}", dict(zip(table.columns, row[width:], strict=True)))
        for row in table.rows
    ]


MAX_WRONG_LABELS = 20  # labels that differ and are told
TRIPLES = "accuracy % / F1 / SHD"
LINEAR_OTHERS = ("4nodes_freqparent", "6nodes_freqparent", "6nodes_golden")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the part that the arguments name, and return its exit code."""
    options = _arguments().parse_args(arguments)
    return {"rows": _rows, "labels": _labels, "findings": _findings}[options.what](options)


def _rows(options: argparse.Namespace) -> int:
    """Print the tables of methods on all suites. Return 0, or 2 if a file cannot be read."""
    try:
        rows = tuple(row for row in ROWS if row != TO_SIX_DECIMALS)
        linear = method_results(options.folder, LINEAR, rows, options.seeds, options.records, options.jobs)
        other_suites = method_results(options.folder, OTHERS, ("exact",), options.seeds, options.records, options.jobs)
        other_suites |= method_results(options.folder, (QUADRATIC,), (TO_SIX_DECIMALS,), options.seeds, options.records)
        reach = reach_table(options.folder, (*LINEAR, *LINEAR_OTHERS))
    except CalibrantError as error:
        print(f"bench.lab.causalab: {error}", file=sys.stderr)
        return 2
    solved = {key: of for key, of in linear.items() if key[1] in SOLVERS}
    about = f"Means over {options.seeds} drawn episodes of each config, {options.records} records;"
    print(f"{about} \N{PLUS-MINUS SIGN}: standard error over seeds", f"Linear suites: {TRIPLES}", sep="\n")
    print("", linear_table(linear), "", "Solvers on all suites", "", solver_table({**solved, **other_suites}), sep="\n")
    print("", "Targets beyond the dial, from the exact distribution of the drawn crystal", "", reach, sep="\n")
    return 0


def _findings(options: argparse.Namespace) -> int:
    """Print the findings on the released files. Return 0, or 2 if a file cannot be read."""
    try:
        for finding in released_findings(options.folder, options.seeds):
            print(f"{finding.kind}, {finding.verdict}: {finding.where}: {finding.claim}")
    except CalibrantError as error:
        print(f"bench.lab.causalab: {error}", file=sys.stderr)
        return 2
    return 0


def _labels(options: argparse.Namespace) -> int:
    """Print the table of recomputed labels, and differences on standard error. Return 0, or 1 if a label differs."""
    tasks = (options.suites, repeat(options.seed), repeat(options.count))
    if options.jobs == 1:
        reports = list(map(relabelled_suite, *tasks))
    else:
        with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as workers:
            reports = list(workers.map(relabelled_suite, *tasks))
    print(relabelling_table(reports))
    wrong = [text for report in reports for text in report.wrong]
    print(*wrong[:MAX_WRONG_LABELS], sep="\n", end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m calibrant.bench.lab.causalab", description="Rows and labels.")
    commands = parser.add_subparsers(dest="what", required=True)
    rows = commands.add_parser("rows", help="the calibration rows over the released suites")
    rows.add_argument("folder", type=Path, metavar="DIR", help="where the released files are, such as 4nodes.jsonl")
    rows.add_argument("--seeds", type=_positive, default=10, help="drawn episodes of each config [default: 10]")
    rows.add_argument("--records", choices=("released", "fresh"), default="released", help="which [default: released]")
    rows.add_argument("--jobs", type=_positive, default=2, help="processes [default: 2]")
    findings = commands.add_parser("findings", help="what can be proved about the released suites and the printed rows")
    findings.add_argument("folder", type=Path, metavar="DIR", help="as for rows")
    findings.add_argument("--seeds", type=_positive, default=2, help="drawn episodes of each config [default: 2]")
    labels = commands.add_parser("labels", help="labels of generated items beside brute force")
    labels.add_argument("--count", type=_positive, default=1000, help="items of each suite [default: 1000]")
    labels.add_argument("--seed", type=int, default=0)
    labels.add_argument("--suites", nargs="+", choices=list(PLANS), default=list(PLANS), metavar="NAME")
    labels.add_argument("--jobs", type=_positive, default=1)
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of 1 or more was expected, found {short_repr(text)}")
    return int(text)


# --- Laboratories with other names of properties, and records in another order ----------------------------------------


def rename(item: LabItem, random: Random) -> RenamedItem:
    """Return a laboratory with other names of properties, and records in another order."""
    names = permuted_names(item.task.properties, random)
    renamed = rename_item(item, names, shuffled(range(len(item.task.records)), random))
    coefficients = {f"{c}_{old}": f"{c}_{new}" for c in ("c", "c2") for old, new in names.items()}
    return RenamedItem(renamed, {**names, **coefficients})


if __name__ == "__main__":
    sys.exit(main())
