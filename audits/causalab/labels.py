"""Difficulty labels of a laboratory, for curricula and tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice

import numpy as np
import numpy.typing as npt

from calibrant.audits.causalab.items import mattering_edges
from calibrant.audits.causalab.spaces import space_of
from calibrant.dsl.causalab.generation import Plan, generate_items, with_labels
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import Mechanism, winnable
from calibrant.dsl.causalab.score import imec_size
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causalab.evidence import Floats, predict_frequency
from calibrant.solvers.causalab.experiments import candidates
from calibrant.solvers.causalab.space import WeightedDags


def generate_labelled(plan: Plan, seed: int, count: int, first: int = 0) -> Iterator[LabItem]:
    """Yield generated items with labels; items before index `first` are generated but not labelled."""
    for item in islice(generate_items(plan, seed, count), first, None):
        yield with_labels(item, labels(item))


def labels(item: LabItem) -> dict[str, float]:
    """Return the labels of an item; labels that need the list of fitting mechanisms are absent where it is too long.

    `fewest_settings` is absent, too, where the mechanism is outside the class with bases in the generator's range.

    nodes, edges
    imec: graphs in the Markov equivalence class before any setting
    members, members_bounded: mechanisms that fit the visible data, with unrestricted bases and with bases in the
        generator's range
    fewest_settings: least number of settings after which no further one narrows the members, bases in the generator's
        range; decidable: whether graph and frequency are decided then
    mattering: share of the edges on which the reactor crystal's frequency can depend; absent without edges
    winnable: whether any dialled frequency activates the reactor
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
    """Return the size of a smallest set of settings that narrows the members as far as all settings would.

    Also return whether graph and predicted frequency are then the same in all members. Each setting keeps the members
    with the truth's readings, independent of order and of earlier settings. So sets of properties are tried by size.
    `ValueError` if the truth is no member; `BudgetSpent` if members are too many to list.
    """
    members = list(space.members())
    true_index = next((i for i, member in enumerate(members) if _has_weights_of(member, truth)), None)
    if true_index is None:
        raise ValueError("the truth is no member of the space")
    agree = [_agree(space.readings(setting), true_index) for setting in candidates(space)]
    verdicts = [(member.edges, predict_frequency(member, space.evidence)) for member in members]
    # Settings only remove members, so the least count is reached by some set of the largest usable size.
    usable = min(allowance, len(agree))
    goal = min(_count_verdicts(agree, chosen, verdicts) for chosen in combinations(range(len(agree)), usable))
    for size in range(usable + 1):
        if any(_count_verdicts(agree, chosen, verdicts) == goal for chosen in combinations(range(len(agree)), size)):
            return size, goal == 1 and space.predicts
    raise AssertionError("some set of the largest size reaches the goal")


def _has_weights_of(member: Mechanism, truth: Mechanism) -> bool:
    # A mechanism is its weights: the readings do not identify the bases.
    return all(member.weights(node) == truth.weights(node) for node in truth.equations)


def _agree(readings: Floats, true_index: int) -> npt.NDArray[np.bool_]:
    agrees: npt.NDArray[np.bool_] = np.all(readings == readings[true_index], axis=1)
    return agrees


def _count_verdicts(
    agree: list[npt.NDArray[np.bool_]],
    chosen: tuple[int, ...],
    verdicts: list[tuple[frozenset[tuple[str, str]], float]],
) -> int:
    remaining = np.ones(len(verdicts), dtype=np.bool_)
    for i in chosen:
        remaining &= agree[i]
    return len({verdicts[i] for i in np.flatnonzero(remaining)})
