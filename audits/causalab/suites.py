"""What can be proved about released files: shares of flawed episodes, leaks, duplicates, what never suffices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import exp, log
from statistics import fmean
from typing import TypeAlias

import numpy as np

from calibrant.audits.causalab.items import after_every_setting, mattering_edges
from calibrant.audits.causalab.spaces import decided_frequency, space_of
from calibrant.audits.finding import Finding, Standing
from calibrant.dsl.causalab.candidates import candidates
from calibrant.dsl.causalab.configs import Config, item_of_config, released_records
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY, Mechanism
from calibrant.dsl.causalab.reactor import HIGHEST, TOLERANCE, winnable
from calibrant.dsl.causalab.reference import values
from calibrant.solvers.acyclic.count import Weights, total
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causalab.evidence import evidence_of
from calibrant.solvers.causalab.local import PER_UNIT, Local, local
from calibrant.solvers.causalab.space import not_enumerated

LARGEST_BASE = 100  # that is drawn
MOST_EFFECTS = 9  # 101 to this power is still a machine number
Suites: TypeAlias = Mapping[str, Sequence[Config]]
Episodes: TypeAlias = Sequence[Sequence[LabItem]]  # by config, then by seed


def suite_findings(suites: Suites, seeds: Sequence[int]) -> Iterator[Finding]:
    """Every finding about these files; episodes are drawn once for each config and seed."""
    yield from duplicate_findings(suites)
    for suite, configs in suites.items():
        items = [[item_of_config(made, seed) for seed in seeds] for made in configs]
        for audit in (unwinnable_share, idle_share, trivial_share, ambiguous_share, static_share):
            found = audit(suite, items)
            if found is not None:
                yield found
        yield from leak_findings(suite, configs)


def unwinnable_share(suite: str, items: Episodes) -> Finding | None:
    """Episodes whose target the dial cannot reach; for whole linear mechanisms also the chance over all crystals."""
    lost = [sum(not winnable(item.sealed.target, item.task.tries) for item in own) for own in items]
    episodes = sum(map(len, items))
    if not sum(lost):
        return None
    worst = max(n / len(own) for n, own in zip(lost, items, strict=True))
    graphs = sum(map(bool, lost))
    data = {"episodes": episodes, "unwinnable": sum(lost), "graphs": graphs, "worst_graph": worst}
    claim = f"{sum(lost) / episodes:.1%} of episodes cannot be won, in {graphs} graphs, up to {worst:.0%} of one"
    try:
        chances = [unwinnable_chance(own[0].sealed.mechanism) for own in items]
    except ValueError:
        chances = []
    if any(chances):
        data["chance"], data["chance_graphs"] = float(sum(chances) / len(chances)), sum(map(bool, chances))
        claim += f"; over all crystals that can be drawn {data['chance']:.2%}, in {data['chance_graphs']} graphs"
    return Finding("unwinnable", Standing.PROVED, suite, claim, data)


def unwinnable_chance(mechanism: Mechanism) -> Fraction:
    """The chance that the reactor crystal's target is beyond the dial, for bases drawn as the benchmark draws them.

    For linear mechanisms with whole weights and a whole base: the target is the base plus a sum of independent whole
    numbers from 0 to 100, each times its total effect, so its distribution is a convolution.
    """
    effects = [effect for effect in effects_on_frequency(mechanism).values() if effect]
    if len(effects) > MOST_EFFECTS or mechanism.frequency_base != int(mechanism.frequency_base):
        raise ValueError(f"{len(effects)} properties and the base {mechanism.frequency_base:g}")
    ways = np.ones(1, dtype=np.int64)
    for effect in effects:
        grown = np.zeros(len(ways) + LARGEST_BASE * effect, dtype=np.int64)
        for base in range(LARGEST_BASE + 1):
            grown[base * effect : base * effect + len(ways)] += ways
        ways = grown
    beyond = max(0, int(HIGHEST + TOLERANCE) - int(mechanism.frequency_base))
    return Fraction(int(ways[beyond:].sum()), int(ways.sum()))


def effects_on_frequency(mechanism: Mechanism) -> dict[str, int]:
    """By how much the frequency grows with the base of each property; `ValueError` unless all is whole and linear."""
    found: dict[str, int] = {}

    def effect(node: str) -> int:
        if node == FREQUENCY:
            return 1
        if node not in found:
            terms = [(child, term) for child, e in mechanism.equations.items() for term in e.terms]
            own = [(child, term) for child, term in terms if term.parent == node]
            if any(term.power != 1 or term.weight != int(term.weight) for _, term in own):
                raise ValueError("an equation that is not linear with whole weights")
            found[node] = sum(int(term.weight) * effect(child) for child, term in own)
        return found[node]

    return {node: effect(node) for node in mechanism.properties}


def idle_share(suite: str, items: Episodes) -> Finding | None:
    """Edges that cannot matter for the prediction, as a mean of shares over graphs."""
    edges = [own[0].sealed.mechanism.edges for own in items]
    shares = [1 - len(mattering_edges(own[0])) / len(e) for own, e in zip(items, edges, strict=True)]
    claim = f"{fmean(shares):.0%} of the edges of a graph cannot matter for the prediction"
    return Finding("vacuous", Standing.PROVED, suite, claim, {"graphs": len(items), "share": fmean(shares)})


def trivial_share(suite: str, items: Episodes) -> Finding | None:
    """Episodes whose frequency the records decide, with weights 1, 2, 3 and any bases."""
    every = [item for own in items for item in own]
    try:
        decided = [decided_frequency(space_of(item.task)) is not None for item in every]
    except BudgetSpent:
        return None
    claim = f"in {fmean(decided):.1%} of episodes the frequency is decided before any setting"
    data = {"episodes": len(every), "decided": sum(decided)}
    return Finding("trivial", Standing.PROVED if any(decided) else Standing.REFUTED, suite, claim, data)


def ambiguous_share(suite: str, items: Episodes) -> Finding | None:
    """Mechanisms left when every property was set; only where the frequency may be a parent that is more than one."""
    every = [item for own in items for item in own]
    if any(not_enumerated(i.task) is not None or not i.task.allowance or not i.task.freq_parent for i in every):
        return None
    counts = [made[0].count for item in every if (made := after_every_setting(item)) is not None]
    unique = counts.count(1) / len(counts)
    claim = f"{fmean(counts):.2f} mechanisms are left on average after all settings; unique in {unique:.0%}"
    data = {"episodes": len(counts), "mean": fmean(counts), "unique": counts.count(1)}
    return Finding("ambiguous", Standing.PROVED, suite, claim, data)


def static_share(suite: str, items: Episodes) -> Finding | None:
    """Static records that hold no setting: then no graph between properties is decided by them."""
    traces = [own[0].task.trace for own in items]
    if not any(traces):
        return None
    without = sum(all(entry.property is None for entry in trace) for trace in traces)
    standing = Standing.PROVED if without else Standing.REFUTED
    claim = f"{without} of {len(traces)} static records hold no setting, so their graph is never decided"
    return Finding("never suffices", standing, suite, claim, {"records": len(traces), "without": without})


def duplicate_findings(suites: Suites) -> Iterator[Finding]:
    """Files that hold the same configs, whatever they are called."""
    names = list(suites)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            if _contents(suites[first]) == _contents(suites[second]):
                claim = f"the {len(suites[first])} configs are those of {second}, one by one"
                where = f"{first} = {second}"
                yield Finding("duplicate", Standing.PROVED, where, claim, {"configs": len(suites[first])})


def _contents(configs: Sequence[Config]) -> list[object]:
    return [
        (c.mechanism, c.settable, c.family, c.freq_parent, c.allowance, c.hidden, c.trace, c.presets) for c in configs
    ]


def leak_findings(suite: str, configs: Sequence[Config]) -> Iterator[Finding]:
    """Return what gives graphs away: names, the seed of the records, the order of keys."""
    left = [len(candidates(configs, made.mechanism.drawn, ())) for made in configs]
    claim = f"the names of the properties alone leave {min(left)} to {max(left)} of the file's {len(configs)} configs"
    yield Finding("leak", Standing.PROVED, f"{suite}: names", claim, {"least": min(left), "most": max(left)})
    if any(c.family.value != "linear" or c.trace for c in configs):
        return
    for kind, counted, words in (
        ("seed", _given_seed, "with the records' fixed seed, that is their bases, known"),
        ("key order", _given_order, "with the topological order of the released records' keys known"),
    ):
        counts = list(map(counted, configs))
        mean, decided = exp(fmean(map(log, counts))), counts.count(1)
        remaining = f"{mean:.3g} mechanisms are left on average before any setting"
        claim = f"{words}, {remaining}, a single one for {decided} of {len(counts)} configs"
        data = {"configs": len(counts), "geometric_mean": mean, "decided": decided}
        yield Finding("leak", Standing.PROVED, f"{suite}: {kind}", claim, data)


def _released_locals(made: Config) -> tuple[LabItem, list[Local]]:
    item = item_of_config(made, 0, records="released")
    evidence = evidence_of(replace(item.task, noise=False))
    return item, [local(evidence, node, bounded=False) for node in range(len(evidence.nodes))]


def _given_seed(made: Config) -> int:
    """Members whose bases in the released records are those that the seed draws."""
    item, found = _released_locals(made)
    bases = released_records(made)
    readings = np.array([[record[node] for node in item.task.nodes] for record in item.task.records])
    kept = []
    for own in found:
        node = item.task.nodes[own.node]
        if node != FREQUENCY:
            drawn = np.rint([b[node] * PER_UNIT for b in bases])
            own = own.where(np.asarray(np.all(own.bases(readings) == drawn, axis=1)))
        kept.append(own)
    return _count(kept)


def _given_order(made: Config) -> int:
    """Members whose edges go along the order in which the released code writes a record's keys."""
    item, found = _released_locals(made)
    order = list(values(made.mechanism, released_records(made)[0]))
    before = {node: order[:i] for i, node in enumerate(order)}
    nodes = item.task.nodes
    kept = []
    for own in found:
        allowed = sum(1 << i for i, node in enumerate(nodes) if node in before[nodes[own.node]])
        kept.append(own.where(np.asarray(own.masks & ~allowed == 0)))
    return _count(kept)


def _count(found: Sequence[Local]) -> int:
    options = {
        own.node: {int(m): int(n) for m, n in zip(*np.unique(own.masks, return_counts=True), strict=True)}
        for own in found
    }
    return total(Weights(options, 0))
