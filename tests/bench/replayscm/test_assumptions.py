"""`--assume` of `fit` and `list --why`, and `assume` of `calibrant.solve`: results by hand, refusals, missing z3."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import calibrant
from calibrant.bench.core.registry import bundled_pool, bundled_sample
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.replayscm.item import Problem
from tests.support.commands import called, refused

POOL = bundled_pool("hidden-order")
TABLE = "rain,wet,sprinkler,slippery\n0,0,0,0\n1,1,0,1\n0,1,1,1\n1,1,1,1\n"
DECIDED = "require rain -> wet\n(assert (not |sprinkler -> wet|))\nincreasing rain -> wet\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(TABLE, "utf-8")
    return path


def _file(folder: Path, text: str) -> Path:
    path = folder / "a.txt"
    path.write_text(text, "utf-8")
    return path


def test_a_table_under_an_assumption_has_the_one_scm_left(table: Path, tmp_path: Path) -> None:
    # wet, a function of rain and slippery, is not seen in (1, 0): 1 there, as it rises with rain and depends on it
    done = called("fit", table, "--assume", _file(tmp_path, DECIDED), "--json")
    assert done.returncode == 0
    fitted = json.loads(done.stdout)
    assert fitted["roots"] == ["rain", "sprinkler"]
    assert fitted["mechanisms"] == {"slippery": "(or rain sprinkler)", "wet": "(or rain slippery)"}
    assert (fitted["size"], fitted["why"]["count"]["lower"], fitted["why"]["count"]["upper"]) == (6, "1", "1")
    assert "3 assumed statements" in fitted["proof"]["class"]


def test_the_function_fits_as_the_command_does(table: Path) -> None:
    fitted = calibrant.fit(table, assume=DECIDED)
    assert isinstance(fitted, calibrant.Fit)
    assert fitted.to_dict()["mechanisms"]["wet"] == "(or rain slippery)"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("forbid rain -> slippery\nmax-parents 1\nforbid sprinkler -> slippery, wet -> slippery", "a.txt, line 2"),
        ("decreasing slippery -> wet\nrequire slippery -> wet\nmax-parents-of slippery=1", "line 1 and .*line 2"),
    ],
)
def test_lines_that_no_scm_satisfies_are_named(table: Path, tmp_path: Path, text: str, lines: str) -> None:
    assumption = _file(tmp_path, text + "\nroots rain, sprinkler\n")
    done = called("fit", table, "--roots", "rain,sprinkler", "--max-parents", "2", "--assume", assumption)
    assert done.returncode == 1
    (reason,) = [line for line in done.stdout.splitlines() if line.startswith("nothing fits")]
    assert re.search(f"no model of the class fits and satisfies .*{lines};", reason)


def test_refusals_name_file_line_and_field(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assumption = _file(tmp_path, "# fine\nrequire rain -> snow\n")
    for line in (("fit", table), ("list", POOL, "--why")):
        message = refused(capsys, *line, "--assume", assumption)
        assert f"{assumption}, line 2: " in message
        assert "is no column; columns: " in message
    assert "give --why" in refused(capsys, "list", POOL, "--assume", assumption)
    assert "--knowledge" in refused(capsys, "fit", table, "--score", "bde", "--assume", assumption)
    assert "no assumption" in refused(capsys, "fit", table, "--assume", assumption, "--certificates", tmp_path / "c")
    assert "take it or errors away" in refused(
        capsys, "fit", table, "--target", "wet", "--errors", "front", "--assume", assumption
    )
    blickets = refused(capsys, "list", bundled_sample("blickets"), "--why", "--assume", assumption)
    assert "`--assume`" in blickets
    assert "ReplaySCM" in blickets


def test_a_network_refuses_lines_on_mechanisms(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    knowledge = _file(tmp_path, "increasing rain -> wet\n")
    message = refused(capsys, "fit", table, "--score", "bde", "--knowledge", knowledge)
    assert f"{knowledge}, line 1: 'increasing' is about mechanisms of SCMs" in message


def test_reasons_count_what_satisfies_an_assumption(tmp_path: Path) -> None:
    def count(*options: object) -> list[int]:
        done = called("list", POOL, "--why", "--limit", "4", "--json", *options)
        assert done.returncode == 0
        return [int(json.loads(line)["fit"].replace(",", "")) for line in done.stdout.splitlines()]

    plain = count()
    assert all(number > 1 for number in plain)
    arcs = count("--assume", _file(tmp_path, "max-parents 2\n"))
    assert all(0 <= fewer <= number for fewer, number in zip(arcs, plain, strict=True))
    both = [
        count("--assume", _file(tmp_path, f"(assert {formula})\n"))
        for formula in ("|X1 -> X3|", "(not |X1 -> X3|)", "true")
    ]
    assert [sum(pair) for pair in zip(*both[:2], strict=True)] == plain == both[2]
    assert any(both[0])


def test_relations_name_the_extra_where_they_are_solved_and_are_counted_without(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    assumption = _file(tmp_path, "no-common-parent wet, slippery\n")
    assert refused(capsys, "fit", table, "--assume", assumption).endswith("pip install 'calibrant[smt]'")
    assumption = _file(tmp_path, "no-common-parent X2, X3\n")
    assert called("list", POOL, "--why", "--limit", "1", "--assume", assumption).returncode == 0


def test_solve_refuses_what_it_cannot_take() -> None:
    item = calibrant.load_pool(POOL)[0]
    assert isinstance(item, Problem)
    with pytest.raises(CalibrantError, match="assume, line 1: relations between parents need SMT"):
        calibrant.solve(item, engine="sat", assume="no-common-parent X2, X3")
    with pytest.raises(CalibrantError, match=r"assume, line 2: 'Z' is no column"):
        calibrant.solve(item, assume="\nrequire Z -> X3")
    episode = calibrant.load_pool(bundled_sample("replayscm_episodes"))[0]
    assert isinstance(episode, Problem)
    with pytest.raises(CalibrantError, match="extended items"):
        calibrant.solve(episode, assume="max-parents 2")
