"""Findings about one laboratory: unwinnable, vacuous, trivial, ambiguous.

Each rests on the space of all linear mechanisms with small weights that fit the visible data, where it is enumerated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.audits.causalab.certificates import (
    AMBIGUOUS,
    CANNOT_MATTER,
    FREQUENCY_DECIDED,
    GRAPH_DECIDED,
    UNWINNABLE,
    equations_record,
    item_evidence,
)
from calibrant.audits.causalab.spaces import decided_frequency, space_of
from calibrant.audits.claims import ClaimStatus, Finding, certify
from calibrant.dsl.causalab.episode import LabEpisode, LabStep
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY, HIGHEST, Edge, winnable
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causalab.evidence import evidence_of
from calibrant.solvers.causalab.linear import solve_linear
from calibrant.solvers.causalab.space import WeightedDags, reason_not_enumerable, weighted_dags

BASE_RANGE = (15.0, 25.0)  # of the frequency's base, as dsl.causalab.generation draws it


def item_findings(item: LabItem) -> list[Finding]:
    """Return every finding about an item; kinds: unwinnable, vacuous, trivial, ambiguous."""
    findings = [unwinnable_finding(item), vacuous_finding(item), trivial_finding(item), ambiguous_finding(item)]
    return [finding for finding in findings if finding is not None]


def unwinnable_finding(item: LabItem) -> Finding | None:
    """Return the finding that no dialled frequency activates the reactor; None if one does."""
    target = item.sealed.target
    if winnable(target, item.task.tries):
        return None
    claim = f"the target {target:g} cannot be dialled: the dial ends at {HIGHEST:g}, and the last try never succeeds"
    certificate = certify(UNWINNABLE, "frequencies from 0 to 10,000", item_evidence(item), {"target": target})
    data = {"target": target, "tries": item.task.tries}
    return Finding("unwinnable", ClaimStatus.PROVED, item.id, claim, data, certificate)


def mattering_edges(item: LabItem) -> frozenset[Edge]:
    """Return the edges that the reactor crystal's frequency can depend on, given its visible values.

    Values are computed forward only: a visible node is read, never inverted to learn about its parents.
    """
    mechanism, reactor = item.sealed.mechanism, item.task.reactor
    edges: set[Edge] = set()
    open_nodes = {FREQUENCY}
    for node in reversed(mechanism.order):
        if node in open_nodes:
            parents = mechanism.equations[node].parents
            edges |= {(parent, node) for parent in parents}
            open_nodes |= {parent for parent in parents if parent not in reactor}
    return frozenset(edges)


def vacuous_finding(item: LabItem) -> Finding | None:
    """Return the edges that no prediction of the reactor crystal can depend on; None without any."""
    edges = item.sealed.mechanism.edges
    idle = sorted(edges - mattering_edges(item))
    if not idle:
        return None
    data = {"edges": [list(edge) for edge in idle]}
    certificate = certify(CANNOT_MATTER, "the item's mechanism", item_evidence(item), data)
    why = "the reactor shows what they lead to, or the frequency does not follow from it"
    claim = f"{len(idle)} of {len(edges)} edges cannot matter for the prediction: {why}"
    figures = {"idle": len(idle), "edges": len(edges)}
    return Finding("vacuous", ClaimStatus.PROVED, item.id, claim, figures, certificate)


def trivial_finding(item: LabItem) -> Finding | None:
    """Return the finding that the records decide the frequency; None if they do not, or nothing is enumerated."""
    try:
        space = space_of(item.task)
        bounded = decided_frequency(space) is None
        space = space_of(item.task, bounded=True) if bounded else space
        frequency = decided_frequency(space)
    except BudgetSpent:
        return None
    if frequency is None:
        return None
    data = {"frequency": frequency} | ({"base": list(BASE_RANGE)} if bounded else {})
    claim = f"the records decide the frequency: {frequency:g}, before any setting"
    certificate = None  # of quadratic mechanisms: their real weights are no list that a checker could go through
    if isinstance(space, WeightedDags):
        certificate = certify(FREQUENCY_DECIDED, space.in_words, item_evidence(item), data)
    figures: dict[str, int | float | str] = {"frequency": frequency, "members": str(space.count)}
    return Finding("trivial", ClaimStatus.PROVED, item.id, claim, figures, certificate)


def after_every_setting(item: LabItem) -> tuple[WeightedDags, Sequence[LabStep]] | None:
    """Return the mechanisms that fit after every property was set once within the allowance, bases unrestricted.

    None where mechanisms are not enumerated.
    """
    if reason_not_enumerable(item.task) is not None:
        return None
    episode = LabEpisode(item)
    if item.task.allowance:
        solve_linear(episode)  # for its steps: it sets every property once
    return weighted_dags(evidence_of(item.task, episode.steps), bounded=False), episode.steps


def ambiguous_finding(item: LabItem) -> Finding | None:
    """Prove that no number of settings separates two mechanisms, or refute it where only one fits."""
    outcome = after_every_setting(item)
    if outcome is None or not outcome[0].count:
        return None
    space, steps = outcome
    evidence = item_evidence(item)
    settings = [[step.action["set"], step.action["value"]] for step in steps if step.reading is not None]
    where = "by the static records" if not item.task.allowance else "after every property was set"
    data: dict[str, int | float | str] = {"members": str(space.count), "settings": len(settings)}
    if space.count == 1:
        graph: dict[str, Any] = {"edges": [list(edge) for edge in sorted(space.certain_edges)], "settings": settings}
        certificate = certify(GRAPH_DECIDED, space.in_words, evidence, graph)
        return Finding("ambiguous", ClaimStatus.REFUTED, item.id, f"one mechanism is left {where}", data, certificate)
    pair = {"members": _two_members(space), "settings": settings}
    certificate = certify(AMBIGUOUS, space.in_words, evidence, pair)
    claim = f"{space.count} mechanisms are left {where}"
    return Finding("ambiguous", ClaimStatus.PROVED, item.id, claim, data, certificate)


def _two_members(space: WeightedDags) -> list[dict[str, Any]]:
    """Return two different members of several, sampled with a fixed seed."""
    rng = np.random.default_rng(0)
    members: dict[str, dict[str, Any]] = {}
    while len(members) < 2:
        record = equations_record(space.sample(rng, 1)[0])
        members[str(record)] = record
    return list(members.values())
