"""Rows that choose parent sets by one engine: what `exact` answers, or the gap when time is over."""

from __future__ import annotations

import pytest

from calibrant.bench.core.registry import bundled_pool
from calibrant.bench.lab.limits import acyclic_choices
from calibrant.bench.replayscm.rows.exact import Exact, ExactDp, ExactIntegerProgram, ExactSat, ExactSmt
from calibrant.dsl.replayscm.generation.problems import sample_problem
from calibrant.dsl.replayscm.generation.strata import stratum
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.solvers.acyclic.least import cost_by_size
from calibrant.solvers.outcome import BestSoFar, Undecided
from calibrant.solvers.replayscm.exact import solve
from tests.support.packages import needs

needs("highspy", "z3")


@pytest.mark.parametrize("row", [ExactSat, ExactSmt, ExactDp])
def test_engines_answer_as_exact_does(row: type[Exact]) -> None:
    for setting in ("block", "hidden-order", "hidden-roots"):
        for problem in read_pool(bundled_pool(setting)).problems[::8]:
            found, expected = row().answer(problem.task), Exact().answer(problem.task)
            assert found.answer == expected.answer
            assert found.provenance["engine"] == row.engine  # type: ignore[attr-defined]
            assert found.ties == expected.ties


def test_it_answers_as_exact_does_and_names_its_engine() -> None:
    task = sample_problem(stratum("large_n12"), 0).task
    found, expected = ExactIntegerProgram(max_parents=4).answer(task), Exact(max_parents=4).answer(task)
    assert found.answer == expected.answer
    assert found.provenance == expected.provenance | {"engine": "integer_program", "states": found.provenance["states"]}


def test_without_time_it_has_both_bounds() -> None:
    task = sample_problem(stratum("large_n20"), 0).task
    late = ExactIntegerProgram(max_parents=4, seconds=0.0).answer(task)
    assert late.outcome == "out_of_budget"
    assert 0 < late.provenance["lower_bound"] <= late.provenance["upper_bound"]


def test_of_several_of_least_size_it_says_that_they_are_of_least_size() -> None:
    (problem,) = read_pool(bundled_pool("hidden-order")).problems[-1:]
    late = solve(problem.task, engine="integer_program", seconds=0.0)
    assert isinstance(late, BestSoFar)
    assert late.lower_bound == late.upper_bound
    assert late.incumbent.provenance["minimal"] == "size alone"
    assert "as the one found has" in late.reached
    with pytest.raises(ValueError, match="seconds are for the engine integer_program; 'auto' has a budget of states"):
        solve(problem.task, seconds=5.0)


def test_a_table_of_published_sizes_says_what_is_proved(capsys: pytest.CaptureFixture[str]) -> None:
    assert acyclic_choices.main(["insurance", "--seconds", "0", "--problems", "1"]) == 0
    cells = [cell.strip() for cell in capsys.readouterr().out.splitlines()[-1].split("|")[1:-1]]
    assert cells[:4] == ["insurance", "27", "1,000", "786"]
    assert cells[5] == "0 of 1"
    assert " of " in cells[7]
    assert acyclic_choices.main(["earthquake"]) == 2


def test_nothing_met_is_no_proof(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: object, **_options: object) -> None:
        raise Undecided(cost_by_size(5000, 0), None, None)

    monkeypatch.setattr(acyclic_choices, "optimal_choice", late)
    assert acyclic_choices.main(["insurance", "--problems", "1"]) == 0
    assert "| 0 of 1 |" in (row := capsys.readouterr().out.splitlines()[-1])
    assert row.endswith("| at least 5 |")


@pytest.mark.parametrize("told", [["--problems", "0"], ["--seconds", "-1"], ["--seconds", "nan"]])
def test_numbers_that_mean_nothing_are_refused(told: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        acyclic_choices.main(["insurance", *told])
    assert f"{told[1]} is not" in capsys.readouterr().err
