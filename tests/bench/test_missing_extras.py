"""Without the package of an engine its doors name the extra; all other engines work."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Literal

import pytest

import calibrant
from calibrant.bench.core.registry import bundled_pool
from calibrant.bench.replayscm.rows.exact import Exact, ExactDp, ExactSat, scm_answer
from calibrant.dsl.errors import MissingExtraError
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.solvers.acyclic.optimum import ENGINES, EXTRAS, optimal_choice
from calibrant.solvers.outcome import Found
from calibrant.solvers.replayscm.exact import solve
from tests.support.commands import CHECKOUT, called, program, refused

POOL = bundled_pool("hidden-order")
HINTS = {
    "smt": "z3 is missing; run: pip install 'calibrant[smt]'",
    "integer_program": "highspy is missing; run: pip install 'calibrant[large]'",
}
ROWS = {"exact-smt": "smt", "exact-integer-program": "integer_program"}


@pytest.fixture(autouse=True)
def _without_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("z3", "highspy"):
        monkeypatch.setitem(sys.modules, module, None)


@pytest.mark.parametrize("row", ROWS)
def test_run_names_the_extra_and_writes_nothing(row: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "run", row, POOL, "--out", tmp_path / "runs") == HINTS[ROWS[row]]
    assert not (tmp_path / "runs").exists()


def test_protocols_name_the_extras() -> None:
    listed = called("protocols", "--json")
    assert listed.returncode == 0
    assert [hint for hint in HINTS.values() if hint in listed.stdout] == list(HINTS.values())


@pytest.mark.parametrize("engine", EXTRAS)
def test_solve_names_the_extra_before_it_searches(
    engine: Literal["smt", "integer_program"], monkeypatch: pytest.MonkeyPatch
) -> None:
    item, hint = calibrant.load_pool(POOL)[0], f"^{re.escape(HINTS[engine])}$"
    assert isinstance(item, Problem)
    monkeypatch.setattr("calibrant.solvers.replayscm.exact._Search", None)
    with pytest.raises(MissingExtraError, match=hint):
        calibrant.solve(item, engine=engine)
    with pytest.raises(MissingExtraError, match=hint):
        optimal_choice({0: {0: 1}}, 0, 1, engine=engine)


def test_other_engines_answer_without_the_extras() -> None:
    others = [engine for engine in ENGINES if engine not in EXTRAS]
    assert others == ["auto", "subset_dp", "sat"]
    problems = read_pool(POOL).problems[::8]
    assert len(problems) >= 3
    for problem in problems:
        outcomes = [solve(problem.task, engine=engine) for engine in others]
        models = [outcome.value.model for outcome in outcomes if isinstance(outcome, Found)]
        answers: list[object] = [scm_answer(problem.task.kind, model) for model in models]
        answers += [row().answer(problem.task).answer for row in (Exact, ExactSat, ExactDp)]
        assert answers == answers[:1] * 6


def test_verify_names_the_extra_and_other_ways_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool, certificates = tmp_path / "pool.jsonl", tmp_path / "certificates"
    write_pool(Pool("pool", read_pool(POOL).problems[:2]), pool)
    audit = ("audit", pool, "--workers", "1", "--max-parents", "2", "--certificates", certificates)
    assert called(*audit).returncode == 0
    files = sorted(certificates.glob("*.json"))
    assert len(files) == 2
    for paths in (files, [certificates], [pool]):  # whatever the certificates are
        assert refused(capsys, "verify", *paths, pool, "--engine", "smt") == HINTS["smt"]
    assert called("verify", *files, pool).returncode == 0
    done = called("verify", *files, pool, "--engine", "sat")
    assert [line for line in done.stdout.splitlines() if "proved again by sat" in line] == done.stdout.splitlines()
    assert done.returncode == 0


COMMANDS_WITHOUT_SMT = """
import sys
sys.modules.update(z3=None, pysmt=None)
from calibrant.bench.cli import main
pool, answers, folder = sys.argv[1:]
for line in (
    ["run", "exact", pool, "--workers", "1", "--out", f"{folder}/runs"],
    ["audit", pool, "--workers", "1", "--certificates", f"{folder}/certificates", "--out", f"{folder}/audit"],
    ["verify", f"{folder}/certificates", pool, "--engine", "sat"],
    ["score", pool, answers, "--out", f"{folder}/scores.jsonl"],
    ["table", f"{folder}/runs"],
    ["table", f"{folder}/scores.jsonl"],
    ["list", pool, "--why"],
):
    assert main(line) == 0, line
    print("done", line[0])
assert sys.modules["z3"] is None and sys.modules["pysmt"] is None
"""


def test_commands_run_in_a_process_without_z3_and_pysmt(tmp_path: Path) -> None:
    examples = CHECKOUT / "docs" / "examples"
    done = program("-c", COMMANDS_WITHOUT_SMT, examples / "switches.jsonl", examples / "answers.jsonl", tmp_path)
    assert done.returncode == 0, done.stderr
    commands = [line.removeprefix("done ") for line in done.stdout.splitlines() if line.startswith("done ")]
    assert commands == ["run", "audit", "verify", "score", "table", "table", "list"]
    assert "Two SCMs fit" in done.stdout  # list --why counted
    assert "proved again by sat" in done.stdout
