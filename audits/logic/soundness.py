"""Soundness of an item of logic models: its optimum, truth and labels are those of its family."""

from __future__ import annotations

import msgspec

from calibrant.audits.logic.evidence import evidence_of
from calibrant.audits.soundness import ItemIdentity, Soundness
from calibrant.dsl.logic.item import LogicItem
from calibrant.solvers.canonical import canonical_key
from calibrant.solvers.logic.canonical import model_structure, network_structure
from calibrant.solvers.logic.elimination.lattice import LatticeLimitError
from calibrant.solvers.logic.family import LogicFamily, solve_family
from calibrant.solvers.outcome import Found


def optimum_holds(item: LogicItem) -> str | None:
    """Compare the stated optimum with the family's; None without one, and where the family is not counted."""
    family = _family(item)
    if item.sealed is None or family is None:
        return None
    optimum = family.optimum
    return "" if optimum == item.sealed.optimum else f"misfit and size {item.sealed.optimum}, found {optimum}"


def truth_fits(item: LogicItem) -> str | None:
    """Return why the model behind the values is no member of the family; None without one."""
    family = _family(item)
    if item.sealed is None or family is None:
        return None
    return "" if family.fits(item.sealed.gold) else "the model behind the values is not within the tolerances"


def members_hold(item: LogicItem) -> str | None:
    """Compare the labelled number of members with the family's; None without the label."""
    family = _family(item)
    if family is None or "members" not in item.labels:
        return None
    stated = item.labels["members"]
    return "" if stated == str(family.count) else f"members {stated}, found {family.count}"


def explain_undecided(item: LogicItem) -> str | None:
    """Return why the held-out answers are open; "" if all models that fit give the same, None without questions."""
    family = _family(item)
    if family is None or not item.task.questions:
        return None
    try:
        number = len(family.verdicts())
    except LatticeLimitError:
        return "models that fit give too many different answers to list"
    return "" if number == 1 else f"models that fit give {number} different tables of held-out answers"


def duplicate_key(item: LogicItem) -> bytes:
    """Encode data, options, tolerances and questions."""
    task = item.task
    questions = [(sorted(question.on), sorted(question.inhibited)) for question in task.questions]
    return msgspec.json.encode((evidence_of(task), questions))


def _family(item: LogicItem) -> LogicFamily | None:
    outcome = solve_family(item.task)
    return outcome.value if isinstance(outcome, Found) else None


IDENTITY = ItemIdentity(
    "networks",
    duplicate_key,
    lambda item: () if item.sealed is None else (canonical_key(model_structure(item.sealed.gold)),),
    lambda item: canonical_key(network_structure(item.task.edges)),
)
SOUNDNESS = Soundness(
    {
        "the stated optimum is the least": optimum_holds,
        "the model behind the values fits": truth_fits,
        "stated members are those that fit": members_hold,
    },
    explain_undecided,
    IDENTITY,
)
