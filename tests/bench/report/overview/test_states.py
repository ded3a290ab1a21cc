"""States of a report: one item, many systems, many items; time and size are bounded."""

from __future__ import annotations

import re
import time

import pytest

from calibrant.bench.blickets.report import GUIDE
from calibrant.bench.blickets.scoring import METRICS
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.report.answers.named import named_answers
from calibrant.bench.report.overview import page as report_module
from calibrant.bench.report.overview.page import PageSection, report_page
from calibrant.bench.report.overview.responses import Responses
from calibrant.bench.report.overview.results import Results, read_results
from calibrant.bench.report.sections import Section
from calibrant.dsl.memory import gc_paused
from tests.support.graded_records import graded

EARNED = graded() | {"attribution": {"kind": "earned", "decided": True, "fits": True, "members": "1"}}
SHORT = graded(correct=False) | {"attribution": {"kind": "short", "decided": False, "fits": True, "members": "672"}}
CONDITIONS = ("conjunctive", "disjunctive", "moderator", "order", "stochastic")


def results_of(systems: int, items: int) -> Results:
    answers = [
        (
            AnswerContext(f"m{s}-{s % 7}", "p", "d" * 64, items, f"i{i}", CONDITIONS[i % 5], "", benchmark="blickets"),
            EARNED if (7 * i + s) % (2 + s % 5) else SHORT,
        )
        for s in range(systems)
        for i in range(items)
    ]
    return read_results("blickets", "Extended blickets", named_answers(answers), METRICS, GUIDE)


def page_of(results: Results) -> str:
    systems = frozenset(system.name for system in results.systems)
    section = Section("Extended blickets", "about", systems, (("p", "d" * 64),), results.num_answers, ())
    return report_page([PageSection("blickets", section, results, Responses(), {})], paper_on=False)


def test_one_item_has_no_interval_and_one_system_no_ranks() -> None:
    page = page_of(results_of(1, 1))
    assert "1 system on 1 detector" in page
    assert "Ranks by" not in page
    assert "95 % interval" not in page.replace('<th scope="col" class="number">95 % interval</th>', "")


def test_125_systems_on_1000_items_take_two_seconds() -> None:
    """Of processor time: grouping, first screen, page. A quadratic step would take minutes; 5 s leave room for load."""
    start = time.process_time()
    with gc_paused():
        page = page_of(results_of(125, 1000))
    assert time.process_time() - start < 5
    assert len(page) < 3_000_000
    assert page.count('<button type="button" class="pin"') == 125
    assert 'class="system-search"' in page


def test_beyond_a_number_of_answers_cells_carry_counts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    results = results_of(5, 200)
    monkeypatch.setattr(report_module, "MAX_LISTED", 999)
    page = page_of(results)
    assert re.search(r'"whole":false', page)
    assert '"i":[]' in page
    assert re.search(r'<a href="#blickets/conjunctive/m0-0">\d+/40</a>', page)
    whole = page_of(results_of(5, 199))
    assert re.search(r'"whole":true', whole)
