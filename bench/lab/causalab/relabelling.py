"""Labels of generated items computed again by brute force, and items drawn again from their seed.

Nothing here asks a solver. Every weighted graph of up to four nodes is listed; which of them are members follows from
the bases that the crystals would have had; what is left after settings follows from playing every sequence of settings
with every member by the reference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import log
from statistics import mean
from time import perf_counter

import msgspec
import numpy as np
import numpy.typing as npt

from calibrant.audits.causalab.items import generate_labelled
from calibrant.bench.pages.aligned import aligned
from calibrant.dsl.causalab.generation import BASE, PLANS, SMALL_WEIGHTS
from calibrant.dsl.causalab.item import Family, LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY, HIGHEST, Equation, Mechanism, Reactor, Term, Values
from calibrant.dsl.causalab.records import record_of_item
from calibrant.dsl.causalab.reference import bases_after, values
from calibrant.dsl.causalab.score import imec_by_definition

MAX_NODES = 4  # of items whose mechanisms are listed
MAX_EDGES = 7  # of graphs whose equivalence class is listed by definition
SETTINGS = (0.0, 100.0, 37.0)  # to which properties are set; at least two of them differ from where a property is
MAX_BASE = 100  # of a property's drawn base


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
    """Items of a suite, each label computed again where that can be done."""
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
    """(graphs, nodes, nodes): every acyclic weighted graph, row = child, in which the last node has a parent.

    sink: and no child
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
    """Verdicts that at best are left after no setting, one, and so on to as many as there are properties."""
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
    """Edges into the frequency: every property of the reactor crystal is shown, and none of them moves it further."""
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
    return aligned(headings, [list(_line(suite)) for suite in suites])


def _line(suite: Relabelled) -> Iterator[str]:
    yield from (suite.suite, str(len(suite.labels)))
    for name in _COLUMNS:
        numbers = [labels[name] for labels in suite.labels if name in labels]
        yield f"{mean(numbers):.3f}" if numbers else "-"
    for name in ("members", "members_bounded"):
        yield f"{np.exp(mean(log(labels[name]) for labels in suite.labels)):.4g}"
    yield from (str(sum(suite.compared.values())), str(suite.compared.get("fewest_settings", 0)), str(len(suite.wrong)))
    yield from (f"{suite.seconds:.1f}", suite.digest[:12])
