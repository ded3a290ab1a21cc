"""`calibrant pool alternatives`: Alternative-SCM items of pools that ask for an SCM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calibrant.bench.cli import main
from calibrant.bench.replayscm.appendix.facts import pool_facts
from calibrant.dsl.replayscm.item import Pool, TaskKind
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.dsl.replayscm.score import Evaluator
from tests.support.commands import refused
from tests.support.replayscm.dev_pools import dev_problems
from tests.support.stub_protocols import small_pool


def test_items_keep_the_evidence_and_their_known_answer_succeeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, made, again = (tmp_path / name for name in ("source.jsonl", "made.jsonl", "again.jsonl"))
    problems = dev_problems("hidden_order")[:6]
    write_pool(Pool("source", problems), source)
    assert main(["pool", "alternatives", str(source), str(made), "--seed", "3"]) == 0
    assert capsys.readouterr().err.splitlines()[0] == f"6 instances written to {made}"
    items = read_pool(made).problems
    for item, problem in zip(items, problems, strict=True):
        assert item.task.kind is TaskKind.ALTERNATIVE
        assert (item.task.training, item.task.disclosure) == (problem.task.training, problem.task.disclosure)
        assert item.sealed.heldout == problem.sealed.heldout
        score = Evaluator(item).score_answer(json.loads(item.sealed.labels["known_answer"]))
        assert score.to_dict()["jointSuccess"] is True
        assert score.to_dict()["experimentOptimality"] == 1.0
    assert main(["pool", "alternatives", str(source), str(again), "--seed", "3"]) == 0
    assert again.read_bytes() == made.read_bytes()


def test_instances_without_a_second_scm_are_named_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two roots, one mechanism of two parents seen in all four rows: nothing else fits."""
    source, made = tmp_path / "source.jsonl", tmp_path / "made.jsonl"
    write_pool(small_pool(["good"]), source)
    assert main(["pool", "alternatives", str(source), str(made)]) == 0
    assert capsys.readouterr().err.splitlines()[:2] == [
        "I0: no other SCM that a single intervention tells apart",
        f"0 instances written to {made}",
    ]


def test_open_ended_items_have_gold_as_reference_and_no_known_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, made = tmp_path / "source.jsonl", tmp_path / "made.jsonl"
    write_pool(small_pool(["good"]), source)
    assert main(["pool", "alternatives", str(source), str(made), "--open-ended"]) == 0
    assert capsys.readouterr().err.splitlines()[0] == f"1 instance written to {made}"
    (item,), (problem,) = read_pool(made).problems, read_pool(source).problems
    assert item.task.reference == problem.sealed.gold
    assert item.task.training == problem.task.training
    assert "known_answer" not in item.sealed.labels
    facts = pool_facts([made])
    assert facts.sources == {}  # an open-ended case of Table G.2


def test_pools_of_other_tasks_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "source.jsonl"
    write_pool(Pool("source", dev_problems("hidden_roots")[:1]), source)
    line = refused(capsys, "pool", "alternatives", source, tmp_path / "made.jsonl")
    assert line.endswith("has no gold SCM, hides its roots or has a reference")
    assert not (tmp_path / "made.jsonl").exists()
