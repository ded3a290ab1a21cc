"""Items that the paper's tables are about: which laboratories belong beside their printed rows."""

from __future__ import annotations

from typing import NamedTuple

from calibrant.bench.core.answer_context import AnswerContext
from calibrant.dsl.causalab.configs import NUM_RECORDS
from calibrant.dsl.causalab.generation import PLANS
from calibrant.dsl.causalab.item import LabItem

OBSERVED = NUM_RECORDS + 1  # the records, and the manipulator crystal as it is
_HIDDEN = [*(f"hidden_n{n}" for n in (1, 2, 3)), *(f"hidden_vrange_pm{s}" for s in ("0p5", "5", "50"))]


class LabFacts(NamedTuple):
    """Properties of a laboratory on which printed rows depend.

    budget: observations shown and settings allowed
    """

    suite: str
    nodes: int
    budget: tuple[int, int]


class Declared(NamedTuple):
    """Items of one table.

    suites: of its rows, in their order; budget: None where the released one is meant
    """

    suites: tuple[str, ...]
    budget: tuple[int, int] | None
    words: str


def _suites(*names: str) -> str:
    return f"released suites {', '.join(names)}; {OBSERVED} observations and 4(k\N{MINUS SIGN}1) settings"


_PRINTED_SUITES: dict[str, tuple[str, ...]] = {
    "3": ("4nodes", "4nodes_quad_hard"),
    "4": ("4nodes", *(f"4nodes_{name}" for name in (*_HIDDEN, *(f"hidden_freqnode_n{n}" for n in (1, 2, 3))))),
    "5": ("4nodes", "4nodes_freqparent", "6nodes", "6nodes_freqparent"),
    "6": ("4nodes", "4nodes_golden", "6nodes", "6nodes_golden"),
    "7": tuple(f"{k}nodes" for k in range(3, 8)),
    "8": ("3nodes", "4nodes"),
}
_BUDGETS: dict[str, tuple[str, tuple[int, int], str]] = {
    "9": (
        "4nodes",
        (3, 12),
        "3 to 24 observations, interventions, or 3 observations and up to 24 interventions",
    ),
    "10": ("6nodes", (5, 20), "5 to 20 observations, interventions, or 5 observations and up to 20 interventions"),
    "11": ("4nodes", (3, 12), "3 to 12 observations, interventions, or 3 observations and up to 12 interventions"),
    "12": ("6nodes", (5, 20), "5 to 20 observations, interventions, or 5 observations and up to 20 interventions"),
}
DECLARED: dict[str, Declared] = {
    **{number: Declared(names, None, _suites(*names)) for number, names in _PRINTED_SUITES.items()},
    **{
        number: Declared((suite,), budget, f"suite {suite} with fixed budgets: {words}")
        for number, (suite, budget, words) in _BUDGETS.items()
    },
}


def lab_facts(context: AnswerContext, item: LabItem | None) -> LabFacts | None:
    """Return the facts of an answered item: its own, or those of the released suite of its name; None for neither."""
    if item is not None:
        return LabFacts(item.suite, len(item.task.nodes), (len(item.task.records) + 1, item.task.allowance))
    plan = PLANS.get(context.setting)
    if plan is None or context.stratum != f"{plan.nodes} nodes":
        return None
    return LabFacts(plan.suite, plan.nodes, _released_budget(plan.suite))


def _released_budget(suite: str) -> tuple[int, int]:
    plan = PLANS[suite]
    allowance = 4 * (plan.nodes - 1) if plan.allowance is None else plan.allowance
    return OBSERVED, 0 if plan.golden else allowance


def fits(number: str, facts: LabFacts | None) -> bool:
    """Return whether an item is one that a table is about."""
    declared = DECLARED[number]
    if facts is None or facts.suite not in declared.suites or PLANS[facts.suite].nodes != facts.nodes:
        return False
    return facts.budget == (declared.budget or _released_budget(facts.suite))
