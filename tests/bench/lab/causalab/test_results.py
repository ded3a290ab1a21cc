"""The calibration rows over the released suites; what they stand at is in tests/bench/causalab/test_benchmark.py."""

from __future__ import annotations

from calibrant.bench.lab.causalab import method_results
from tests.support.causalab.laboratories import released_suite
from tests.support.shared import shared_file


def test_results_do_not_depend_on_the_number_of_processes() -> None:
    folder = shared_file("data", part="causalab")
    here, there = (method_results(folder, ["3nodes"], ["exact", "abstain"], 1, "released", jobs) for jobs in (1, 2))
    assert here == there
    assert list(here) == [("3nodes", "exact"), ("3nodes", "abstain")]
    assert {one.episodes for one in here.values()} == {len(released_suite("3nodes"))}
