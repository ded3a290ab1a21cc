"""The row that chooses parent sets by an integer program: what `exact` answers, or the gap when time is over."""

from __future__ import annotations

import pytest

from bench.limits import published
from bench.protocols.replayscm.exact import Exact, ExactIntegerProgram
from dsl.errors import MissingExtraError
from dsl.replayscm.sampling.problems import sample_problem
from dsl.replayscm.sampling.strata import stratum
from solvers.acyclic import integer_program
from tests.support.packages import needs


def test_without_the_package_it_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integer_program, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'calibrant\[large\]'"):
        ExactIntegerProgram().require()


needs("highspy")


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


def test_a_table_of_published_sizes_says_what_is_proved(capsys: pytest.CaptureFixture[str]) -> None:
    assert published.main(["insurance", "--seconds", "0", "--problems", "1"]) == 0
    cells = [cell.strip() for cell in capsys.readouterr().out.splitlines()[-1].split("|")[1:-1]]
    assert cells[:4] == ["insurance", "27", "1,000", "786"]
    assert cells[5] == "0 of 1"
    assert " of " in cells[7]
    assert published.main(["earthquake"]) == 2
