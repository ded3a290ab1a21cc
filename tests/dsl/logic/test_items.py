"""Items, their records, and verdicts of answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calibrant.dsl.errors import PoolError
from calibrant.dsl.logic import reference
from calibrant.dsl.logic.item import (
    Edge,
    Experiment,
    LogicError,
    LogicItem,
    Options,
    Sealed,
    Setup,
    Task,
    Tolerance,
    parse_clause,
)
from calibrant.dsl.logic.records import ItemRecord, item_from_record, read_pool, record_from_item, write_pool
from calibrant.dsl.logic.score import answer_json, grade, parse_answer
from tests.support.benchmarks.logic import random_tasks


def _item() -> LogicItem:
    task = Task(
        (Edge("a", 1, "r"), Edge("b", -1, "r"), Edge("b", 1, "q")),
        Setup(("a", "b"), ("q",), ("r", "q")),
        (Experiment(frozenset("a")), Experiment(frozenset("ab"))),
        ((1.0, 0.0), (0.2, None)),
        Options(),
        Tolerance("0.5", 1),
        (Experiment(), Experiment(frozenset("b")), Experiment(frozenset("b"), frozenset("q"))),
    )
    gold = frozenset(map(parse_clause, ["r<-a+!b", "q<-b"]))
    return LogicItem("i", task, Sealed(gold, ("00", "01", "00"), (400, 2)), {"stratum": "hand"})


def test_items_survive_their_records(tmp_path: Path) -> None:
    items = [_item(), *(LogicItem(f"x{i}", task) for i, task in enumerate(random_tasks(3, 12)))]
    path = tmp_path / "pool.jsonl"
    write_pool(path, "pool", items, {"seed": 1})
    pool = read_pool(path)
    assert list(pool) == items
    assert (pool.benchmark, pool.metadata) == ("logic", {"seed": 1})
    assert (items[0].setting, items[0].stratum) == ("acyclic", "hand")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda r: r["prior"][0].__setitem__(1, 2), "task: an edge with a sign"),
        (lambda r: r["prior"][0].__setitem__(0, "a b"), "prior: 'a b' is no name"),
        (lambda r: r.update(inhibitors=["a"]), "task: 'a' is a stimulus and an inhibitor"),
        (lambda r: r.update(fit="-1"), "task: fit '-1'"),
        (lambda r: r.update(size=-1), "task: size -1"),
        (lambda r: r.update(factor=0), "task: factor 0"),
        (lambda r: r["values"].pop(), "task: 1 rows of values for 2 experiments"),
        (lambda r: r["experiments"][0].update(stimuli=["x"]), "task: experiment 1: 'x' is not a stimulus"),
        (lambda r: r["sealed"].update(gold=["r<-q"]), "sealed.gold: no model of the class: unknown clause"),
        (lambda r: r["sealed"].update(gold=["r"]), "sealed.gold: 'r' is no clause"),
        (lambda r: r["sealed"].update(answers=["11", "01", "00"]), "sealed.answers: not the answers"),
        (lambda r: r["sealed"].update(optimum=[10**6, 2]), "sealed.optimum: a least misfit above"),
    ],
)
def test_a_record_that_is_refused(change: Callable[[Any], object], problem: str) -> None:
    record = msgspec.json.decode(msgspec.json.encode(record_from_item(_item())))
    change(record)
    with pytest.raises(PoolError) as refused:
        item_from_record(msgspec.convert(record, ItemRecord))
    assert problem in str(refused.value)


def test_verdict_of_the_gold_model() -> None:
    item = _item()
    assert item.sealed is not None
    assert reference.misfit(item.sealed.gold, item.task) == 400
    verdict = grade(item, {"model": ["q<-b", "r<-!b+a"]})
    assert verdict.as_json() == {
        "heldout_exact": True,
        "heldout_accuracy": 1.0,
        "brier": 0.0,
        "optimal": True,
        "fits": True,
        "edge_f1": 1.0,
        "error": "",
    }


def test_verdict_of_another_model_and_of_a_table() -> None:
    item = _item()
    verdict = grade(item, {"model": ["r<-a"]})
    assert (verdict.heldout_accuracy, verdict.optimal, verdict.fits) == (5 / 6, False, False)
    assert verdict.edge_f1 == 2 * 1 / (1 + 3)
    table = grade(item, {"probabilities": [[0.25, 0], [0.5, 0.75], [0, 0]]})
    assert (table.heldout_exact, table.heldout_accuracy) == (False, 5 / 6)
    assert table.brier == (0.0625 + 0.25 + 0.0625) / 6
    assert (table.optimal, table.fits, table.edge_f1) == (None, None, None)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (None, "an answer is an object with one key"),
        ({"model": [], "probabilities": []}, "an answer is an object with one key"),
        ({"model": "r<-a"}, "model: a list of clauses"),
        ({"model": ["r<-"]}, "model: "),
        ({"model": ["r<-x"]}, "model: unknown clause"),
        ({"model": ["r<-a", "r<-a+!b"]}, "model: redundant clause"),
        ({"probabilities": [[0, 0]]}, "probabilities: a list of 3 rows"),
        ({"probabilities": [[0], [0], [0]]}, "a row has 2 numbers"),
        ({"probabilities": [[0, 2], [0, 0], [0, 0]]}, "2; a number from 0 to 1"),
        ({"probabilities": [[0, True], [0, 0], [0, 0]]}, "True; a number from 0 to 1"),
        ({"probabilities": [[0, float("nan")], [0, 0], [0, 0]]}, "nan; a number from 0 to 1"),
    ],
)
def test_an_invalid_answer_has_a_reason(answer: object, problem: str) -> None:
    verdict = grade(_item(), answer)
    assert problem in verdict.error
    assert (verdict.heldout_exact, verdict.heldout_accuracy, verdict.brier) == (False, 0.0, 1.0)


def test_an_answer_survives_its_json() -> None:
    item = _item()
    for answer in ({"model": ["r<-a"]}, {"probabilities": [[0.5, 0.0]] * 3}):
        assert answer_json(parse_answer(answer, item.task)) == answer


def test_an_item_without_a_truth_is_not_scored() -> None:
    with pytest.raises(LogicError, match="no sealed truth"):
        grade(replace(_item(), sealed=None), {"model": []})
