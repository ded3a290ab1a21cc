"""Checks of certificates by definition: trying everything, with the reference alone and without any solver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

import msgspec

from calibrant.audits.causalab.certificates import (
    AMBIGUOUS,
    CANNOT_MATTER,
    FREQUENCY_DECIDED,
    GRAPH_DECIDED,
    NOT_A_MEAN,
    UNWINNABLE,
)
from calibrant.audits.causalab.recount import (
    BASE_RANGE,
    PER_UNIT,
    WEIGHTS,
    VisibleData,
    acyclic_graphs,
    every_property_set,
    explaining_parents,
    frequency_equations,
    is_completed,
    nodes_of,
    unlisted_reason,
    visible_data,
)
from calibrant.audits.claims import Certificate, ClaimKind, Verifier, fixed_words
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY, HIGHEST, Edge, Equation, Mechanism, Reactor, Term
from calibrant.dsl.causalab.records import LabRecord, item_of_record
from calibrant.dsl.causalab.reference import Reading, bases_after, bases_of, values
from calibrant.dsl.errors import CalibrantError

MAX_DIFFERENCE = 1e-6
MAX_ROWS = 100_000


def _mechanism(record: Mapping[str, Any]) -> Mechanism:
    return Mechanism(
        {n: Equation(tuple(Term(p, int(k), float(w)) for p, k, w in e["terms"]), e["base"]) for n, e in record.items()}
    )


def _item(evidence: Mapping[str, Any]) -> LabItem:
    """Return the item; reading it recomputes every number that it states."""
    return item_of_record(msgspec.convert({**evidence, "id": "evidence"}, LabRecord))


def _after_settings(item: LabItem, certificate: Certificate) -> VisibleData | str:
    """Return the readings after every property was set once, or why the certificate's settings are others."""
    if why := unlisted_reason(item):
        return why
    steps = every_property_set(item)
    settings = [[step.action["set"], step.action["value"]] for step in steps]
    if certificate.data["settings"] != settings:
        return f"the settings of every property once, as far as they are allowed, are {len(settings)} others"
    return visible_data(item, steps)


def _class_in_words(item: LabItem, bases: str) -> str:
    sink = "" if item.task.freq_parent else f", {FREQUENCY} without children"
    return f"linear mechanisms without noise, weights 1, 2, 3{sink}; bases {bases}"


def unwinnable(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    """Try every dial position within a tick of the target, and both ends of the dial."""
    item = _item(evidence)
    target, tries = item.sealed.target, item.task.tries
    if target != certificate.data["target"]:
        return f"the target is {target:g}"
    places = {0.0, HIGHEST, *(float(min(max(int(target) + d, 0), HIGHEST)) for d in range(-6, 7)), target}
    opened = [place for place in sorted(places) if Reactor(target, tries).dial_frequency(place).activated]
    return f"{opened[0]:g} activates the reactor" if opened else ""


def cannot_matter(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    """Walk from the frequency back through unseen nodes: only the edges on the way can matter."""
    item = _item(evidence)
    mechanism, reactor = item.sealed.mechanism, item.task.reactor
    matter: set[Edge] = set()
    unseen = [FREQUENCY]
    while unseen:
        node = unseen.pop()
        for parent in mechanism.equations[node].parents:
            if (parent, node) not in matter:
                matter.add((parent, node))
                unseen += [parent] if parent not in reactor else []
    edges = [(parent, child) for parent, child in certificate.data["edges"]]
    if not set(edges) <= mechanism.edges:
        return "an edge that is not in the mechanism"
    if set(edges) & matter:
        return "an edge that the frequency depends on"
    idle = mechanism.edges - matter
    return "" if idle and sorted(edges) == sorted(idle) else f"{len(idle)} edges cannot matter, not {len(edges)}"


def frequency_decided(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    """Check that every weight vector with one base of the frequency over all readings predicts the same.

    Where bases are bounded, the base is a whole number within BASE_RANGE; a prediction that no acyclic choice for
    the other nodes goes with is left out.
    """
    item = _item(evidence)
    if why := unlisted_reason(item):
        return why
    bounded = "base" in certificate.data
    if bounded and certificate.data["base"] != list(BASE_RANGE):
        return f"bases of the frequency are drawn from {BASE_RANGE[0]:g} to {BASE_RANGE[1]:g}"
    visible = visible_data(item)
    predicted: dict[int, list[frozenset[str]]] = {}
    for parents, frequency in frequency_equations(visible, bounded=bounded):
        if frequency is None:
            return "a member has a parent that is not shown"
        predicted.setdefault(frequency, []).append(parents)
    if len(predicted) > 1:
        property_sets = {name: explaining_parents(visible, name) for name in item.task.properties}
        predicted = {
            f: choices
            for f, choices in predicted.items()
            if any(is_completed(property_sets, parents) for parents in choices)
        }
    stated = certificate.data["frequency"]
    if len(predicted) == 1 and stated * PER_UNIT == next(iter(predicted)):
        return ""
    return f"members predict {sorted(frequency / PER_UNIT for frequency in predicted)[:3]}"


def _frequency_words(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    low, high = BASE_RANGE
    bases = f"integers from 0 to 100 where they were drawn, {low:g} to {high:g} for the frequency"
    return _class_in_words(_item(evidence), bases if "base" in certificate.data else "any")


def _free_words(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    return _class_in_words(_item(evidence), "any")


def graph_decided(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    """Check that every acyclic choice of one explaining vector for each node has the claimed edges."""
    item = _item(evidence)
    if item.task.noise:
        return "a noisy laboratory"
    visible = _after_settings(item, certificate)
    if isinstance(visible, str):
        return visible
    edges = [(parent, child) for parent, child in certificate.data["edges"]]
    graphs = list(islice(acyclic_graphs({child: explaining_parents(visible, child) for child in nodes_of(visible)}), 2))
    if len(graphs) != 1:
        return "two graphs are left, not the claimed one alone" if graphs else "no graph is left"
    return "" if sorted(edges) == sorted(graphs[0]) else f"the graph that is left has other edges, {len(graphs[0])}"


def ambiguous(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    """Check two different mechanisms of the class that give all readings, after every property was set."""
    item = _item(evidence)
    if item.task.noise:
        return "a noisy laboratory"
    visible = _after_settings(item, certificate)
    if isinstance(visible, str):
        return visible
    first, second = (_mechanism(record) for record in certificate.data["members"])
    if first.all_weights == second.all_weights:  # terms in another order, or a base that differs by rounding
        return "the two mechanisms are one"
    for member in (first, second):
        if why := _no_member(member, visible):
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
        replays = all(_replays(member, *chain, Reading.VALUE) for chain in chains)  # settings of traces give the value
        replays &= _replays(member, evidence["baseline"], evidence["settings"], reading)
    except CalibrantError as error:
        return str(error)
    return "" if replays else "a reading that it does not give"


def _replays(
    member: Mechanism, start: Mapping[str, float], settings: Sequence[Mapping[str, Any]], reading: Reading
) -> bool:
    bases = bases_of(member, start)
    steps = [(values(member, bases), start)]
    for done in settings:
        bases = bases_after(member, bases, done["set"], done["value"], reading)
        steps.append((values(member, bases), done["values"]))
    return all(
        abs(computed[node] - observed[node]) <= MAX_DIFFERENCE for computed, observed in steps for node in computed
    )


def not_a_mean(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    """Check that no whole number over the claimed rows is printed so, and that one is over the denominators."""
    printed, rows = evidence["printed"], int(evidence["rows"])
    if rows > MAX_ROWS:
        return f"{rows} rows; up to {MAX_ROWS} are tried"
    possible = [n for n in range(1, rows + 1) if _prints(printed, n)]
    if rows in possible:
        return f"a sum over {rows} rows is printed so"
    return "" if possible == certificate.data["denominators"] else f"denominators up to {rows}: {possible}"


def _prints(printed: str, rows: int) -> bool:
    places = len(printed.partition(".")[2])
    near = round(float(printed) * rows)
    return any(f"{total / rows:.{places}f}" == printed for total in (near - 1, near, near + 1))


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reactor crystal's frequency."""

    target: float


class Edges(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Edges as (parent, child)."""

    edges: list[tuple[str, str]]


class DecidedFrequency(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The frequency, and the limits of its base where the class has them."""

    frequency: float
    base: tuple[float, float] | msgspec.UnsetType = msgspec.UNSET


class DecidedGraph(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The edges that are left after these settings of (property, value)."""

    edges: list[tuple[str, str]]
    settings: list[tuple[str, float]]


class StatedEquation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A node's base, null for a property, and its terms of (parent, power, weight)."""

    base: float | None
    terms: list[tuple[str, int, float]]


class TwoMembers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two mechanisms, node by node, and the settings of (property, value) after which both are left."""

    members: tuple[dict[str, StatedEquation], dict[str, StatedEquation]]
    settings: list[tuple[str, float]]


class Denominators(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The numbers of rows over which a whole number is printed so."""

    denominators: list[int]


VERIFIERS: Final[Mapping[str, Verifier]] = MappingProxyType(
    {
        UNWINNABLE: ClaimKind(Target, fixed_words("frequencies from 0 to 10,000"), unwinnable),
        CANNOT_MATTER: ClaimKind(Edges, fixed_words("the item's mechanism"), cannot_matter),
        FREQUENCY_DECIDED: ClaimKind(DecidedFrequency, _frequency_words, frequency_decided),
        GRAPH_DECIDED: ClaimKind(DecidedGraph, _free_words, graph_decided),
        AMBIGUOUS: ClaimKind(TwoMembers, _free_words, ambiguous),
        NOT_A_MEAN: ClaimKind(Denominators, fixed_words("means of whole numbers"), not_a_mean),
    }
)
