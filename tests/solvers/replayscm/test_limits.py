"""Problems out of reach of dynamic programming over subsets: said at once, in words."""

from __future__ import annotations

import pytest

from dsl.formulas.text import STANDARD
from dsl.replayscm.disclosure import Disclosure, HiddenOrder, HiddenRoots, Ordered
from dsl.replayscm.problem import Task, TaskKind
from dsl.replayscm.world import Intervention, Panel, World
from solvers.outcome import Found, OutOfBudget
from solvers.replayscm.exact import solve

NAMES_30 = tuple(f"X{i}" for i in range(1, 31))


@pytest.mark.parametrize(
    ("disclosure", "reason"),
    [
        (HiddenOrder(NAMES_30, NAMES_30[:3]), "27 variables of unknown order"),
        (HiddenRoots(NAMES_30, 20), "more than 10000 root sets"),
    ],
)
def test_what_subset_programming_cannot_reach_is_said_at_once(disclosure: Disclosure, reason: str) -> None:
    world = World("w", Intervention(), NAMES_30, ("u0", "u1"), tuple(i % 4 for i in range(30)))
    kind = TaskKind.ROOTS if isinstance(disclosure, HiddenRoots) else TaskKind.SCM
    task = Task(kind, disclosure, STANDARD, Panel(NAMES_30, (world,)), shares_units=False, num_heldout=0)
    outcome = solve(task)
    assert isinstance(outcome, OutOfBudget)
    assert reason in outcome.reached


def test_a_known_order_has_no_such_limit() -> None:
    world = World("w", Intervention(), NAMES_30, ("u0", "u1"), tuple((i % 2) + 1 for i in range(30)))
    disclosure = Ordered(NAMES_30, NAMES_30[:3])
    task = Task(TaskKind.SCM, disclosure, STANDARD, Panel(NAMES_30, (world,)), shares_units=False, num_heldout=0)
    outcome = solve(task, max_parents=2)
    assert isinstance(outcome, Found)
    assert outcome.value.size == 27  # every column is a copy of X1 or X2
