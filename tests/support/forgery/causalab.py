"""Forgers of claims about laboratories."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import cache
from random import Random
from typing import Any

from calibrant.audits.causalab.attribution import decided_frequency, space_of
from calibrant.audits.causalab.items import after_every_setting, mattering_edges
from calibrant.audits.causalab.suites import PrintedRow, denominator_findings
from calibrant.audits.claims import Certificate
from calibrant.bench.core.capabilities import FINDINGS
from calibrant.bench.core.registry import benchmark
from calibrant.dsl.causalab.generation import PLANS, generate_items
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY, Equation, Mechanism, Term, winnable
from calibrant.solvers.causalab.space import WeightedDags
from tests.support.forgery.forger import Data, Forger, Genuine, has_shape, is_same, nothing_forged


@cache
def items() -> tuple[LabItem, ...]:
    """Return items of every suite; more where targets are beyond the dial, and where several mechanisms remain."""
    more = {"7nodes": 40, "6nodes_golden": 12, "4nodes_freqparent": 12, "6nodes_freqparent": 6}
    return tuple(item for suite, plan in PLANS.items() for item in generate_items(plan, 4, more.get(suite, 3)))


@cache
def certificates() -> dict[str, list[Genuine]]:
    """By claim: what the audit of these items writes, at most a dozen each."""
    by_claim: dict[str, list[Genuine]] = {}
    for item in items():
        for finding in benchmark("causalab").require(FINDINGS).findings(item):
            if finding.certificate is not None and len(by_claim.get(finding.certificate.claim, ())) < 12:
                by_claim.setdefault(finding.certificate.claim, []).append(Genuine(item, finding.certificate))
    return by_claim


def _genuine(claim: str) -> Callable[[], Sequence[Genuine]]:
    return lambda: certificates()[claim]


def _unwinnable(item: LabItem, certificate: Certificate) -> bool:
    same = is_same(dict(certificate.data), {"target": item.sealed.target})
    words = certificate.in_words == "frequencies from 0 to 10,000"
    return words and same and not winnable(item.sealed.target, item.task.tries)


def _cannot_matter(item: LabItem, certificate: Certificate) -> bool:
    idle = sorted(list(edge) for edge in item.sealed.mechanism.edges - mattering_edges(item))
    stated = is_same({**certificate.data, "edges": sorted(certificate.data["edges"])}, {"edges": idle})
    return certificate.in_words == "the item's mechanism" and bool(idle) and stated


def _decided(item: LabItem, certificate: Certificate) -> bool:
    bounded = "base" in certificate.data
    space = space_of(item.task, bounded=bounded)
    limits = {"base": [15, 25]} if bounded else {}
    frequency = decided_frequency(space)
    same = is_same(dict(certificate.data), {"frequency": frequency, **limits})
    return frequency is not None and same and certificate.in_words == space.in_words


def _after(item: LabItem, data: Data) -> WeightedDags | None:
    """Return the space after all settings, if these are they."""
    made = after_every_setting(item)
    if made is None:
        return None
    settings = [[step.action["set"], step.action["value"]] for step in made[1] if step.reading is not None]
    return made[0] if is_same(data["settings"], settings) else None


def _graph_decided(item: LabItem, certificate: Certificate) -> bool:
    data, space = certificate.data, _after(item, certificate.data)
    if space is None or not has_shape(data, edges=list, settings=list):
        return False
    edges = sorted(list(edge) for edge in space.certain_edges)
    return space.graph_decided and is_same(sorted(data["edges"]), edges) and certificate.in_words == space.in_words


def _ambiguous(item: LabItem, certificate: Certificate) -> bool:
    data, space = certificate.data, _after(item, certificate.data)
    if space is None or not has_shape(data, members=list, settings=list) or len(data["members"]) != 2:
        return False
    first, second = (_mechanism(record) for record in data["members"])
    fits = space.fits(first) and space.fits(second)
    return fits and first.all_weights != second.all_weights and certificate.in_words == space.in_words


def _mechanism(record: Any) -> Mechanism:
    """Strict: base and terms of every node and nothing else, numbers that are no truth values."""
    for equation in record.values():
        assert set(equation) == {"base", "terms"}
        for _, power, weight in equation["terms"]:
            assert type(power) is int
            assert type(weight) in (int, float)
        assert type(equation["base"]) in (int, float, type(None))
    return Mechanism({n: Equation(tuple(Term(*t) for t in e["terms"]), e["base"]) for n, e in record.items()})


def _not_a_mean(evidence: Any, certificate: Certificate) -> bool:
    """By every whole number up to twice the sum and more."""
    printed, rows = evidence["printed"], evidence["rows"]
    places = len(printed.partition(".")[2])
    possible = [
        n
        for n in range(1, rows + 1)
        if any(f"{k / n:.{places}f}" == printed for k in range(int(float(printed) + 2) * n))
    ]
    words = certificate.in_words == "means of whole numbers"
    return words and rows not in possible and is_same(dict(certificate.data), {"denominators": possible})


@cache
def _printed() -> tuple[Genuine, ...]:
    rows = [PrintedRow(f"row {i}", {"shd": text, "rows": "50"}) for i, text in enumerate(("0.458", "1.735", "2.313"))]
    return tuple(
        Genuine({"printed": row.figures["shd"], "rows": 50}, finding.certificate)
        for row in rows
        for finding in denominator_findings([row])
        if finding.certificate is not None
    )


def _targets(genuine: Genuine, rng: Random) -> Iterator[Data]:
    for _ in range(10):
        yield {"target": rng.choice([10_004.0, 10_006.0, 20_000.0, 1e308, genuine.item.sealed.target + rng.random()])}


def _edge_lists(genuine: Genuine, rng: Random) -> Iterator[Data]:
    """No edge, all edges, edges turned round, edges twice, lists of letters."""
    edges = genuine.certificate.data["edges"]
    every = [list(edge) for edge in sorted(genuine.item.sealed.mechanism.edges)]
    nodes = genuine.item.task.nodes
    for other in ([], every, [e[::-1] for e in edges], edges * 2, edges[:-1], "xy", ["xy"], [[*e, "x"] for e in edges]):
        yield {**genuine.certificate.data, "edges": other}
    for _ in range(8):
        yield {**genuine.certificate.data, "edges": [*edges[1:], rng.sample(nodes, 2)]}


def _frequencies(genuine: Genuine, rng: Random) -> Iterator[Data]:
    """Other bounds of the base, bounds that are not in the class's words, other frequencies."""
    data = genuine.certificate.data
    base = [15.0, 25.0]
    for limits in (base, [20.0, 20.0], [15.0, 15.0], [25.0, 15.0], [-1e300, 1e300], [0.0, 100.0], [15, 25], None):
        yield {**data, "base": limits}
    yield {"frequency": data["frequency"]}
    target = genuine.item.sealed.target
    for other in (target, 559, 587, data["frequency"] + 0.01, data["frequency"] + 1e-9):
        yield {"frequency": other}
        yield {"frequency": other, "base": base}


def _settings_of(genuine: Genuine, rng: Random) -> Iterator[list[Any]]:
    settings = genuine.certificate.data["settings"]
    yield from ([], settings[:-1], settings[1:], settings[::-1], settings + settings[-1:])
    for index in range(len(settings)):
        yield [*settings[:index], [settings[index][0], settings[index][1] + 1.0], *settings[index + 1 :]]
        yield [*settings[:index], [settings[index][0], 0.0], *settings[index + 1 :]]
    yield [[name, genuine.item.task.baseline[name]] for name in genuine.item.task.settable]  # tells nothing
    yield [[FREQUENCY, 1.0]]


def _graphs(genuine: Genuine, rng: Random) -> Iterator[Data]:
    for settings in _settings_of(genuine, rng):
        yield {**genuine.certificate.data, "settings": settings}
    yield from _edge_lists(genuine, rng)


def _pairs(genuine: Genuine, rng: Random) -> Iterator[Data]:
    """One mechanism twice: in permuted terms, with a base that differs by rounding; others that are no members."""
    data = genuine.certificate.data
    for settings in _settings_of(genuine, rng):
        yield {**data, "settings": settings}
    for member in data["members"]:
        permuted, shifted, heavy, bare, split = (deepcopy(member) for _ in range(5))
        for node in permuted:
            permuted[node]["terms"] = permuted[node]["terms"][::-1]
            heavy[node]["terms"] = [[p, k, w + 1] for p, k, w in heavy[node]["terms"]]
            bare[node]["terms"] = []
            split[node]["terms"] = [[p, k, 1.0] for p, k, w in split[node]["terms"] for _ in range(int(w))]
        shifted[FREQUENCY]["base"] += 1e-9
        for other in (member, permuted, shifted, heavy, bare, split, {}, {FREQUENCY: member[FREQUENCY]}):
            yield {**data, "members": [member, other]}
            yield {**data, "members": [other, member]}
    yield {**data, "members": "xy"}
    empty = {node: {**equation, "terms": []} for node, equation in data["members"][0].items()}
    yield {**data, "members": [empty, empty]}
    yield {**data, "members": [*data["members"], data["members"][0]]}


FORGERS = {
    "causalab-unwinnable": Forger(_genuine("causalab-unwinnable"), _targets, _unwinnable),
    "causalab-edges-cannot-matter": Forger(_genuine("causalab-edges-cannot-matter"), _edge_lists, _cannot_matter),
    "causalab-frequency-decided": Forger(_genuine("causalab-frequency-decided"), _frequencies, _decided),
    "causalab-graph-decided": Forger(_genuine("causalab-graph-decided"), _graphs, _graph_decided),
    "causalab-ambiguous": Forger(_genuine("causalab-ambiguous"), _pairs, _ambiguous),
    "causalab-not-a-mean": Forger(_printed, nothing_forged, _not_a_mean),
}
