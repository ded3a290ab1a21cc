"""Claims about laboratories, checked by exhaustion with the reference interpreter, without a solver.

Readings are compared as whole hundredths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise, product
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec

from calibrant.audits.claims import Certificate, ClaimKind, Verifier, checkpoint, fixed_words
from calibrant.dsl.causalab.episode import LabEpisode, LabStep
from calibrant.dsl.causalab.item import Family, LabItem, Weights
from calibrant.dsl.causalab.mechanism import FREQUENCY, HIGHEST, Edge, Equation, Mechanism, Reactor, Term
from calibrant.dsl.causalab.records import LabRecord, item_of_record, record_of_item
from calibrant.dsl.causalab.reference import SettingMeaning, bases_after, bases_of, values
from calibrant.dsl.errors import CalibrantError

# --- Independent recount for certificates about laboratories: readings, settings and parent sets, by exhaustion -------
WEIGHTS: Final = (0, 1, 2, 3)  # of a parent; 0: no parent
PER_UNIT: Final = 100  # readings are multiples of 0.01
MAX_EXACT_READING: Final = 1e10  # beyond it a float does not hold hundredths; such readings are skipped
BASE_RANGE: Final = (15.0, 25.0)  # range of the frequency's base in generated items
SCALE_MIDDLE, SCALE_TOP = 50.0, 100.0  # of the scale of settings
MAX_PROPERTIES: Final = 7  # 4 ** 7 weight vectors for each node
MAX_COMBINATIONS: Final = 1_000_000  # partial parent-set assignments tried for one claim

VisibleData: TypeAlias = Mapping[str, Any]


def visible_data(item: LabItem, steps: Sequence[LabStep] = ()) -> VisibleData:
    """Return the visible data of an item as JSON, with the readings of these steps of an episode."""
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


def every_property_set(item: LabItem) -> list[LabStep]:
    """Return steps that set every property not moved by the trace to the farther end of its scale, until it moves.

    They stop early at the end of the allowance.
    """
    episode, now = LabEpisode(item), item.task.baseline
    moved = set(_moved_in_trace(item))
    for name in item.task.settable:
        attempts = 0
        while name not in moved:
            if episode.left <= 0:
                return list(episode.steps)
            value = (0.0 if now[name] > SCALE_MIDDLE else SCALE_TOP) + attempts
            step = episode.act({"set": name, "value": value})
            if step.reading is None:
                raise ValueError(f"a setting that is refused: {step.refused}")
            moved |= {name} if step.reading[name] != now[name] else set()
            now, attempts = step.reading, attempts + 1
    return list(episode.steps)


def _moved_in_trace(item: LabItem) -> Iterator[str]:
    """Yield the properties that a setting of the static trace moved; settings go on from entry 0."""
    last = item.task.trace[0].values if item.task.trace else {}
    for entry in item.task.trace:
        if entry.property is not None:
            if entry.values[entry.property] != last[entry.property]:
                yield entry.property
            last = entry.values


def unlisted_reason(item: LabItem) -> str:
    """Return why the mechanisms of an item cannot be enumerated, "" if they can."""
    task = item.task
    if task.family is not Family.LINEAR or task.weights is not Weights.SMALL:
        return "only linear mechanisms with weights 1, 2, 3 are tried out"
    if len(task.properties) > MAX_PROPERTIES:
        return f"{len(task.properties)} properties; up to {MAX_PROPERTIES} are tried out"
    return ""


def nodes_of(visible: VisibleData) -> list[str]:
    return [*visible["properties"], FREQUENCY]


def frequency_equations(visible: VisibleData, *, bounded: bool) -> Iterator[tuple[frozenset[str], int | None]]:
    """Yield parents and prediction of every weight vector of the frequency that is consistent with one base.

    The prediction is in hundredths; None if the reactor hides a parent.

    bounded: whether the base is a whole number in BASE_RANGE
    """
    properties, reactor = visible["properties"], visible["reactor"]
    readings = [*visible["records"], *(t["values"] for t in visible["trace"]), visible["baseline"]]
    exact = [row for row in map(_hundredths, readings) if row]
    if not exact:
        raise ValueError("no reading within what floats keep to hundredths")
    low, high = BASE_RANGE
    for weights in product(WEIGHTS, repeat=len(properties)):
        parents = {p: w for w, p in zip(weights, properties, strict=True) if w}
        bases = {r[FREQUENCY] - sum(w * r[p] for p, w in parents.items()) for r in exact}
        if len(bases) != 1:
            continue
        (base,) = bases
        if bounded and (base % PER_UNIT or not low * PER_UNIT <= base <= high * PER_UNIT):
            continue
        is_visible = set(parents) <= set(reactor)
        total = base + sum(w * round(reactor[p] * PER_UNIT) for p, w in parents.items()) if is_visible else None
        yield frozenset(parents), total


def is_completed(options: Mapping[str, set[tuple[str, ...]]], parents: frozenset[str]) -> bool:
    """Return whether some parent-set assignment of the properties is acyclic with `parents` of the frequency.

    options: parent sets of each property
    """
    waiting = {**options, FREQUENCY: {tuple(parents)}}
    placed: set[str] = set()
    while ready := [
        node for node, sets in waiting.items() if any(placed.issuperset(parent_set) for parent_set in sets)
    ]:
        placed.update(ready)
        for node in ready:
            del waiting[node]
    return not waiting


def acyclic_graphs(options: Mapping[str, set[tuple[str, ...]]]) -> Iterator[frozenset[Edge]]:
    """Yield the edges of each acyclic parent-set assignment; ValueError after MAX_COMBINATIONS steps.

    options: parent sets of each node
    """
    nodes = sorted(options, key=lambda node: (len(options[node]), node))
    remaining_steps = MAX_COMBINATIONS
    stack: list[tuple[int, frozenset[Edge]]] = [(0, frozenset())]
    while stack:
        position, edges = stack.pop()
        if position == len(nodes):
            yield edges
            continue
        for parents in sorted(options[nodes[position]]):
            remaining_steps -= 1
            checkpoint("choices of parents", MAX_COMBINATIONS - remaining_steps, MAX_COMBINATIONS)
            if not remaining_steps:
                raise ValueError(f"more than {MAX_COMBINATIONS} choices")
            chosen = edges | {(parent, nodes[position]) for parent in parents}
            if _is_acyclic(chosen, nodes):
                stack.append((position + 1, chosen))


def explaining_parents(visible: VisibleData, child: str) -> set[tuple[str, ...]]:
    """Return the parent sets of the weight vectors that explain a node's changes between interventions on it."""
    nodes = nodes_of(visible)
    candidates = [n for n in nodes if n != child and (n != FREQUENCY or visible["freq_parent"])]
    rows = [_difference(before, after) for run in _stretches(visible, child) for before, after in pairwise(run)]
    changes = [row for row in rows if row]
    rows_with_base = list(_stated_bases(visible, child))
    parent_sets = set()
    for index, weights in enumerate(product(WEIGHTS, repeat=len(candidates))):
        checkpoint(f"weights of {child}", index, len(WEIGHTS) ** len(candidates))
        if child == FREQUENCY and not any(weights):
            continue
        terms = [(w, p) for w, p in zip(weights, candidates, strict=True) if w]
        if all(row[child] == sum(w * row[p] for w, p in terms) for row in changes) and all(
            row[child] - sum(w * row[p] for w, p in terms) == base for row, base in rows_with_base
        ):
            parent_sets.add(tuple(sorted(p for _, p in terms)))
    return parent_sets


def _hundredths(reading: Mapping[str, float]) -> dict[str, int]:
    """Return a reading in hundredths, as integers; empty beyond MAX_EXACT_READING."""
    if max(map(abs, reading.values())) > MAX_EXACT_READING:
        return {}
    return {node: round(value * PER_UNIT) for node, value in reading.items()}


def _difference(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, int]:
    first, second = _hundredths(before), _hundredths(after)
    return {node: second[node] - first[node] for node in first} if first and second else {}


def _stated_bases(visible: VisibleData, child: str) -> Iterator[tuple[dict[str, int], int]]:
    """Yield (reading, base of the node) after each setting of the node, if settings set its base and not its value."""
    if visible["reading"] == SettingMeaning.BASE:
        for done in visible["settings"]:
            if (
                done["set"] == child
                and abs(done["value"]) <= MAX_EXACT_READING
                and (row := _hundredths(done["values"]))
            ):
                yield row, round(round(done["value"], 2) * PER_UNIT)


def _stretches(visible: VisibleData, child: str) -> list[list[Mapping[str, float]]]:
    """Return the runs of readings over which the base of a node is constant: settings of it start a new run."""
    chains: list[list[tuple[str | None, Mapping[str, float]]]] = [[(None, r)] for r in visible["records"]]
    if visible["trace"]:
        first, *later = visible["trace"]
        chains += [[(None, t["values"])] for t in later if t["set"] is None]
        chains.append([(None, first["values"]), *((t["set"], t["values"]) for t in later if t["set"] is not None)])
    chains.append([(None, visible["baseline"]), *((s["set"], s["values"]) for s in visible["settings"])])
    if child == FREQUENCY:
        return [[reading for chain in chains for _, reading in chain]]
    stretches: list[list[Mapping[str, float]]] = []
    for chain in chains:
        stretches.append([])
        for done, reading in chain:
            if done == child:
                stretches.append([])
            stretches[-1].append(reading)
    return stretches


def _is_acyclic(edges: frozenset[Edge], nodes: Sequence[str]) -> bool:
    remaining = set(nodes)
    while remaining:
        free = {node for node in remaining if not any(p in remaining and child == node for p, child in edges)}
        if not free:
            return False
        remaining -= free
    return True


# --- Names of claims about laboratories, and the evidence that their certificates are about ---------------------------
UNWINNABLE = "causalab-unwinnable"
CANNOT_MATTER = "causalab-edges-cannot-matter"
FREQUENCY_DECIDED = "causalab-frequency-decided"
GRAPH_DECIDED = "causalab-graph-decided"
AMBIGUOUS = "causalab-ambiguous"
NOT_A_MEAN = "causalab-not-a-mean"


def item_evidence(item: LabItem) -> dict[str, Any]:
    """Return the item's native record without its id and its labels, which no claim is about."""
    record: dict[str, Any] = msgspec.to_builtins(record_of_item(item))
    record["sealed"].pop("labels", None)
    return {key: value for key, value in record.items() if key != "id"}


def equations_record(mechanism: Mechanism) -> dict[str, Any]:
    """Return a mechanism as JSON: node -> base (the frequency's) and terms."""
    return {
        node: {"base": e.base, "terms": [[term.parent, term.power, term.weight] for term in sorted(e.terms)]}
        for node, e in sorted(mechanism.equations.items())
    }


# --- Checks of certificates by definition: exhaustion with the reference interpreter, without any solver --------------
MAX_DIFFERENCE = 1e-6  # between a computed and an observed value
MAX_ROWS = 100_000  # denominators that are tried for a printed mean


def stated_mechanism(record: Mapping[str, Any]) -> Mechanism:
    """Return a mechanism from its `equations_record`."""
    return Mechanism(
        {n: Equation(tuple(Term(p, int(k), float(w)) for p, k, w in e["terms"]), e["base"]) for n, e in record.items()}
    )


def item_of_evidence(evidence: Mapping[str, Any]) -> LabItem:
    """Return the item; parsing it recomputes every number that the record states."""
    return item_of_record(msgspec.convert({**evidence, "id": "evidence"}, LabRecord))


def _after_settings(item: LabItem, certificate: Certificate) -> VisibleData | str:
    """Return the visible data after every property was set once, or why the certificate's settings are others."""
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
    """Check that no dial position activates the reactor: whole ones near the target, the target, both ends."""
    item = item_of_evidence(evidence)
    target, tries = item.sealed.target, item.task.tries
    if target != certificate.data["target"]:
        return f"the target is {target:g}"
    positions = {0.0, HIGHEST, *(float(min(max(int(target) + d, 0), HIGHEST)) for d in range(-6, 7)), target}
    activating = [
        position for position in sorted(positions) if Reactor(target, tries).dial_frequency(position).activated
    ]
    return f"{activating[0]:g} activates the reactor" if activating else ""


def cannot_matter(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    """Check that the claimed edges are those on no path to the frequency through nodes that the reactor hides."""
    item = item_of_evidence(evidence)
    mechanism, reactor = item.sealed.mechanism, item.task.reactor
    mattering: set[Edge] = set()
    hidden_nodes = [FREQUENCY]
    while hidden_nodes:
        node = hidden_nodes.pop()
        for parent in mechanism.equations[node].parents:
            if (parent, node) not in mattering:
                mattering.add((parent, node))
                hidden_nodes += [parent] if parent not in reactor else []
    edges = [(parent, child) for parent, child in certificate.data["edges"]]
    if not set(edges) <= mechanism.edges:
        return "an edge that is not in the mechanism"
    if set(edges) & mattering:
        return "an edge that the frequency depends on"
    idle = mechanism.edges - mattering
    return "" if idle and sorted(edges) == sorted(idle) else f"{len(idle)} edges cannot mattering, not {len(edges)}"


def frequency_decided(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    """Check that all weight vectors consistent with one base of the frequency predict the claimed frequency.

    If the certificate bounds the base, it is a whole number in BASE_RANGE. Predictions without an acyclic parent-set
    assignment of the other nodes do not count.
    """
    item = item_of_evidence(evidence)
    if why := unlisted_reason(item):
        return why
    bounded = "base" in certificate.data
    if bounded and certificate.data["base"] != list(BASE_RANGE):
        return f"bases of the frequency are drawn from {BASE_RANGE[0]:g} to {BASE_RANGE[1]:g}"
    visible = visible_data(item)
    predicted: dict[int, list[frozenset[str]]] = {}  # frequency -> parent sets that predict it
    for parents, frequency in frequency_equations(visible, bounded=bounded):
        if frequency is None:
            return "a member has a parent that is not shown"
        predicted.setdefault(frequency, []).append(parents)
    if len(predicted) > 1:
        property_sets = {name: explaining_parents(visible, name) for name in item.task.properties}
        predicted = {
            f: parent_sets
            for f, parent_sets in predicted.items()
            if any(is_completed(property_sets, parents) for parents in parent_sets)
        }
    stated = certificate.data["frequency"]
    if len(predicted) == 1 and stated * PER_UNIT == next(iter(predicted)):
        return ""
    return f"members predict {sorted(frequency / PER_UNIT for frequency in predicted)[:3]}"


def _frequency_words(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    low, high = BASE_RANGE
    bases = f"integers from 0 to 100 where they were drawn, {low:g} to {high:g} for the frequency"
    return _class_in_words(item_of_evidence(evidence), bases if "base" in certificate.data else "any")


def _unbounded_words(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    return _class_in_words(item_of_evidence(evidence), "any")


def graph_decided(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    """Check that the only acyclic assignment of explaining parent sets has the claimed edges."""
    item = item_of_evidence(evidence)
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
    """Check that two different mechanisms of the class give all readings, after every property was set."""
    item = item_of_evidence(evidence)
    if item.task.noise:
        return "a noisy laboratory"
    visible = _after_settings(item, certificate)
    if isinstance(visible, str):
        return visible
    first, second = (stated_mechanism(record) for record in certificate.data["members"])
    if first.all_weights == second.all_weights:  # terms in another order, or a base that differs by rounding
        return "the two mechanisms are one"
    for member in (first, second):
        if why := nonmember_reason(member, visible):
            return why
    return ""


def nonmember_reason(member: Mechanism, evidence: VisibleData) -> str:
    """Return why a mechanism is outside the class or gives other readings, "" if it is a member."""
    if set(member.equations) != {*evidence["properties"], FREQUENCY}:
        return "a mechanism of other nodes"
    terms = [term for e in member.equations.values() for term in e.terms]
    if any(term.power != 1 or term.weight not in WEIGHTS[1:] for term in terms):
        return "a weight that is not 1, 2 or 3"
    if not evidence["freq_parent"] and any(term.parent == FREQUENCY for term in terms):
        return "the frequency as a parent"
    reading = SettingMeaning(evidence["reading"])
    chains: list[tuple[Mapping[str, float], list[Mapping[str, Any]]]] = [(r, []) for r in evidence["records"]]
    trace = evidence["trace"]
    if trace:
        chains.append((trace[0]["values"], [t for t in trace if t["set"] is not None]))
        chains += [(t["values"], []) for t in trace[1:] if t["set"] is None]
    try:
        # a setting of a trace gives the property's value, whatever the item's reading
        replays = all(_replays(member, *chain, SettingMeaning.VALUE) for chain in chains)
        replays &= _replays(member, evidence["baseline"], evidence["settings"], reading)
    except CalibrantError as error:
        return str(error)
    return "" if replays else "a reading that it does not give"


def _replays(
    member: Mechanism, start: Mapping[str, float], settings: Sequence[Mapping[str, Any]], reading: SettingMeaning
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
    """Check that no whole number divided by `rows` rounds to the printed mean, and one does for each denominator."""
    printed, rows = evidence["printed"], int(evidence["rows"])
    if rows > MAX_ROWS:
        return f"{rows} rows; up to {MAX_ROWS} are tried"
    denominators = [n for n in range(1, rows + 1) if _prints(printed, n)]
    if rows in denominators:
        return f"a sum over {rows} rows is printed so"
    return "" if denominators == certificate.data["denominators"] else f"denominators up to {rows}: {denominators}"


def _prints(printed: str, rows: int) -> bool:
    """Return whether some whole number divided by `rows` rounds to the printed text."""
    num_decimals = len(printed.partition(".")[2])
    near = round(float(printed) * rows)
    return any(f"{total / rows:.{num_decimals}f}" == printed for total in (near - 1, near, near + 1))


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reactor crystal's frequency."""

    target: float


class Edges(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Edges as (parent, child)."""

    edges: list[tuple[str, str]]


class DecidedFrequency(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The frequency, and the range of its base if the class bounds it."""

    frequency: float
    base: tuple[float, float] | msgspec.UnsetType = msgspec.UNSET


class DecidedGraph(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The edges of the only graph that fits after these settings of (property, value)."""

    edges: list[tuple[str, str]]
    settings: list[tuple[str, float]]


class StatedEquation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A node's base, null for a property, and its terms of (parent, power, weight)."""

    base: float | None
    terms: list[tuple[str, int, float]]


class TwoMembers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two mechanisms, node by node, and the settings of (property, value) after which both fit."""

    members: tuple[dict[str, StatedEquation], dict[str, StatedEquation]]
    settings: list[tuple[str, float]]


class Denominators(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The numbers of rows for which some whole number divided by them rounds to the printed mean."""

    denominators: list[int]


VERIFIERS: Final[Mapping[str, Verifier]] = MappingProxyType(
    {
        UNWINNABLE: ClaimKind(Target, fixed_words("frequencies from 0 to 10,000"), unwinnable),
        CANNOT_MATTER: ClaimKind(Edges, fixed_words("the item's mechanism"), cannot_matter),
        FREQUENCY_DECIDED: ClaimKind(DecidedFrequency, _frequency_words, frequency_decided),
        GRAPH_DECIDED: ClaimKind(DecidedGraph, _unbounded_words, graph_decided),
        AMBIGUOUS: ClaimKind(TwoMembers, _unbounded_words, ambiguous),
        NOT_A_MEAN: ClaimKind(Denominators, fixed_words("means of whole numbers"), not_a_mean),
    }
)
