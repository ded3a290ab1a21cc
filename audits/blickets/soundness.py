"""Soundness of a blicket item: its record is true of it, and it can be decided."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from calibrant.audits.blickets.difficulty import difficulty, steps_needed
from calibrant.audits.soundness import ItemIdentity, Soundness
from calibrant.dsl.blickets.item import BlicketItem, SwitchBy, contradiction
from calibrant.solvers.blickets.canonical import rules_structure
from calibrant.solvers.canonical import canonical_key
from calibrant.solvers.outcome import Impossible, OutOfBudget

EASY_LABELS = frozenset({"steps", "winnable", "certifiable"})


def labels_hold(item: BlicketItem) -> str | None:
    """Compare the labels of difficulty with recomputed ones; None without such labels."""
    stated = {name for name in item.labels if name in EASY_LABELS or name.startswith("members_")}
    if not stated:
        return None
    recomputed = difficulty(item).as_labels()
    wrong = [f"{name} {item.labels[name]}, found {recomputed.get(name, 'none')}" for name in sorted(stated)]
    return "; ".join(
        w for w, name in zip(wrong, sorted(stated), strict=True) if recomputed.get(name) != item.labels[name]
    )


def condition_holds(item: BlicketItem) -> str:
    """Return why the stated condition is not that of the item's mechanism; "" if it is."""
    return contradiction(item)


def switches_come(item: BlicketItem) -> str | None:
    """Return why no sequence of moves reaches the last switch; "" if one does, None for items without a switch."""
    sealed = item.sealed
    if not sealed.switches:
        return None
    last, unit = sealed.switches[-1], "moves" if sealed.switch_by is SwitchBy.STEPS else "activations"
    return f"after {last} {unit}, of {item.task.budget} moves" if last >= item.task.budget else ""


def explain_undecided(item: BlicketItem) -> str | None:
    """Return why the exact learner of the item's condition does not come to a right answer.

    "" if it does, None where no exact learner knows the condition.
    """
    outcome = steps_needed(item)
    match outcome:
        case OutOfBudget():
            return outcome.reached
        case Impossible():
            return None
        case _:
            return ""


def duplicate_key(item: BlicketItem) -> bytes:
    """Encode all but id and labels, and without noise its draws, which nothing shows."""
    sealed = item.sealed if item.sealed.p < 1 else replace(item.sealed, noise_seed=0, draws=())
    return msgspec.json.encode(replace(item, id="", labels={}, sealed=sealed))


IDENTITY = ItemIdentity(
    "rules",
    duplicate_key,
    lambda item: (canonical_key(rules_structure(item.sealed.mechanisms, item.task.n)),),
    lambda item: canonical_key(rules_structure(item.sealed.mechanisms, item.task.n, with_functions=False)),
)


SOUNDNESS = Soundness(
    {
        "the condition is that of the mechanism": condition_holds,
        "stated labels are those of the item": labels_hold,
        "the last switch is within the budget": switches_come,
    },
    explain_undecided,
    IDENTITY,
)
