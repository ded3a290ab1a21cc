"""Items that the paper's tables are about: which laboratories belong beside their printed rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from calibrant.bench.core.answer_context import AnswerContext
from calibrant.dsl.causalab.configs import NUM_RECORDS
from calibrant.dsl.causalab.generation import PLANS
from calibrant.dsl.causalab.item import LabItem

_HIDDEN = [*(f"hidden_n{n}" for n in (1, 2, 3)), *(f"hidden_vrange_pm{s}" for s in ("0p5", "5", "50"))]


class LabFacts(NamedTuple):
    """Properties of a laboratory on which printed rows depend.

    budget: records shown, without the manipulator crystal as it is, and settings allowed
    """

    suite: str
    nodes: int
    budget: tuple[int, int]


class Declared(NamedTuple):
    """Items of one table.

    suites: of its rows, in their order; any_budget: False where the released one is meant
    """

    suites: tuple[str, ...]
    any_budget: bool
    words: str


def _suites(*names: str) -> str:
    return f"released suites {', '.join(names)}; {NUM_RECORDS} records and 4(k\N{MINUS SIGN}1) settings"


_PRINTED_SUITES: dict[str, tuple[str, ...]] = {
    "3": ("4nodes", "4nodes_quad_hard"),
    "4": ("4nodes", *(f"4nodes_{name}" for name in (*_HIDDEN, *(f"hidden_freqnode_n{n}" for n in (1, 2, 3))))),
    "5": ("4nodes", "4nodes_freqparent", "6nodes", "6nodes_freqparent"),
    "6": ("4nodes", "4nodes_golden", "6nodes", "6nodes_golden"),
    "7": tuple(f"{k}nodes" for k in range(3, 8)),
    "8": ("3nodes", "4nodes"),
}
_BUDGETS: dict[str, tuple[str, str]] = {
    "9": (
        "4nodes",
        "3 to 24 observations, interventions, or 3 observations and up to 24 interventions",
    ),
    "10": ("6nodes", "5 to 20 observations, interventions, or 5 observations and up to 20 interventions"),
    "11": ("4nodes", "3 to 12 observations, interventions, or 3 observations and up to 12 interventions"),
    "12": ("6nodes", "5 to 20 observations, interventions, or 5 observations and up to 20 interventions"),
}
DECLARED: dict[str, Declared] = {
    **{number: Declared(names, False, _suites(*names)) for number, names in _PRINTED_SUITES.items()},
    **{
        number: Declared((suite,), True, f"suite {suite} by budget: {words}")
        for number, (suite, words) in _BUDGETS.items()
    },
}


def lab_facts(context: AnswerContext, item: LabItem | None, score: Mapping[str, Any]) -> LabFacts | None:
    """Return the facts of an answered item: its own, or those of the released suite of its name; None for neither.

    score: states the budget, unless an earlier version wrote it
    """
    if item is not None:
        return LabFacts(item.suite, len(item.task.nodes), (len(item.task.records), item.task.allowance))
    plan = PLANS.get(context.setting)
    if plan is None or context.stratum != f"{plan.nodes} nodes":
        return None
    records, allowance = _released_budget(plan.suite)
    stated = score.get("records"), score.get("allowance")
    budget = (
        records if not isinstance(stated[0], int) else stated[0],
        allowance if not isinstance(stated[1], int) else stated[1],
    )
    return LabFacts(plan.suite, plan.nodes, budget)


def _released_budget(suite: str) -> tuple[int, int]:
    plan = PLANS[suite]
    allowance = 4 * (plan.nodes - 1) if plan.allowance is None else plan.allowance
    return NUM_RECORDS, 0 if plan.golden else allowance


def fits(number: str, facts: LabFacts | None) -> bool:
    """Return whether an item is one that a table is about."""
    declared = DECLARED[number]
    if facts is None or facts.suite not in declared.suites or PLANS[facts.suite].nodes != facts.nodes:
        return False
    return declared.any_budget or facts.budget == _released_budget(facts.suite)
