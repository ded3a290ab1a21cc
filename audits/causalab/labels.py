"""How hard a laboratory is, as numbers that a trainer or a table can choose by."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice

import numpy as np
import numpy.typing as npt

from calibrant.audits.causalab.items import mattering_edges
from calibrant.audits.causalab.spaces import space_of
from calibrant.dsl.causalab.equivalence import imec_size
from calibrant.dsl.causalab.generation import Plan, generate_items, with_labels
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import Mechanism
from calibrant.dsl.causalab.reactor import winnable
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causalab.evidence import Floats
from calibrant.solvers.causalab.experimenter import candidates
from calibrant.solvers.causalab.replay import predicted
from calibrant.solvers.causalab.space import WeightedDags


def labelled(plan: Plan, seed: int, count: int, first: int = 0) -> Iterator[LabItem]:
    """Generated items with their labels. first: those before it are passed over, and cost little"""
    for item in islice(generate_items(plan, seed, count), first, None):
        yield with_labels(item, labels(item))


def labels(item: LabItem) -> dict[str, float]:
    """The labels of an item; those that rest on members are left out where members are not enumerated.

    So are the settings that decide where the mechanism is no member of the class with bases as they are drawn.

    nodes, edges
    imec: graphs in the Markov equivalence class before any setting
    members, members_bounded: mechanisms that fit what is shown, with any bases and with bases as they are drawn
    fewest_settings: of settings after which nothing more can be decided, with bases as they are drawn (see
        `fewest_settings`); decidable: whether graph and frequency are decided then
    mattering: share of the edges on which the reactor crystal's frequency can depend; absent without edges
    winnable: whether any dialled frequency activates the reactor
    """
    edges = item.sealed.mechanism.edges
    found: dict[str, float] = {
        "nodes": len(item.task.nodes),
        "edges": len(edges),
        "imec": imec_size(edges),
    }
    if edges:
        found["mattering"] = len(mattering_edges(item)) / len(edges)
    found["winnable"] = float(winnable(item.sealed.target, item.task.tries))
    try:
        found["members"] = space_of(item.task).count
        bounded = space_of(item.task, bounded=True)
        found["members_bounded"] = bounded.count
        if isinstance(bounded, WeightedDags) and not item.task.noise and bounded.fits(item.sealed.mechanism):
            fewest, decided = fewest_settings(bounded, item.sealed.mechanism, item.task.allowance)
            found |= {"fewest_settings": fewest, "decidable": float(decided)}
    except BudgetSpent:
        pass
    return found


def fewest_settings(space: WeightedDags, truth: Mechanism, allowance: int) -> tuple[int, bool]:
    """The least number of settings after which no further one decides anything, and whether all is decided then.

    What a setting of a property tells is which members read as the truth does, whatever was set before: the effects of
    its change. So only the set of properties counts, and sets are tried by size. Members are told apart by graph and
    predicted frequency. `ValueError` if the truth is no member; `BudgetSpent` if members are too many to list.
    """
    members = list(space.members())
    own = next((i for i, member in enumerate(members) if _same(member, truth)), None)
    if own is None:
        raise ValueError("the truth is no member of the space")
    agree = [_agree(space.readings(setting), own) for setting in candidates(space)]
    verdicts = [(member.edges, predicted(member, space.evidence)) for member in members]
    usable = min(allowance, len(agree))
    goal = min(_verdicts_left(agree, chosen, verdicts) for chosen in combinations(range(len(agree)), usable))
    for size in range(usable + 1):
        if any(_verdicts_left(agree, chosen, verdicts) == goal for chosen in combinations(range(len(agree)), size)):
            return size, goal == 1 and space.predicts
    raise AssertionError("some set of the largest size reaches the goal")


def _same(member: Mechanism, truth: Mechanism) -> bool:
    return all(member.weights(node) == truth.weights(node) for node in truth.equations)


def _agree(readings: Floats, own: int) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = np.all(readings == readings[own], axis=1)
    return found


def _verdicts_left(
    agree: list[npt.NDArray[np.bool_]],
    chosen: tuple[int, ...],
    verdicts: list[tuple[frozenset[tuple[str, str]], float]],
) -> int:
    left = np.ones(len(verdicts), dtype=np.bool_)
    for i in chosen:
        left &= agree[i]
    return len({verdicts[i] for i in np.flatnonzero(left)})
