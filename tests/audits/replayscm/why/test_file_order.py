"""Worlds to copy are in the order of the variables in the item's file, whatever that is."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from calibrant.audits.replayscm.why.explanation import explain
from calibrant.audits.replayscm.why.parts import ReplayWhy
from calibrant.dsl.records import convert_object
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.build import problem_from_record
from calibrant.dsl.replayscm.pools.files import file_record, read_pool, record_from_problem, write_pool
from calibrant.dsl.replayscm.pools.records import ProblemRecord
from tests.support.commands import called, jsonl
from tests.support.replayscm.lamp import HEADER

ROWS = ({"Tank": 0, "Power": 0, "Pump": 0, "Flow": 0}, {"Tank": 0, "Power": 1, "Pump": 0, "Flow": 0})
ALL_ON = dict.fromkeys(ROWS[0], 1)


def pump_record(columns: tuple[str, ...], *more: dict[str, Any]) -> dict[str, Any]:
    """Return the item with its rows in this order of the variables."""
    rows = ["".join(str(row[name]) for name in columns) for row in (*ROWS, ALL_ON)]
    return {
        "id": "pump",
        "kind": "CIND_A_SCM",
        "variables": list(columns),
        "units": ["u0", "u1", "u2"],
        "disclosure": {"type": "hidden_order", "roots": ["Tank", "Power"]},
        "training": [{"id": "w0", "rows": rows}, *more],
        "sealed": {},
    }


def problem(record: dict[str, Any]) -> Problem:
    return problem_from_record(convert_object(record, ProblemRecord))


def reason(item: Problem) -> ReplayWhy:
    return explain(item.task, item.id, columns=item.columns)


@pytest.mark.parametrize("columns", list(permutations(ROWS[0]))[5::4])
def test_a_world_pasted_with_any_reading_leaves_as_many_scms_as_stated(columns: tuple[str, ...]) -> None:
    decider = reason(problem(pump_record(columns))).deciders[0]
    natural = {tuple(sorted(zip(columns, entry.row, strict=True))) for entry in decider.readings}
    for entry in decider.readings:
        (pattern,) = decider.world["rows"]
        assert all(a in ("?", b) for a, b in zip(pattern, entry.row, strict=True))
        after = reason(problem(pump_record(columns, decider.world | {"rows": [entry.row]})))
        assert after.count.lower == entry.remaining
    alphabetical = reason(problem(pump_record(tuple(sorted(columns))))).deciders[0]
    assert natural == {tuple(sorted(zip(sorted(columns), entry.row, strict=True))) for entry in alphabetical.readings}


def test_the_alphabetical_row_is_another_one_than_the_files() -> None:
    """Without this the test above could pass on items whose rows are alike in every order."""
    columns = ("Tank", "Power", "Pump", "Flow")
    patterns = [
        reason(problem(pump_record(names))).deciders[0].world["rows"] for names in (columns, tuple(sorted(columns)))
    ]
    assert patterns == [["100?"], ["?001"]]


def test_files_keep_their_order_and_what_solvers_see_stays_natural(tmp_path: Path) -> None:
    columns = ("Tank", "Power", "Pump", "Flow")
    item = problem(pump_record(columns))
    write_pool(Pool("mine", (item,)), tmp_path / "again.jsonl")
    line = json.loads((tmp_path / "again.jsonl").read_text(encoding="utf-8").splitlines()[1])
    assert tuple(line["variables"]) == columns
    assert line["training"][0]["rows"] == pump_record(columns)["training"][0]["rows"]
    assert read_pool(tmp_path / "again.jsonl").problems[0] == item
    assert record_from_problem(item).variables == sorted(columns) != file_record(item).variables


def test_terminal_page_and_json_have_the_world_in_the_files_order(tmp_path: Path) -> None:
    columns = ("Tank", "Power", "Pump", "Flow")
    pool = jsonl(tmp_path / "mine.jsonl", HEADER, pump_record(columns))
    printed = called("show", pool, "pump", "--why").stdout
    assert '"rows": ["100?"]' in printed
    assert "Tank Power Pump Flow" in printed
    world = json.loads(called("show", pool, "pump", "--why", "--json").stdout)["deciders"][0]["world"]
    assert world["rows"] == ["100?"]
    assert called("show", pool, "pump", "--html", tmp_path / "why.html").returncode == 0
    page = (tmp_path / "why.html").read_text(encoding="utf-8")
    assert "[&#34;100?&#34;]" in page
    assert "in the order Tank Power Pump Flow" in page


def test_hardened_items_keep_the_files_order(tmp_path: Path) -> None:
    columns = ("Tank", "Power", "Pump", "Flow")
    record = pump_record(columns) | {"sealed": {"gold": {"Pump": "(and Tank Power)", "Flow": "Pump"}}}
    pool, out = jsonl(tmp_path / "mine.jsonl", HEADER, record), tmp_path / "hard.jsonl"
    assert called("harden", pool, "--out", out, "--workers", "1").returncode == 0
    hardened = json.loads(out.read_text(encoding="utf-8").splitlines()[1])
    assert tuple(hardened["variables"]) == columns
    assert hardened["training"][0] == record["training"][0]
    assert len(hardened["training"]) > 1
