"""Checks of certificates by definition: trying everything, with the reference alone and without any solver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product
from math import prod
from types import MappingProxyType
from typing import Any, Final

import msgspec

from audits.causalab.certificates import (
    AMBIGUOUS,
    CANNOT_MATTER,
    FREQUENCY_DECIDED,
    GRAPH_DECIDED,
    NOT_A_MEAN,
    UNWINNABLE,
)
from audits.claims import Certificate, Verifier
from dsl.causalab.episode import LabEpisode
from dsl.causalab.item import LabItem
from dsl.causalab.mechanism import FREQUENCY, Edge, Equation, Mechanism, Term
from dsl.causalab.pool import LabRecord, item_of_record
from dsl.causalab.reactor import HIGHEST, Reactor
from dsl.causalab.reference import Reading, bases_after, bases_of, values
from dsl.errors import CalibrantError

WEIGHTS = (0, 1, 2, 3)
APART = 1e-6
MAX_COMBINATIONS = 1_000_000


def _mechanism(record: Mapping[str, Any]) -> Mechanism:
    return Mechanism(
        {n: Equation(tuple(Term(p, int(k), float(w)) for p, k, w in e["terms"]), e["base"]) for n, e in record.items()}
    )


def _item(evidence: Mapping[str, Any]) -> LabItem:
    """The item; reading it recomputes every number that it states."""
    return item_of_record(msgspec.convert({**evidence, "id": "evidence"}, LabRecord))


def _readings(evidence: Mapping[str, Any], settings: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """What was shown, and what these settings read in an episode of the item."""
    item = _item(evidence)
    episode = LabEpisode(item)
    steps = [episode.act({"set": name, "value": value}) for name, value in settings]
    if any(step.refused for step in steps):
        raise ValueError("a setting that is refused")
    return {
        "properties": item.task.properties,
        "freq_parent": item.task.freq_parent,
        "reading": item.task.reading,
        "records": item.task.records,
        "trace": [{"values": t.values, "set": t.property, "value": t.value} for t in item.task.trace],
        "baseline": item.task.baseline,
        "reactor": item.task.reactor,
        "settings": [{**step.action, "values": step.reading} for step in steps],
    }


def unwinnable(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    """Every place that the dial can take within a tick of the target, and both its ends, as first try."""
    item = _item(evidence)
    target, tries = item.sealed.target, item.task.tries
    if target != certificate.data["target"]:
        return f"the target is {target:g}"
    places = {0.0, HIGHEST, *(float(min(max(int(target) + d, 0), HIGHEST)) for d in range(-6, 7)), target}
    opened = [place for place in sorted(places) if Reactor(target, tries).tried(place).activated]
    return f"{opened[0]:g} activates the reactor" if opened else ""


def cannot_matter(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    """The frequency follows from what is shown; edges matter on the way to it through what is not shown."""
    item = _item(evidence)
    mechanism, shown = item.sealed.mechanism, item.task.reactor
    matter: set[Edge] = set()
    unseen = [FREQUENCY]
    while unseen:
        node = unseen.pop()
        for parent in mechanism.equations[node].parents:
            if (parent, node) not in matter:
                matter.add((parent, node))
                unseen += [parent] if parent not in shown else []
    claimed = {(parent, child) for parent, child in certificate.data["edges"]}
    if not claimed <= mechanism.edges:
        return "an edge that is not in the mechanism"
    return "an edge that the frequency depends on" if claimed & matter else ""


def frequency_decided(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    """Every vector of weights that leaves the frequency one base over all that is shown predicts the same."""
    evidence = _readings(evidence, ())
    properties, reactor = evidence["properties"], evidence["reactor"]
    readings = [*evidence["records"], *(t["values"] for t in evidence["trace"]), evidence["baseline"]]
    low, high = certificate.data.get("base", (float("-inf"), float("inf")))
    predicted = set()
    for weights in product(WEIGHTS, repeat=len(properties)):
        bases = [r[FREQUENCY] - sum(w * r[p] for w, p in zip(weights, properties, strict=True)) for r in readings]
        if any(weights) and max(bases) - min(bases) <= APART and low - APART <= bases[0] <= high + APART:
            if any(w and p not in reactor for w, p in zip(weights, properties, strict=True)):
                return "a member has a parent that is not shown"
            found = bases[0] + sum(w * reactor[p] for w, p in zip(weights, properties, strict=True) if w)
            predicted.add(round(found, 2))
    if predicted != {certificate.data["frequency"]}:
        return f"members predict {sorted(predicted)[:3]}"
    return ""


def graph_decided(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    """Every acyclic choice of one explaining vector for each node has the claimed edges."""
    if _item(evidence).task.noise:
        return "a noisy laboratory"
    evidence = _readings(evidence, certificate.data["settings"])
    nodes = [*evidence["properties"], FREQUENCY]
    options = [set(_explaining(evidence, nodes, child)) for child in nodes]
    if prod(map(len, options)) > MAX_COMBINATIONS:
        return f"more than {MAX_COMBINATIONS} choices"
    claimed = {(parent, child) for parent, child in certificate.data["edges"]}
    graphs = set()
    for choice in product(*map(sorted, options)):
        edges = frozenset((p, child) for child, parents in zip(nodes, choice, strict=True) for p in parents)
        if _acyclic(edges, nodes):
            graphs.add(edges)
    return "" if graphs == {frozenset(claimed)} else f"{len(graphs)} graphs are left, not the claimed one alone"


def _explaining(evidence: Mapping[str, Any], nodes: Sequence[str], child: str) -> Iterator[tuple[str, ...]]:
    """The parent sets of the weight vectors that explain a node's changes between its own settings."""
    others = [n for n in nodes if n != child and (n != FREQUENCY or evidence["freq_parent"])]
    changes = [
        {node: after[node] - before[node] for node in nodes}
        for stretch in _stretches(evidence, child)
        for before, after in pairwise(stretch)
    ]
    for weights in product(WEIGHTS, repeat=len(others)):
        if child == FREQUENCY and not any(weights):
            continue
        if all(
            abs(change[child] - sum(w * change[p] for w, p in zip(weights, others, strict=True))) <= APART
            for change in changes
        ):
            yield tuple(sorted(p for w, p in zip(weights, others, strict=True) if w))


def _stretches(evidence: Mapping[str, Any], child: str) -> list[list[Mapping[str, float]]]:
    """Runs of readings over which the base of a node is one number."""
    chains: list[list[tuple[str | None, Mapping[str, float]]]] = [[(None, r)] for r in evidence["records"]]
    if evidence["trace"]:
        first, *later = evidence["trace"]
        chains += [[(None, t["values"])] for t in later if t["set"] is None]
        chains.append([(None, first["values"]), *((t["set"], t["values"]) for t in later if t["set"] is not None)])
    chains.append([(None, evidence["baseline"]), *((s["set"], s["values"]) for s in evidence["settings"])])
    if child == FREQUENCY:
        return [[reading for chain in chains for _, reading in chain]]
    found: list[list[Mapping[str, float]]] = []
    for chain in chains:
        found.append([])
        for done, reading in chain:
            if done == child:
                found.append([])
            found[-1].append(reading)
    return found


def ambiguous(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    """Two different mechanisms of the class give all readings, setting by setting."""
    if _item(evidence).task.noise:
        return "a noisy laboratory"
    evidence = _readings(evidence, certificate.data["settings"])
    first, second = (_mechanism(record) for record in certificate.data["members"])
    if first.edges == second.edges and first.equations == second.equations:
        return "the two mechanisms are one"
    for member in (first, second):
        if why := _no_member(member, evidence):
            return why
    return ""


def _no_member(member: Mechanism, evidence: Mapping[str, Any]) -> str:
    if set(member.equations) != {*evidence["properties"], FREQUENCY}:
        return "a mechanism of other nodes"
    terms = [term for e in member.equations.values() for term in e.terms]
    if any(term.power != 1 or term.weight not in WEIGHTS[1:] for term in terms):
        return "a weight that is not 1, 2 or 3"
    if not evidence["freq_parent"] and any(term.parent == FREQUENCY for term in terms):
        return "the frequency as a parent"
    reading = Reading(evidence["reading"])
    chains: list[tuple[Mapping[str, float], list[Mapping[str, Any]]]] = [(r, []) for r in evidence["records"]]
    trace = evidence["trace"]
    if trace:
        chains.append((trace[0]["values"], [t for t in trace if t["set"] is not None]))
        chains += [(t["values"], []) for t in trace[1:] if t["set"] is None]
    try:
        given = all(_replays(member, *chain, Reading.VALUE) for chain in chains)  # settings of traces give the value
        given &= _replays(member, evidence["baseline"], evidence["settings"], reading)
    except CalibrantError as error:
        return str(error)
    return "" if given else "a reading that it does not give"


def _replays(
    member: Mechanism, start: Mapping[str, float], settings: Sequence[Mapping[str, Any]], reading: Reading
) -> bool:
    bases = bases_of(member, start)
    steps = [(values(member, bases), start)]
    for done in settings:
        bases = bases_after(member, bases, done["set"], done["value"], reading)
        steps.append((values(member, bases), done["values"]))
    return all(abs(found[node] - seen[node]) <= APART for found, seen in steps for node in found)


def not_a_mean(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    """No whole number over the claimed rows is printed so; over the other denominators one is."""
    printed, rows = evidence["printed"], int(evidence["rows"])
    possible = [n for n in range(1, rows + 1) if _prints(printed, n)]
    if rows in possible:
        return f"a sum over {rows} rows is printed so"
    return "" if possible == certificate.data["denominators"] else f"denominators up to {rows}: {possible}"


def _prints(printed: str, rows: int) -> bool:
    places = len(printed.partition(".")[2])
    near = round(float(printed) * rows)
    return any(f"{total / rows:.{places}f}" == printed for total in (near - 1, near, near + 1))


def _acyclic(edges: frozenset[Edge], nodes: Sequence[str]) -> bool:
    left = set(nodes)
    while left:
        free = {node for node in left if not any(p in left and child == node for p, child in edges)}
        if not free:
            return False
        left -= free
    return True


VERIFIERS: Final[Mapping[str, Verifier]] = MappingProxyType(
    {
        UNWINNABLE: unwinnable,
        CANNOT_MATTER: cannot_matter,
        FREQUENCY_DECIDED: frequency_decided,
        GRAPH_DECIDED: graph_decided,
        AMBIGUOUS: ambiguous,
        NOT_A_MEAN: not_a_mean,
    }
)
