"""Soaks by hand: questions in bulk, the comparison of engines, and the suite of all bundled pools."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from calibrant.bench.commands.demo import SUITE_FILE
from calibrant.bench.lab.boards import write_systems
from calibrant.bench.suites.board import build_board
from calibrant.bench.suites.release import build_release
from calibrant.dsl.causim.generation import grow
from calibrant.dsl.causim.question import TYPES
from calibrant.dsl.causim.reference import work_out
from calibrant.solvers.causim.generation import items_of_version
from tests.oracles.causim import TwinAnswerSet
from tests.soak.causim import engines
from tests.soak.causim.engines import Batch, compared
from tests.soak.causim.engines import main as compare_engines
from tests.soak.causim.questions import Program, asked
from tests.soak.causim.questions import main as ask_in_bulk
from tests.support.effort import SOAKING


# --- Questions made in bulk: numbers, flags counted apart by running every world, any number of workers alike ---------
def test_a_program_is_asked_as_often_as_wanted_and_its_flags_are_those_of_the_reference() -> None:
    found = asked(Program(4, "tree", 0, 5, 5))
    assert found.versions == 5
    assert found.counts["questions"] == found.counts["right"] <= 25
    copyable = vacuous = 0
    for v, version in enumerate(grow(4, "tree-0000", "tree", 5)):
        for k, kind in enumerate(TYPES):
            number = 2 if k == (v + 3) % 4 else 1
            for item in items_of_version(version, "tree-0000", num_questions=number, types=[kind], seed=4):
                worked = work_out(item.task.model, item.task.question)
                copyable += worked.copy is True
                vacuous += worked.effect_some is False
    assert (found.counts["copyable"], found.counts["vacuous"]) == (copyable, vacuous)
    assert copyable
    assert vacuous


def test_the_digest_does_not_depend_on_workers(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["--programs", "1", "--nodes", "3", "--each", "4", "--seed", "2", "--workers"]
    printed = []
    for workers in ("1", "2"):
        assert ask_in_bulk([*line, workers]) == 0
        text = capsys.readouterr().out
        assert text.startswith("6 programs, 18 versions that pass the verifier\n")
        printed.append(re.sub(r"\d+ s with .*", "", text))
    assert printed[0] == printed[1]
    counted = re.search(r"(\d+) questions, exact right on (\d+)", printed[0])
    assert counted is not None
    assert counted[1] == counted[2]


# --- The comparison of engines by hand: it counts questions, and it notices an engine that is wrong -------------------
def test_engines_agree_and_a_wrong_one_is_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare_engines(["--small", "0", "--large", "0"]) == 0
    assert capsys.readouterr().out.count("0 questions, 0 differences") == 2
    for nodes in (3, 8):
        counts = compared(Batch(1, "tree", 0, nodes))
        assert counts["questions"] == 25
        assert counts["differences"] == 0

    class Wrong(TwinAnswerSet):
        def contains(self, answer: object) -> bool:
            return True

    monkeypatch.setattr(engines, "AnswerSet", Wrong)
    assert compared(Batch(1, "tree", 0, 3))["differences"] > 10
    assert compared(Batch(1, "tree", 0, 8))["differences"] > 10


# --- The suite of all bundled pools that the demo shows a board of, and a board of systems that mix its rows ------
@pytest.mark.skipif(not SOAKING, reason="it takes 20 s: a soak has it, and the demo's test has one of its pools")
def test_the_bundled_suite_is_released_and_has_a_board(tmp_path: Path) -> None:
    manifest = build_release(SUITE_FILE, tmp_path / "suite")
    assert [pool.num_items for pool in manifest.pools] == [24, 24, 24, 48]
    write_systems(tmp_path / "suite", manifest, tmp_path / "submissions", 3)
    summary = build_board(tmp_path / "suite", tmp_path / "submissions", tmp_path / "site")
    assert (summary.num_ranked, list(summary.refused), summary.damage) == (3, [], {})
