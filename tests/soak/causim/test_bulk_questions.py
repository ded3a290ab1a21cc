"""Questions made in bulk: numbers, flags counted apart by running every world, any number of workers alike."""

from __future__ import annotations

import re

import pytest

from calibrant.dsl.causim.generation import grow
from calibrant.dsl.causim.question import TYPES
from calibrant.dsl.causim.reference import work_out
from calibrant.solvers.causim.generation import items_of_version
from tests.soak.causim.questions import Program, asked, main


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
        assert main([*line, workers]) == 0
        text = capsys.readouterr().out
        assert text.startswith("6 programs, 18 versions that pass the verifier\n")
        printed.append(re.sub(r"\d+ s with .*", "", text))
    assert printed[0] == printed[1]
    counted = re.search(r"(\d+) questions, exact right on (\d+)", printed[0])
    assert counted is not None
    assert counted[1] == counted[2]
