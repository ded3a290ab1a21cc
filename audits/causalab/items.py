"""Findings about one laboratory, its soundness and its difficulty.

Most need the list of all mechanisms that fit the visible data (the members); where that is too long, they are absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, islice
from math import isclose
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from calibrant.audits.causalab import verify
from calibrant.audits.causalab.attribution import decided_frequency, space_of
from calibrant.audits.claims import ClaimStatus, Finding, ItemIdentity, Soundness, certify
from calibrant.dsl.causalab.episode import LabEpisode, LabStep
from calibrant.dsl.causalab.generation import Plan, generate_items, with_labels
from calibrant.dsl.causalab.item import Family, LabItem, Weights
from calibrant.dsl.causalab.mechanism import FREQUENCY, HIGHEST, Edge, Mechanism, winnable
from calibrant.dsl.causalab.score import imec_size
from calibrant.solvers.canonical import canonical_key
from calibrant.solvers.causalab.canonical import mechanism_structure
from calibrant.solvers.causalab.evidence import EXACT, Floats, evidence_of, misfit, predict_frequency, solve_linear
from calibrant.solvers.causalab.exact import solve
from calibrant.solvers.causalab.experiments import candidates
from calibrant.solvers.causalab.space import WeightedDags, predict_frequencies, reason_not_enumerable, weighted_dags
from calibrant.solvers.outcome import BudgetSpent, Found, Impossible

# --- Findings about one laboratory: unwinnable, vacuous, trivial, ambiguous, unusual bases ----------------------------


def item_findings(item: LabItem) -> list[Finding]:
    """Return every finding about an item; kinds: unwinnable, vacuous, trivial, ambiguous, unusual-bases."""
    makers = (unwinnable_finding, vacuous_finding, trivial_finding, ambiguous_finding, unusual_bases_finding)
    findings = [finding_of(item) for finding_of in makers]
    return [finding for finding in findings if finding is not None]


def unwinnable_finding(item: LabItem) -> Finding | None:
    """Return the finding that no dialled frequency activates the reactor; None if one does."""
    target = item.sealed.target
    if winnable(target, item.task.tries):
        return None
    claim = f"the target {target:g} cannot be dialled: the dial ends at {HIGHEST:g}, and the last try never succeeds"
    certificate = certify(
        verify.UNWINNABLE, "frequencies from 0 to 10,000", verify.item_evidence(item), {"target": target}
    )
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
    """Return the finding that no prediction of the reactor's frequency can depend on some edges; None without any."""
    edges = item.sealed.mechanism.edges
    idle = sorted(edges - mattering_edges(item))
    if not idle:
        return None
    data = {"edges": [list(edge) for edge in idle]}
    certificate = certify(verify.CANNOT_MATTER, "the item's mechanism", verify.item_evidence(item), data)
    why = "the reactor shows what they lead to, or the frequency does not follow from it"
    claim = f"{len(idle)} of {len(edges)} edges cannot matter for the prediction: {why}"
    figures = {"idle": len(idle), "edges": len(edges)}
    return Finding("vacuous", ClaimStatus.PROVED, item.id, claim, figures, certificate)


def trivial_finding(item: LabItem) -> Finding | None:
    """Return the finding that the records decide the frequency; None if they do not, or members are not enumerated.

    Bases may have any value; if that leaves it open and the item's bases are usual, only the generator's range.
    """
    try:
        space = space_of(item.task)
        bounded = decided_frequency(space) is None
        if bounded and unusual_bases(item):
            return None
        space = space_of(item.task, bounded=True) if bounded else space
        frequency = decided_frequency(space)
    except BudgetSpent:
        return None
    if frequency is None:
        return None
    data = {"frequency": frequency} | ({"base": list(verify.BASE_RANGE)} if bounded else {})
    claim = f"the records decide the frequency: {frequency:g}, before any setting"
    certificate = None  # none for quadratic mechanisms: a verifier cannot enumerate real weights
    if isinstance(space, WeightedDags):
        certificate = certify(verify.FREQUENCY_DECIDED, space.in_words, verify.item_evidence(item), data)
    figures: dict[str, int | float | str] = {"frequency": frequency, "members": str(space.count)}
    return Finding("trivial", ClaimStatus.PROVED, item.id, claim, figures, certificate)


def unusual_bases(item: LabItem) -> list[str]:
    """Describe the bases of a linear item that the generator never draws; some methods and labels exclude these."""
    mechanism, bases = item.sealed.mechanism, item.sealed.bases
    if item.task.family is not Family.LINEAR or item.task.weights is not Weights.SMALL:
        return []  # no method assumes a range of bases for other classes
    low, high = verify.BASE_RANGE
    base = mechanism.frequency.base or 0.0
    described = [] if low <= base <= high and base.is_integer() else [f"the frequency's base {base:g}"]
    crystals = (*bases.records, bases.manipulator, bases.reactor)
    bases_outside = sorted(
        {v for crystal in crystals for v in crystal.values() if not (0 <= v <= 100 and v.is_integer())}
    )
    return described + (
        [f"{len(bases_outside)} bases of properties, the first {bases_outside[0]:g}"] if bases_outside else []
    )


def unusual_bases_finding(item: LabItem) -> Finding | None:
    """Return the finding that bases are outside the generator's range, which some methods assume; None if inside."""
    described = unusual_bases(item)
    if not described:
        return None
    low, high = verify.BASE_RANGE
    usual = f"whole numbers, {low:g} to {high:g} for the frequency and 0 to 100 for properties"
    claim = (
        f"{' and '.join(described)}: the generator draws {usual}; greedy, posterior, abstain and total-effects assume "
        "these unless the evidence rules them out, random draws them, and the labels members_bounded and "
        "fewest_settings count them"
    )
    return Finding("unusual-bases", ClaimStatus.PROVED, item.id, claim, {"bases": "; ".join(described)})


def after_every_setting(item: LabItem) -> tuple[WeightedDags, Sequence[LabStep]] | None:
    """Return the mechanisms that fit after every property was set once within the allowance, bases unrestricted.

    Also return the steps; None if mechanisms are not enumerated.
    """
    if reason_not_enumerable(item.task) is not None:
        return None
    episode = LabEpisode(item)
    if item.task.allowance:
        solve_linear(episode)  # for its steps: it sets every property once
    return weighted_dags(evidence_of(item.task, episode.steps), bounded=False), episode.steps


def ambiguous_finding(item: LabItem) -> Finding | None:
    """Return the finding that no settings separate two mechanisms, refuted if only one fits; None if none is listed."""
    outcome = after_every_setting(item)
    if outcome is None or not outcome[0].count:
        return None
    space, steps = outcome
    evidence = verify.item_evidence(item)
    settings = [[step.action["set"], step.action["value"]] for step in steps if step.reading is not None]
    where = "by the static records" if not item.task.allowance else "after every property was set"
    data: dict[str, int | float | str] = {"members": str(space.count), "settings": len(settings)}
    if space.count == 1:
        graph: dict[str, Any] = {"edges": [list(edge) for edge in sorted(space.certain_edges)], "settings": settings}
        certificate = certify(verify.GRAPH_DECIDED, space.in_words, evidence, graph)
        return Finding("ambiguous", ClaimStatus.REFUTED, item.id, f"one mechanism is left {where}", data, certificate)
    pair = {"members": _two_members(space), "settings": settings}
    certificate = certify(verify.AMBIGUOUS, space.in_words, evidence, pair)
    claim = f"{space.count} mechanisms are left {where}"
    return Finding("ambiguous", ClaimStatus.PROVED, item.id, claim, data, certificate)


def _two_members(space: WeightedDags) -> list[dict[str, Any]]:
    """Return two different members of several, sampled with a fixed seed."""
    rng = np.random.default_rng(0)
    members: dict[str, dict[str, Any]] = {}
    while len(members) < 2:
        record = verify.equations_record(space.sample(rng, 1)[0])
        members[str(record)] = record
    return list(members.values())


# --- Difficulty labels of a laboratory, for curricula and tables ------------------------------------------------------


def generate_labelled(plan: Plan, seed: int, count: int, first: int = 0) -> Iterator[LabItem]:
    """Yield generated items with labels; items before index `first` are generated but not labelled."""
    for item in islice(generate_items(plan, seed, count), first, None):
        yield with_labels(item, labels(item))


def labels(item: LabItem) -> dict[str, float]:
    """Return the labels of an item; those that need the list of members are absent if it is too long.

    `fewest_settings` is also absent if the true mechanism is not in the class with bases in the generator's range.

    nodes, edges: their numbers
    imec: number of graphs in the Markov equivalence class before any setting
    members, members_bounded: numbers of mechanisms that fit the visible data, with unrestricted bases and with bases in
        the generator's range
    fewest_settings: least number of settings after which no further one removes members, with bases in the generator's
        range; decidable: 1 if graph and frequency are then decided, else 0
    mattering: share of the edges on which the reactor crystal's frequency can depend; absent without edges
    winnable: 1 if some dialled frequency activates the reactor, else 0
    """
    edges = item.sealed.mechanism.edges
    values: dict[str, float] = {
        "nodes": len(item.task.nodes),
        "edges": len(edges),
        "imec": imec_size(edges),
    }
    if edges:
        values["mattering"] = len(mattering_edges(item)) / len(edges)
    values["winnable"] = float(winnable(item.sealed.target, item.task.tries))
    try:
        values["members"] = space_of(item.task).count
        bounded = space_of(item.task, bounded=True)
        values["members_bounded"] = bounded.count
        # Only exact readings rule members out, and only weighted DAGs are listed.
        if isinstance(bounded, WeightedDags) and not item.task.noise and bounded.fits(item.sealed.mechanism):
            fewest, decided = fewest_settings(bounded, item.sealed.mechanism, item.task.allowance)
            values |= {"fewest_settings": fewest, "decidable": float(decided)}
    except BudgetSpent:
        pass
    return values


def fewest_settings(space: WeightedDags, truth: Mechanism, allowance: int) -> tuple[int, bool]:
    """Return the size of a smallest set of settings after which no further setting removes a verdict.

    A verdict is a graph with a predicted frequency. Also return whether one verdict remains. Each setting keeps the
    members with the truth's readings, independent of order and of earlier settings. So sets are tried by size.
    `ValueError` if the truth is no member; `BudgetSpent` if members are too many to list.
    """
    true_index = find_truth(truth, space)
    agree = [_agree(space.readings(setting), true_index) for setting in candidates(space)]
    verdicts = number_verdicts(space)
    # Settings only remove members, so the least count is reached by some set of the largest usable size.
    usable = min(allowance, len(agree))
    goal = min(_count_verdicts(agree, chosen, verdicts) for chosen in combinations(range(len(agree)), usable))
    for size in range(usable + 1):
        if any(_count_verdicts(agree, chosen, verdicts) == goal for chosen in combinations(range(len(agree)), size)):
            return size, goal == 1 and space.predicts
    raise AssertionError("some set of the largest size reaches the goal")


def find_truth(truth: Mechanism, space: WeightedDags) -> int:
    """Return the place of the member with the truth's weights; readings do not identify the bases."""
    nodes, weights = space.evidence.nodes, np.zeros(space.matrices.shape[1:])
    for node in truth.equations:
        for parent, weight in truth.weights(node).items():
            weights[nodes.index(node), nodes.index(parent)] = weight
    places = np.flatnonzero((space.matrices == weights).all(axis=(1, 2)))
    if not len(places):
        raise ValueError("the truth is no member of the space")
    return int(places[0])


def number_verdicts(space: WeightedDags) -> npt.NDArray[np.int_]:
    """Return a number for each member, the same for members with the same graph and predicted frequency."""
    if space.predicts:  # by the weights of the frequency alone: members need not be written out
        vectors, values = space.locals[-1].vectors, predict_frequencies(space.locals[-1], space.evidence)
        by_vector = dict(zip(map(tuple, vectors.tolist()), values.tolist(), strict=True))
        frequencies = [by_vector[tuple(row)] for row in space.matrices[:, -1].tolist()]
    else:
        frequencies = [predict_frequency(member, space.evidence) for member in space.members()]
    graphs = (space.matrices != 0).reshape(len(space.matrices), -1)
    numbers: dict[tuple[bytes, float], int] = {}
    verdicts = zip((graph.tobytes() for graph in graphs), frequencies, strict=True)
    return np.array([numbers.setdefault(verdict, len(numbers)) for verdict in verdicts], dtype=np.int_)


def _agree(readings: Floats, true_index: int) -> npt.NDArray[np.bool_]:
    agrees: npt.NDArray[np.bool_] = np.all(readings == readings[true_index], axis=1)
    return agrees


def _count_verdicts(
    agree: list[npt.NDArray[np.bool_]],
    chosen: tuple[int, ...],
    verdicts: npt.NDArray[np.int_],
) -> int:
    """Count the verdicts of the members that agree with the truth on all chosen settings."""
    remaining = np.ones(len(verdicts), dtype=np.bool_)
    for i in chosen:
        remaining &= agree[i]
    return len(np.unique(verdicts[remaining]))


# --- Soundness of a laboratory: its record is true of it, and it can be decided ---------------------------------------


def mechanism_explains(item: LabItem) -> str | None:
    """Return why the mechanism does not explain the static trace, "" if it does; None without a trace.

    Records and baseline need no check: they are recomputed when an item is parsed.
    """
    if not item.task.trace:
        return None
    worst = misfit(item.sealed.mechanism, evidence_of(item.task), reading=item.task.reading, shifts=())
    return f"a value of the static trace is off by {worst:g}" if worst > EXACT else ""


def labels_hold(item: LabItem) -> str | None:
    """Return which stated labels differ from recomputed ones, "" if none does; None without labels."""
    stated = item.sealed.labels
    if not stated:
        return None
    try:
        recomputed = labels(item)
    except ValueError as error:  # what is shown contradicts the mechanism
        return str(error)
    wrong = [name for name in sorted(stated) if name not in recomputed or not isclose(stated[name], recomputed[name])]
    return "; ".join(f"{name} {stated[name]:g}, found {recomputed.get(name, float('nan')):g}" for name in wrong)


def explain_undecided(item: LabItem) -> str | None:
    """Return why the exact solver does not identify the graph; "" if it does."""
    outcome = solve(LabEpisode(item))
    if isinstance(outcome, Impossible):
        return f"nothing fits: {outcome.exhausted}"
    if not isinstance(outcome, Found):
        return outcome.reached
    if outcome.value.mechanism.edges != item.sealed.mechanism.edges:
        return "another graph reads the same"
    return ""


def duplicate_key(item: LabItem) -> bytes:
    """Encode all but the item's id and labels; the seed of the noise is part of the key, as it decides readings."""
    return msgspec.json.encode((item.task, replace(item.sealed, labels={})))


IDENTITY = ItemIdentity(
    "laboratories",
    duplicate_key,
    lambda item: (canonical_key(mechanism_structure(item.sealed.mechanism)),),
    lambda item: canonical_key(mechanism_structure(item.sealed.mechanism, with_functions=False)),
)


SOUNDNESS = Soundness(
    {"the mechanism explains the static trace": mechanism_explains, "stated labels are those of the item": labels_hold},
    explain_undecided,
    IDENTITY,
)
