"""Items without limit: every released suite, and settings of the laboratory that no release has.

Ranges follow the released suites: edges uniform from k-1 to min(k(k-1)/2, 2k), at most four parents, weights 1, 2, 3,
the frequency's base 15 to 25; quadratic weights .008, .012, .016 around an axis between 35 and 65.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations
from types import MappingProxyType
from typing import Final

from calibrant.dsl.causalab.configs import MAX_RECORDS, NUM_RECORDS, View, crystal, further_records, visible_properties
from calibrant.dsl.causalab.item import Bases, Family, LabItem, Name, Terms, Traced, Weights, by_name, lab_item
from calibrant.dsl.causalab.mechanism import FREQUENCY, TRIES, Draw, Edge, Equation, Mechanism, Noise, Term, Values
from calibrant.dsl.causalab.reference import DECIMALS, SettingMeaning, bases_after, values
from calibrant.dsl.causalab.score import imec_size

NAMES: Final = (
    "quantumSize",
    "density",
    "moisture",
    "ph",
    "temperatureC",
    "radiation",
    "conductivity",
    "pressure",
)
MAX_PARENTS = 4
SMALL_WEIGHTS = (1.0, 2.0, 3.0)
SQUARE_WEIGHTS = (0.008, 0.012, 0.016)
AXIS = (35.0, 65.0)
QUADRATIC_BASE = (50.0, 190.0)
BASE = (15, 25)
TRACE_BASE = (15.0, 45.0)
GOLDEN_SETTINGS = 6
TRIES_FOR_NEW_TOPOLOGY = 200


class Trace(StrEnum):
    """The settings of a static trace."""

    TURNS = "turns"  # each property in turn, as in the released traces
    LOW_IMEC = "low-imec"  # greedily the property that leaves the smallest equivalence class, at most 2(k-1) settings


@dataclass(frozen=True, slots=True)
class NoisePlan:
    """Plan of the hidden noise; draws are -scale, 0 or scale.

    affected: number of nodes; frequency: whether the resonance frequency is one of them
    """

    affected: int
    frequency: bool = False
    scale: float = 5.0
    draw: Draw = Draw.SHARED


@dataclass(frozen=True, slots=True)
class Plan:
    """The distribution of a suite's items.

    nodes: k, 3 to 9, the frequency included
    records: number of shown earlier crystals; fewer are a prefix of more
    golden: the item has a static trace and allows no settings
    allowance: number of settings; None for 4(k-1)
    fixed: number of properties that cannot be set
    """

    suite: str
    nodes: int
    family: Family = Family.LINEAR
    weights: Weights = Weights.SMALL
    freq_parent: bool = False
    noise: NoisePlan | None = None
    golden: bool = False
    allowance: int | None = None
    fixed: int = 0
    view: View = View.ALL
    tries: int = TRIES
    reading: SettingMeaning = SettingMeaning.VALUE
    records: int = NUM_RECORDS
    trace: Trace = Trace.TURNS

    def __post_init__(self) -> None:
        if not 3 <= self.nodes <= len(NAMES) + 1:
            raise ValueError(f"{self.nodes} nodes; 3 to {len(NAMES) + 1} can be named")
        if not 0 <= self.fixed < self.nodes:
            raise ValueError(f"{self.fixed} properties that cannot be set; 0 to {self.nodes - 1} are there")
        if self.allowance is not None and self.allowance < 0:
            raise ValueError(f"an allowance of {self.allowance}")
        if self.golden and self.allowance:
            raise ValueError(f"an allowance of {self.allowance}; suites with a static trace allow no settings")
        if self.trace is not Trace.TURNS and not self.golden:
            raise ValueError(f"trace {self.trace}; only golden suites have a static trace")
        if self.weights is not Weights.SMALL and self.family is Family.QUADRATIC:
            raise ValueError(f"weights {self.weights}; those of quadratic suites are fixed")
        if not 0 <= self.records <= MAX_RECORDS:
            raise ValueError(f"{self.records} records; 0 to {MAX_RECORDS} are possible")
        if self.noise is not None and not 1 <= self.noise.affected <= self.nodes - 1:
            raise ValueError(f"noise on {self.noise.affected} nodes; 1 to {self.nodes - 1} are meant")


def _released_plans() -> dict[str, Plan]:
    plans = [Plan(f"{k}nodes", k) for k in range(3, 8)]
    plans.append(Plan("4nodes_quad_hard", 4, Family.QUADRATIC))
    for n in (1, 2, 3):
        plans.append(Plan(f"4nodes_hidden_n{n}", 4, noise=NoisePlan(n)))
        plans.append(Plan(f"4nodes_hidden_freqnode_n{n}", 4, noise=NoisePlan(n, frequency=True)))
    for name, scale in (("0p5", 0.5), ("5", 5.0), ("50", 50.0)):
        plans.append(Plan(f"4nodes_hidden_vrange_pm{name}", 4, noise=NoisePlan(1, scale=scale)))
    plans += [Plan(f"{k}nodes_freqparent", k, freq_parent=True) for k in (4, 6)]
    plans += [Plan(f"{k}nodes_golden", k, golden=True) for k in (4, 6)]
    return {plan.suite: plan for plan in plans}


PLANS: Final[Mapping[str, Plan]] = MappingProxyType(_released_plans())


def generate_items(plan: Plan, seed: int, count: int) -> Iterator[LabItem]:
    """Yield `count` items of a plan; item i is the same for every count.

    A topology with its names does not recur while new ones are found; small plans have fewer topologies than `count`
    may be, so after TRIES_FOR_NEW_TOPOLOGY draws without a new one all may recur.
    """
    topologies: set[frozenset[Edge]] = set()
    for index in range(count):
        rng = random.Random(f"causalab {plan.suite} {seed} {index}")
        edges = _topology(plan, rng)
        for _ in range(TRIES_FOR_NEW_TOPOLOGY):
            if edges not in topologies:
                break
            edges = _topology(plan, rng)
        else:
            topologies.clear()
        topologies.add(edges)
        yield _item(plan, Name(f"{plan.suite}/{seed}/{index}", plan.suite, index), edges, rng)


def _topology(plan: Plan, rng: random.Random) -> frozenset[Edge]:
    """Draw the edges of a DAG over named nodes; the frequency has a parent, and no child unless plan.freq_parent.

    An isolated property is represented by a self-loop, which `_mechanism` drops, so that edges tell all nodes.
    """
    k = plan.nodes
    order = rng.sample(NAMES, k - 1)
    order.insert(rng.randint(1, k - 1) if plan.freq_parent else k - 1, FREQUENCY)
    pairs = list(combinations(order, 2))
    size = rng.randint(k - 1, min(len(pairs), 2 * k))
    while True:
        edges = rng.sample(pairs, size)
        children = [child for _, child in edges]
        if FREQUENCY in children and max(map(children.count, children)) <= MAX_PARENTS:
            break
    isolated = set(order) - {node for edge in edges for node in edge}
    return frozenset(edges) | {(node, node) for node in isolated}


def _mechanism(plan: Plan, topology: frozenset[Edge], rng: random.Random) -> Mechanism:
    nodes = sorted({node for edge in topology for node in edge})
    rng.shuffle(nodes)
    edges = sorted(edge for edge in topology if edge[0] != edge[1])
    equations = {}
    for node in nodes:
        parents = [parent for parent, child in edges if child == node]
        rng.shuffle(parents)
        terms = tuple(term for parent in parents for term in _terms(plan, parent, rng))
        equations[node] = Equation(terms, _base(plan, rng) if node == FREQUENCY else None)
    return Mechanism(equations)


def _terms(plan: Plan, parent: str, rng: random.Random) -> list[Term]:
    if plan.family is Family.QUADRATIC:
        square = rng.choice(SQUARE_WEIGHTS)
        return [Term(parent, 2, square), Term(parent, 1, round(-2 * square * rng.uniform(*AXIS), 6))]
    if plan.weights is Weights.HUNDREDTHS:
        return [Term(parent, 1, rng.randint(1, 300) / 100)]
    return [Term(parent, 1, rng.choice(SMALL_WEIGHTS))]


def _base(plan: Plan, rng: random.Random) -> float:
    if plan.family is Family.QUADRATIC:
        return round(rng.uniform(*QUADRATIC_BASE), 6)
    return float(rng.randint(*BASE))


def _item(plan: Plan, name: Name, topology: frozenset[Edge], rng: random.Random) -> LabItem:
    mechanism = _mechanism(plan, topology, rng)
    records = [crystal(mechanism, rng) for _ in range(NUM_RECORDS)]
    bases = Bases(
        further_records(mechanism, records, plan.records, name.id), crystal(mechanism, rng), crystal(mechanism, rng)
    )
    trace = _trace(plan, mechanism, rng) if plan.golden else ()
    allowance = 4 * (plan.nodes - 1) if plan.allowance is None else plan.allowance
    fixed = set(rng.sample(mechanism.properties, plan.fixed))
    terms = Terms(
        plan.family,
        0 if plan.golden else allowance,
        plan.freq_parent,
        plan.weights,
        plan.tries,
        plan.reading,
        trace,
        tuple(p for p in mechanism.properties if p not in fixed),
        visible_properties(plan.view, mechanism, rng),
    )
    return lab_item(name, terms, mechanism, bases, _noise(plan, mechanism, rng))


def _noise(plan: Plan, mechanism: Mechanism, rng: random.Random) -> Noise | None:
    if plan.noise is None:
        return None
    noisy_properties = rng.sample(mechanism.properties, plan.noise.affected - plan.noise.frequency)
    affected = sorted(noisy_properties) + [FREQUENCY] * plan.noise.frequency
    scale = plan.noise.scale
    return Noise((-scale, 0.0, scale), 1.0, tuple(affected), rng.getrandbits(32), plan.noise.draw)


def _trace(plan: Plan, mechanism: Mechanism, rng: random.Random) -> tuple[Traced, ...]:
    """Return a static trace: two crystals as they are, then settings of the first one, each after the one before."""
    crystals = [_trace_crystal(mechanism, rng) for _ in range(2)]
    trace = [Traced(by_name(values(mechanism, bases))) for bases in crystals]
    bases = crystals[0]
    for node in _traced_properties(plan, mechanism):
        value = float(rng.randint(0, 100))
        bases = bases_after(mechanism, bases, node, value, SettingMeaning.VALUE)
        trace.append(Traced(by_name(values(mechanism, bases)), node, value))
    return tuple(trace)


def _traced_properties(plan: Plan, mechanism: Mechanism) -> list[str]:
    """Return the properties that a static trace sets, in order."""
    properties = mechanism.properties
    if plan.trace is Trace.TURNS:
        return [properties[i % len(properties)] for i in range(GOLDEN_SETTINGS)]
    chosen: list[str] = []
    least = imec_size(mechanism.edges, frozenset(properties))
    while imec_size(mechanism.edges, frozenset(chosen)) > least and len(chosen) < 2 * len(properties):
        remaining = [node for node in properties if node not in chosen]  # sorted: ties are decided by name
        chosen.append(min(remaining, key=lambda node: imec_size(mechanism.edges, frozenset((*chosen, node)))))
    return chosen


def _trace_crystal(mechanism: Mechanism, rng: random.Random) -> Values:
    return {node: round(rng.uniform(*TRACE_BASE), DECIMALS) for node in mechanism.nodes_with_drawn_base}


def with_labels(item: LabItem, labels: Mapping[str, float]) -> LabItem:
    """Return the item with its difficulty labels replaced."""
    return replace(item, sealed=replace(item.sealed, labels=dict(labels)))
