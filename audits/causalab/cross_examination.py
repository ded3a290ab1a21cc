"""Claims about laboratories, proved a second time by SMT search over mechanisms.

A hypothesis is a weight from 0 to 3 of each possible parent of each node, and a rank of each node above those of its
parents. Each reading is an equation in whole hundredths: value = base + sum of weight * value of the parent. A crystal
keeps the base of a property until the property is set; the frequency has one base for all crystals. The hidden values
of the reactor crystal are unknowns. A false claim is refuted by a mechanism, which the reference interpreter replays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from calibrant.audits.causalab import verify
from calibrant.audits.claims import Certificate, EngineName, NotExaminedError, RecountLimitError, Refused
from calibrant.audits.search import Examiner, IntegerSearch, Key, proved_by
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY, HIGHEST, TOLERANCE, Edge, Equation, Mechanism, Reactor, Term
from calibrant.dsl.causalab.reference import SettingMeaning, bases_of, values

MAX_WEIGHT: Final = 3
MAX_BASE: Final = 100  # of a property; the generator draws bases from 0 to 100
MAX_BASE_ERROR: Final = 1e-6  # of the frequency's base as a certificate states it

Solution: TypeAlias = Mapping[Key, int]


def _hundredths(value: float) -> int:
    if abs(value) > verify.MAX_EXACT_READING:
        raise NotExaminedError(f"a reading beyond {verify.MAX_EXACT_READING:g}, which floats do not keep to hundredths")
    return round(value * verify.PER_UNIT)


class Mechanisms:
    """The mechanisms of the class that give all readings, as a search.

    bounded: whether bases are in the generator's range
    """

    def __init__(self, visible: verify.VisibleData, engine: EngineName, *, bounded: bool) -> None:
        self.visible, self.bounded = visible, bounded
        self.nodes = verify.nodes_of(visible)
        self.search = IntegerSearch(engine)
        self._num_bases = 0
        self._add_class()
        meaning = SettingMeaning(visible["reading"])
        for record in visible["records"]:
            self._add_crystal(record, (), meaning)
        self._add_trace()
        self._add_crystal(visible["baseline"], visible["settings"], meaning)

    def parents_of(self, child: str) -> list[str]:
        """Return the possible parents of a node."""
        return [n for n in self.nodes if n != child and (n != FREQUENCY or self.visible["freq_parent"])]

    def weight(self, parent: str, child: str) -> Any:
        """Return the weight of a parent, 0 if it is none."""
        return self.search.integer("weight", parent, child)

    def _add_class(self) -> None:
        """Require weights from 0 to 3 and no cycle."""
        search = self.search
        for child in self.nodes:
            for parent in self.parents_of(child):
                weight = self.weight(parent, child)
                search.require(weight >= 0)
                search.require(weight <= MAX_WEIGHT)
                search.require(weight == 0, search.integer("rank", parent) < search.integer("rank", child))
        if self.bounded:
            self._require_drawn(search.integer("base"), *map(int, verify.BASE_RANGE))

    def _require_drawn(self, base: Any, low: int, high: int) -> None:
        """Require that a base, in hundredths, is a whole number from `low` to `high`."""
        self._num_bases += 1
        units = self.search.integer("units", self._num_bases)
        self.search.require(base == verify.PER_UNIT * units)
        self.search.require(units >= low)
        self.search.require(units <= high)

    def _drawn_bases(self) -> dict[str, Any]:
        """Return the bases of a crystal before any setting."""
        bases = {node: self._new_base() for node in self.visible["properties"]}
        if self.bounded:
            for base in bases.values():
                self._require_drawn(base, 0, MAX_BASE)
        return {**bases, FREQUENCY: self.search.integer("base")}

    def _new_base(self) -> Any:
        self._num_bases += 1
        return self.search.integer("crystal base", self._num_bases)

    def _add_trace(self) -> None:
        """Add a trace: its settings apply to the crystal of the first entry; other entries are further crystals."""
        trace = self.visible["trace"]
        if trace:
            self._add_crystal(trace[0]["values"], [t for t in trace if t["set"] is not None], SettingMeaning.VALUE)
        for entry in trace[1:]:
            if entry["set"] is None:
                self._add_crystal(entry["values"], (), SettingMeaning.VALUE)

    def _add_crystal(
        self, start: Mapping[str, float], settings: Sequence[Mapping[str, Any]], meaning: SettingMeaning
    ) -> None:
        bases = self._drawn_bases()
        self._add_reading({node: _hundredths(start[node]) for node in self.nodes}, bases)
        for done in settings:
            bases[done["set"]] = base = self._new_base()
            if meaning is SettingMeaning.BASE:
                self.search.require(base == _hundredths(round(done["value"], 2)))
            self._add_reading({node: _hundredths(done["values"][node]) for node in self.nodes}, bases)

    def _add_reading(self, node_values: Mapping[str, Any], bases: Mapping[str, Any]) -> None:
        for child in self.nodes:
            total = bases[child]
            for parent in self.parents_of(child):
                total = total + self.search.multiply(self.weight(parent, child), node_values[parent], MAX_WEIGHT)
            self.search.require(node_values[child] == total)

    def add_reactor(self) -> Any:
        """Add the reactor crystal; return its frequency in hundredths."""
        visible_values = self.visible["reactor"]
        node_values = {
            node: _hundredths(visible_values[node]) if node in visible_values else self.search.integer("reactor", node)
            for node in self.nodes
        }
        self._add_reading(node_values, self._drawn_bases())
        return node_values[FREQUENCY]

    def find_sparser(self, solution: Solution) -> Solution:
        """Return a solution with at most as many edges as nodes, or the sparsest found: messages have to be short."""
        pairs = [(parent, child) for child in self.nodes for parent in self.parents_of(child)]
        while (num_edges := sum(solution["weight", *pair] > 0 for pair in pairs)) > len(self.nodes):
            self.search.add_at_most_positive((self.weight(*pair) for pair in pairs), num_edges - 1)
            try:
                sparser = self.search.find_integers()
            except RecountLimitError:
                break
            if sparser is None:
                break
            solution = sparser
        return solution

    def mechanism(self, solution: Solution) -> Mechanism:
        """Return the mechanism of a solution; `AssertionError` if the reference finds that it does not fit."""
        weights = {child: [(p, solution["weight", p, child]) for p in self.parents_of(child)] for child in self.nodes}
        equations = {
            child: Equation(
                tuple(Term(parent, 1, float(weight)) for parent, weight in terms if weight),
                solution["base",] / verify.PER_UNIT if child == FREQUENCY else None,
            )
            for child, terms in weights.items()
        }
        mechanism = Mechanism(equations)
        if reason := verify.nonmember_reason(mechanism, self.visible):
            raise AssertionError(f"the encoding gives a mechanism that does not fit, {reason}: {_in_words(mechanism)}")
        return mechanism

    def predict(self, solution: Solution) -> tuple[Mechanism, float]:
        """Return the mechanism of a solution, and the reactor's frequency as the reference computes it."""
        mechanism, visible_values = self.mechanism(solution), self.visible["reactor"]
        hidden = {
            node: solution["reactor", node] / verify.PER_UNIT for node in self.nodes if node not in visible_values
        }
        bases = bases_of(mechanism, {**hidden, **visible_values})
        computed = values(mechanism, bases)
        fresh = [entry["values"] for entry in self.visible["trace"] if entry["set"] is None]
        starts = [*self.visible["records"], *fresh, self.visible["baseline"], {**hidden, **visible_values}]
        drawn_bases = [base for start in starts for base in bases_of(mechanism, start).values()] if self.bounded else []
        if computed[FREQUENCY] != hidden[FREQUENCY] or not all(
            b.is_integer() and 0 <= b <= MAX_BASE for b in drawn_bases
        ):
            raise AssertionError(f"the encoding gives another frequency or base: {_in_words(mechanism)}")
        return mechanism, computed[FREQUENCY]

    def require_member(self, mechanism: Mechanism) -> None:
        """Require the weights and the frequency's base of a mechanism of the class."""
        for child in self.nodes:
            weights = mechanism.weights(child)
            for parent in self.parents_of(child):
                self.search.require(self.weight(parent, child) == int(weights.get(parent, 0)))
        self.search.require(self.search.integer("base") == _hundredths(mechanism.frequency_base))

    def exclude_graph(self, edges: frozenset[Edge]) -> None:
        """Require other edges than these; no requirement if some of these are outside the class."""
        pairs = [(parent, child) for child in self.nodes for parent in self.parents_of(child)]
        if edges <= set(pairs):
            self.search.require(
                *(self.weight(*pair) == 0 if pair in edges else self.weight(*pair) > 0 for pair in pairs)
            )


def _in_words(mechanism: Mechanism) -> str:
    """Return weights by node and parent as JSON, with the frequency's base; nodes without parents are left out."""
    weights = {node: {p: int(w) for p, w in mechanism.weights(node).items()} for node in sorted(mechanism.equations)}
    stated: dict[str, dict[str, float]] = {node: dict(terms) for node, terms in weights.items() if terms}
    stated.setdefault(FREQUENCY, {})["base"] = mechanism.frequency_base
    return json.dumps(stated)


def _readable_item(evidence: Mapping[str, Any]) -> LabItem:
    item = verify.item_of_evidence(evidence)
    if reason := verify.unlisted_reason(item):
        raise NotExaminedError(reason)
    return item


def _after_settings(evidence: Mapping[str, Any], certificate: Certificate, engine: EngineName) -> Mechanisms:
    """Return the mechanisms that fit after every property was set once; refuse other settings."""
    item = _readable_item(evidence)
    if item.task.noise:
        raise Refused("the laboratory is noisy")
    steps = verify.every_property_set(item)
    if certificate.data["settings"] != [[step.action["set"], step.action["value"]] for step in steps]:
        raise Refused(f"the settings of every property once, as far as they are allowed, are {len(steps)} others")
    return Mechanisms(verify.visible_data(item, steps), engine, bounded=False)


def _graph_decided(evidence: Mapping[str, Any], certificate: Certificate, engine: EngineName) -> str:
    mechanisms = _after_settings(evidence, certificate, engine)
    stated = [(parent, child) for parent, child in certificate.data["edges"]]
    edges = frozenset(stated)
    if len(edges) < len(stated):
        raise Refused("an edge is stated twice")
    _require_some(mechanisms)
    mechanisms.exclude_graph(edges)
    solution = mechanisms.search.find_integers()
    if solution is None:
        return f"one graph, {proved_by(mechanisms.search)}"
    member = mechanisms.mechanism(mechanisms.find_sparser(solution))
    raise Refused(f"{mechanisms.search.engine} finds a mechanism of another graph that fits: {_in_words(member)}")


def _require_some(mechanisms: Mechanisms) -> None:
    """Refuse the claim if no mechanism of the class fits."""
    solution = mechanisms.search.find_integers()
    if solution is None:
        raise Refused(f"{mechanisms.search.engine} proves that no mechanism of the class fits")
    mechanisms.mechanism(solution)


def _ambiguous(evidence: Mapping[str, Any], certificate: Certificate, engine: EngineName) -> str:
    first, second = (verify.stated_mechanism(record) for record in certificate.data["members"])
    if first.all_weights == second.all_weights:
        raise Refused("the two mechanisms are one")
    mechanisms = _after_settings(evidence, certificate, engine)
    steps = _prove_fit(mechanisms, first)
    mechanisms = _after_settings(evidence, certificate, engine)
    _prove_fit(mechanisms, second)
    mechanisms.search.steps += steps
    return f"two mechanisms fit, {proved_by(mechanisms.search)}"


def _prove_fit(mechanisms: Mechanisms, member: Mechanism) -> int:
    """Prove that a mechanism is of the class and fits, else `Refused`; return the number of search steps."""
    nodes = mechanisms.nodes
    if set(member.equations) != set(nodes):
        raise Refused("a mechanism of other nodes")
    for child, equation in member.equations.items():
        for term in equation.terms:
            if term.parent not in mechanisms.parents_of(child) or term.power != 1:
                raise Refused(f"{child} has a term that is not of the class, of {term.parent}")
            if term.weight not in range(1, MAX_WEIGHT + 1):
                raise Refused(f"{child} has a weight that is not 1, 2 or 3")
    base = member.frequency_base
    if abs(_hundredths(base) / verify.PER_UNIT - base) > MAX_BASE_ERROR:
        raise Refused(f"the frequency's base {base:g} is not a multiple of 0.01")
    mechanisms.require_member(member)
    if mechanisms.search.find_integers() is None:
        raise Refused(f"{mechanisms.search.engine} proves that this mechanism does not fit: {_in_words(member)}")
    return mechanisms.search.steps


def _frequency_decided(evidence: Mapping[str, Any], certificate: Certificate, engine: EngineName) -> str:
    bounded = "base" in certificate.data
    if bounded and certificate.data["base"] != list(verify.BASE_RANGE):
        raise Refused(f"bases of the frequency are drawn from {verify.BASE_RANGE[0]:g} to {verify.BASE_RANGE[1]:g}")
    stated = certificate.data["frequency"]
    mechanisms = Mechanisms(verify.visible_data(_readable_item(evidence)), engine, bounded=bounded)
    frequency = mechanisms.add_reactor()
    _require_some(mechanisms)
    if (hundredths := _hundredths(stated)) / verify.PER_UNIT == stated:  # else no mechanism predicts it
        mechanisms.search.require(frequency != hundredths)
    solution = mechanisms.search.find_integers()
    if solution is None:
        return f"one frequency, {proved_by(mechanisms.search)}"
    member, predicted = mechanisms.predict(mechanisms.find_sparser(solution))
    raise Refused(
        f"{mechanisms.search.engine} finds a mechanism that fits and predicts {predicted!r}: {_in_words(member)}"
    )


def _unwinnable(evidence: Mapping[str, Any], certificate: Certificate, engine: EngineName) -> str:
    item = verify.item_of_evidence(evidence)
    target, tries = item.sealed.target, item.task.tries
    if target != certificate.data["target"]:
        raise Refused(f"the target is {target:g}")
    search = IntegerSearch(engine)
    # a dial keeps the whole part of a frequency, so that whole numbers are enough; the last try never succeeds
    dialled, (numerator, denominator) = search.integer("dialled"), target.as_integer_ratio()
    search.require(dialled >= 0)
    search.require(dialled <= int(HIGHEST))
    search.require(denominator * dialled - numerator < int(TOLERANCE) * denominator)
    search.require(numerator - denominator * dialled < int(TOLERANCE) * denominator)
    if tries < 2:
        search.require()
    solution = search.find_integers()
    if solution is None:
        return f"no frequency activates the reactor, {proved_by(search)}"
    frequency = solution["dialled",]
    if not Reactor(target, tries).dial_frequency(float(frequency)).activated:
        raise AssertionError(f"the encoding gives a frequency that does not activate the reactor: {frequency}")
    raise Refused(f"{search.engine} finds that {frequency} activates the reactor")


EXAMINERS: Final[Mapping[str, Examiner]] = {
    verify.AMBIGUOUS: _ambiguous,
    verify.FREQUENCY_DECIDED: _frequency_decided,
    verify.GRAPH_DECIDED: _graph_decided,
    verify.UNWINNABLE: _unwinnable,
}
