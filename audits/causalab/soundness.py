"""Soundness of a laboratory: its record is true of it, and it can be decided."""

from __future__ import annotations

from dataclasses import replace
from math import isclose

import msgspec

from calibrant.audits.causalab.labels import labels
from calibrant.audits.soundness import ItemIdentity, Soundness
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.item import LabItem
from calibrant.solvers.canonical import canonical_key
from calibrant.solvers.causalab.canonical import mechanism_structure
from calibrant.solvers.causalab.evidence import EXACT, evidence_of, misfit
from calibrant.solvers.causalab.exact import solve
from calibrant.solvers.outcome import Found, Impossible


def mechanism_explains(item: LabItem) -> str | None:
    """Return why the mechanism does not explain the static trace; records and baseline are recomputed on reading."""
    if not item.task.trace:
        return None
    worst = misfit(item.sealed.mechanism, evidence_of(item.task), reading=item.task.reading, shifts=())
    return f"a value of the static trace is off by {worst:g}" if worst > EXACT else ""


def labels_hold(item: LabItem) -> str | None:
    """Compare stated labels with recomputed ones; None without labels."""
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
    """Encode all but the item's names and labels; noise counts with its seed, which decides what settings show."""
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
