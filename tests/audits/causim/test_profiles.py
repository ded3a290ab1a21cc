"""Error profiles of rows that make one error each, and statistics of grown programs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from calibrant.audits.causim.attribution import error_profiles
from calibrant.audits.causim.generation import nameless, program_statistics
from calibrant.baselines.causim.rows import ROWS
from calibrant.bench.causim.benchmark import BENCHMARK
from calibrant.dsl.causim.generation import grow
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import Local
from calibrant.dsl.causim.topology import TOPOLOGIES
from calibrant.dsl.json_objects import last_object
from calibrant.solvers.causim.generation import generated_items
from calibrant.solvers.outcome import Found
from tests.support.commands import called, jsonl, refused


@pytest.fixture(scope="module")
def items() -> list[CausimItem]:
    return list(generated_items(23, "tree", 2, nodes=6, num_questions=4, types=["counterfactual", "intervention"]))


def profiled(row: str, items: list[CausimItem]) -> dict[str, int]:
    answered = []
    for item in items:
        found = ROWS[row](item.task, 0)
        answered.append((item, found.value if isinstance(found, Found) else None))
    profiles = error_profiles(answered, level=lambda item: item.task.question.type)
    (own,) = [profile for profile in profiles if profile.level == "counterfactual"]
    assert own.answers == sum(item.task.question.type == "counterfactual" for item in items)
    assert own.right + sum(own.first.values()) == own.explained
    return {str(reason): number for reason, number in own.nodes.items()}


def test_each_row_makes_its_own_error(items: list[CausimItem]) -> None:
    exact, no_do, prior, chance = (profiled(row, items) for row in ("exact", "no_do", "run_once", "random_symbols"))
    assert [count for reason, count in exact.items() if reason != "ok"] == [0, 0, 0]
    assert no_do["do ignored"] > 0
    assert (prior["do ignored"], prior["impossible"]) == (0, 0)
    assert prior["wrong noise"] > 0
    assert min(chance.values()) > 0


def test_answers_that_are_missing_count_and_levels_are_apart(items: list[CausimItem]) -> None:
    profiles = error_profiles((item, None) for item in items)
    assert sum(profile.answers for profile in profiles) == len(items)
    assert {(profile.right, profile.explained) for profile in profiles} == {(0, 0)}
    assert [profile.level for profile in profiles][:2] == ["counterfactual/01", "counterfactual/02"]


def test_tables_are_alike_up_to_names_only() -> None:
    rng = np.random.default_rng(8)
    for _ in range(30):
        table = rng.integers(0, 3, size=(3, 2, 3))
        domain = ("0", "1", "2")
        renamed = rng.permutation(3)[table][rng.permutation(3)][:, rng.permutation(2)][:, :, rng.permutation(3)]
        assert nameless(Local((0, 1), domain, table)) == nameless(Local((0, 1), domain, renamed))
    one, other = np.array([[0, 1], [1, 1]]), np.array([[0, 1], [1, 0]])
    assert nameless(Local((0,), ("0", "1"), one)) != nameless(Local((0,), ("0", "1"), other))


def test_statistics_count_every_node() -> None:
    models = [grow(31, str(k), topology, 5)[-1].model for topology in TOPOLOGIES for k in range(2)]
    found = program_statistics(models)
    assert (found.programs, found.tables) == (12, 60)
    assert 20 < found.different <= 60
    assert sum(found.domains.values()) == sum(found.supports.values()) == 60
    assert set(found.domains) <= {2, 3, 4}
    assert set(found.supports) <= {2, 3, 4, 5, 6}
    assert found.treewidths[1] >= 6


# --- Curricula of the paper and selected completions -----------------------------------------------------------------


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pool") / "pool.jsonl"
    options = ["programs=2", "versions=1-9", "types=intervention"]
    line = ["generate", "--benchmark", "causim", "--strata", "chain", "--seed", 3, "--out", path]
    assert called(*line, *(word for option in options for word in ("-o", option))).returncode == 0
    return path


def written(pool: Path, folder: Path, curriculum: str) -> dict[str, list[str]]:
    assert called("training", pool, "--out", folder, "--curriculum", curriculum).returncode == 0
    return {path.name: path.read_text("utf-8").splitlines() for path in sorted(folder.glob("*.jsonl"))}


def test_the_files_of_block_joined_are_at_once(pool: Path, tmp_path: Path) -> None:
    blocks = written(pool, tmp_path / "block", "block")
    at_once = written(pool, tmp_path / "once", "at-once")
    assert list(blocks) == ["block2.jsonl", "block4.jsonl", "block6.jsonl", "block8.jsonl"]
    joined = [line for lines in blocks.values() for line in lines[1:]]
    assert at_once["all.jsonl"] == [blocks["block2.jsonl"][0], *joined]
    assert {json.loads(line)["level"]["version"] for line in joined} == set(range(1, 9))  # 9 is in no block
    for name, lines in blocks.items():
        last = int(name[5])
        assert {json.loads(line)["level"]["version"] for line in lines[1:]} == {last - 1, last}


def test_a_manifest_says_which_checkpoint_samples_what(pool: Path, tmp_path: Path) -> None:
    sampled = {}
    for curriculum in ("block", "at-once", "easy", "hard"):
        written(pool, tmp_path / curriculum, curriculum)
        manifest = json.loads((tmp_path / curriculum / "manifest.json").read_text("utf-8"))
        assert manifest["curriculum"] == curriculum
        sampled[curriculum] = [(stage["file"], stage["sampled_by"]) for stage in manifest["stages"]]
    assert sampled["block"][0] == ("block2.jsonl", "base")
    assert sampled["block"][3] == ("block8.jsonl", "trained on block6.jsonl")
    assert sampled["at-once"] == [("all.jsonl", "base")]
    assert sampled["easy"] == [("block2.jsonl", "base")]
    assert sampled["hard"] == [("block8.jsonl", "base")]


def test_the_first_right_completion_of_each_prompt_is_selected(pool: Path, tmp_path: Path) -> None:
    items = list(BENCHMARK.items.read_pool(pool).items)
    solutions = tmp_path / "solutions.jsonl"
    assert called("training", pool, "--out", solutions).returncode == 0
    right = {
        record["id"]: record["solution"] for record in map(json.loads, solutions.read_text("utf-8").splitlines()[1:])
    }
    first, second, third = items[:3]
    lines = [(first, "{}"), (first, right[first.id]), (first, "later " + right[first.id]), (second, "nothing")]
    path = jsonl(tmp_path / "r.jsonl", *({"instanceId": item.id, "response": text} for item, text in lines))
    out = tmp_path / "chats.jsonl"
    done = called("training", pool, "--out", out, "--responses", path, "--select", "first-correct")
    (chat,) = map(json.loads, out.read_text("utf-8").splitlines())
    assert (chat["id"], chat["messages"][1]["content"]) == (first.id, right[first.id])
    assert chat["messages"][0]["content"] == first.task.prompt
    assert "1 prompts with a right completion, 1 without one are dropped" in done.stderr
    assert "block 2, intervention: 4 samples" in done.stderr
    answer = last_object(chat["messages"][1]["content"])
    assert answer is not None
    assert BENCHMARK.scoring.score(first, answer, ())["correct"] is True  # kept completions score 1
    assert third.id not in out.read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--curriculum", "none"], "unknown curriculum 'none'; known: block, at-once, easy, hard"),
        (["--curriculum", "block", "--order", "version"], "give one of --order, --curriculum and --select"),
        (["--select", "first-correct"], "give both --responses and --select"),
        (["--responses", "r.jsonl", "--select", "best"], "unknown selection 'best'"),
        (["--responses", "r.jsonl", "--select", "first-correct"], "no instance 'x' in the pool"),
        (["--responses", "bad.jsonl", "--select", "first-correct"], "bad.jsonl: line 1: instanceId and response"),
    ],
)
def test_what_does_not_go_together_is_refused(
    words: list[str],
    reason: str,
    pool: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    jsonl(Path("r.jsonl"), {"instanceId": "x", "response": "{}"})
    jsonl(Path("bad.jsonl"), {"instanceId": "x"})
    assert reason in refused(capsys, "training", pool, "--out", "out", *words)
    assert not Path("out").exists()
