"""Error profiles of rows that make one error each, and statistics of grown programs."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.audits.causim.attribution import error_profiles
from calibrant.audits.causim.generation import nameless, program_statistics
from calibrant.baselines.causim.rows import ROWS
from calibrant.dsl.causim.generation import grow
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import Local
from calibrant.dsl.causim.topology import TOPOLOGIES
from calibrant.solvers.causim.generation import generated_items
from calibrant.solvers.outcome import Found


@pytest.fixture(scope="module")
def items() -> list[CausimItem]:
    return list(generated_items(23, "tree", 2, nodes=6, num_questions=4, types=["counterfactual", "intervention"]))


def profiled(row: str, items: list[CausimItem]) -> dict[str, int]:
    answered = []
    for item in items:
        found = ROWS[row](item.task, 0)
        answered.append((item, found.value if isinstance(found, Found) else None))
    profiles = error_profiles(answered, level=lambda item: item.task.question.type)
    (own,) = [profile for profile in profiles if profile.level == "counterfactual"]
    assert own.answers == sum(item.task.question.type == "counterfactual" for item in items)
    assert own.right + sum(own.first.values()) == own.explained
    return {str(reason): number for reason, number in own.nodes.items()}


def test_each_row_makes_its_own_error(items: list[CausimItem]) -> None:
    exact, no_do, prior, chance = (profiled(row, items) for row in ("exact", "no_do", "run_once", "random_symbols"))
    assert [count for reason, count in exact.items() if reason != "ok"] == [0, 0, 0]
    assert no_do["do ignored"] > 0
    assert (prior["do ignored"], prior["impossible"]) == (0, 0)
    assert prior["wrong noise"] > 0
    assert min(chance.values()) > 0


def test_answers_that_are_missing_count_and_levels_are_apart(items: list[CausimItem]) -> None:
    profiles = error_profiles((item, None) for item in items)
    assert sum(profile.answers for profile in profiles) == len(items)
    assert {(profile.right, profile.explained) for profile in profiles} == {(0, 0)}
    assert [profile.level for profile in profiles][:2] == ["counterfactual/01", "counterfactual/02"]


def test_tables_are_alike_up_to_names_only() -> None:
    rng = np.random.default_rng(8)
    for _ in range(30):
        table = rng.integers(0, 3, size=(3, 2, 3))
        domain = ("0", "1", "2")
        renamed = rng.permutation(3)[table][rng.permutation(3)][:, rng.permutation(2)][:, :, rng.permutation(3)]
        assert nameless(Local((0, 1), domain, table)) == nameless(Local((0, 1), domain, renamed))
    one, other = np.array([[0, 1], [1, 1]]), np.array([[0, 1], [1, 0]])
    assert nameless(Local((0,), ("0", "1"), one)) != nameless(Local((0,), ("0", "1"), other))


def test_statistics_count_every_node() -> None:
    models = [grow(31, str(k), topology, 5)[-1].model for topology in TOPOLOGIES for k in range(2)]
    found = program_statistics(models)
    assert (found.programs, found.tables) == (12, 60)
    assert 20 < found.different <= 60
    assert sum(found.domains.values()) == sum(found.supports.values()) == 60
    assert set(found.domains) <= {2, 3, 4}
    assert set(found.supports) <= {2, 3, 4, 5, 6}
    assert found.treewidths[1] >= 6
