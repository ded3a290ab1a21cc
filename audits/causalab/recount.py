"""Independent recount for certificates about laboratories: readings, settings and parent sets, by trying all.

Uses the reference and episodes of `dsl` and no solver. Readings are compared as whole hundredths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Any, Final, TypeAlias

from calibrant.audits.claims import checkpoint
from calibrant.dsl.causalab.episode import LabEpisode, LabStep
from calibrant.dsl.causalab.item import Family, LabItem, Weights
from calibrant.dsl.causalab.mechanism import FREQUENCY, Edge
from calibrant.dsl.causalab.reference import Reading

WEIGHTS: Final = (0, 1, 2, 3)
PER_UNIT: Final = 100  # readings are multiples of 0.01
MAX_EXACT_READING: Final = 1e10  # beyond it a float does not hold hundredths; such readings are skipped
BASE_RANGE: Final = (15.0, 25.0)  # from which the frequency's base is drawn
SCALE_MIDDLE, SCALE_TOP = 50.0, 100.0  # of the scale of settings
MAX_PROPERTIES: Final = 7  # 4 ** 7 vectors a node
MAX_COMBINATIONS: Final = 1_000_000

VisibleData: TypeAlias = Mapping[str, Any]


def visible_data(item: LabItem, steps: Sequence[LabStep] = ()) -> VisibleData:
    """Return the visible data of an item, and the readings of these steps of an episode."""
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
    """Set every property that no trace has moved to the farther end of its scale, until it has moved."""
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
    """Return why the mechanisms of an item are not tried out; empty if they can be."""
    task = item.task
    if task.family is not Family.LINEAR or task.weights is not Weights.SMALL:
        return "only linear mechanisms with weights 1, 2, 3 are tried out"
    if len(task.properties) > MAX_PROPERTIES:
        return f"{len(task.properties)} properties; up to {MAX_PROPERTIES} are tried out"
    return ""


def nodes_of(visible: VisibleData) -> list[str]:
    return [*visible["properties"], FREQUENCY]


def frequency_equations(visible: VisibleData, *, bounded: bool) -> Iterator[tuple[frozenset[str], int | None]]:
    """Yield parents and prediction, in hundredths, of every vector that leaves one base; None where not shown."""
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
    """Return whether some choice of a parent set for each property has no cycle with these of the frequency."""
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
    """Yield the acyclic choices of a parent set for each node, those with few sets first; a bound on the steps."""
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
    """Return the parent sets of the weight vectors that explain a node's changes between its own settings."""
    nodes = nodes_of(visible)
    candidates = [n for n in nodes if n != child and (n != FREQUENCY or visible["freq_parent"])]
    rows = [_difference(before, after) for run in _stretches(visible, child) for before, after in pairwise(run)]
    changes = [row for row in rows if row]
    stated = list(_stated_bases(visible, child))
    parent_sets = set()
    for number, weights in enumerate(product(WEIGHTS, repeat=len(candidates))):
        checkpoint(f"weights of {child}", number, len(WEIGHTS) ** len(candidates))
        if child == FREQUENCY and not any(weights):
            continue
        terms = [(w, p) for w, p in zip(weights, candidates, strict=True) if w]
        if all(row[child] == sum(w * row[p] for w, p in terms) for row in changes) and all(
            row[child] - sum(w * row[p] for w, p in terms) == base for row, base in stated
        ):
            parent_sets.add(tuple(sorted(p for _, p in terms)))
    return parent_sets


def _hundredths(reading: Mapping[str, float]) -> dict[str, int]:
    """Return a reading as whole numbers; empty where floats do not keep hundredths."""
    if max(map(abs, reading.values())) > MAX_EXACT_READING:
        return {}
    return {node: round(value * PER_UNIT) for node, value in reading.items()}


def _difference(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, int]:
    first, second = _hundredths(before), _hundredths(after)
    return {node: second[node] - first[node] for node in first} if first and second else {}


def _stated_bases(visible: VisibleData, child: str) -> Iterator[tuple[dict[str, int], int]]:
    """Yield readings whose base of a node a setting states, which is so where settings give the base."""
    if visible["reading"] == Reading.BASE:
        for done in visible["settings"]:
            if (
                done["set"] == child
                and abs(done["value"]) <= MAX_EXACT_READING
                and (row := _hundredths(done["values"]))
            ):
                yield row, round(round(done["value"], 2) * PER_UNIT)


def _stretches(visible: VisibleData, child: str) -> list[list[Mapping[str, float]]]:
    """Return runs of readings over which the base of a node is constant."""
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
