"""Whether a blicket item is what its record says, and can be decided."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from calibrant.audits.blickets.difficulty import difficulty, steps_needed
from calibrant.audits.soundness import Soundness
from calibrant.dsl.blickets.conditions import contradiction
from calibrant.dsl.blickets.item import BlicketItem, SwitchBy
from calibrant.solvers.outcome import Impossible, OutOfBudget

EASY_LABELS = frozenset({"steps", "winnable", "certifiable"})


def labels_hold(item: BlicketItem) -> str | None:
    """Labels of difficulty, where there are any, recomputed."""
    stated = {name for name in item.labels if name in EASY_LABELS or name.startswith("members_")}
    if not stated:
        return None
    found = difficulty(item).as_labels()
    wrong = [f"{name} {item.labels[name]}, found {found.get(name, 'none')}" for name in sorted(stated)]
    return "; ".join(w for w, name in zip(wrong, sorted(stated), strict=True) if found.get(name) != item.labels[name])


def condition_holds(item: BlicketItem) -> str:
    """The condition that the item is filed under, and that an informed agent is told, is that of its mechanism."""
    return contradiction(item)


def switches_come(item: BlicketItem) -> str | None:
    """A switch that no sequence of moves reaches contradicts the condition that the item is filed under."""
    sealed = item.sealed
    if not sealed.switches:
        return None
    last, counted = sealed.switches[-1], "moves" if sealed.switch_by is SwitchBy.STEPS else "activations"
    return f"after {last} {counted}, of {item.task.budget} moves" if last >= item.task.budget else ""


def undecided(item: BlicketItem) -> str | None:
    """The exact learner of the item's own condition does not come to a right answer; None where there is no such."""
    found = steps_needed(item)
    match found:
        case OutOfBudget():
            return found.reached
        case Impossible():
            return None
        case _:
            return ""


def same(item: BlicketItem) -> bytes | None:
    """All but id, labels and the seed of noise; with noise every item draws anew."""
    if item.sealed.p < 1:
        return None
    return msgspec.json.encode(replace(item, id="", labels={}, sealed=replace(item.sealed, noise_seed=0)))


SOUNDNESS = Soundness(
    {
        "the condition is that of the mechanism": condition_holds,
        "stated labels are those of the item": labels_hold,
        "the last switch is within the budget": switches_come,
    },
    undecided,
    same,
)
