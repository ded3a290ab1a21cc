"""Agents in episodes through Inspect, and rows of ours there."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.protocols import protocols_of
from tests.support.packages import needs

needs("inspect_ai")

from inspect_ai import score
from inspect_ai.log import EvalLog
from inspect_ai.model import ModelOutput

import calibrant
from calibrant import inspect as adapter
from calibrant.bench.cli import main
from calibrant.bench.core.metrics import InvalidHandling
from calibrant.bench.core.registry import benchmark
from calibrant.bench.runs.workers import timed_answer
from calibrant.dsl.replayscm.item import Pool
from calibrant.dsl.replayscm.pools.files import write_pool
from calibrant.inspect import protocol, verdict
from tests.integrations.inspect.conftest import pool_of
from tests.integrations.inspect.logs import (
    all_figures,
    called,
    evaluated,
    figures,
    metrics,
    own_id,
    rate,
    said,
    samples,
)
from tests.support.replayscm.extensions import gold_submission, small_problem

# --- Agents in episodes: the tool does what the episode does; the transcript is what counts, also when scored again ---
EPISODES = ("blickets", "causalab")


@pytest.fixture(scope="module", params=EPISODES)
def interactive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pool_of(request.param, tmp_path_factory.mktemp("pool"))


def _actions(pool: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the exact row's actions in each item's episode, the submission too."""
    bench = benchmark(pool.stem)
    row = protocols_of(bench)["exact"]()
    answers = {item.id: timed_answer(row, bench.handout(item)) for item in bench.items.read_pool(pool).items}
    return {item: [dict(step.action) for step in answer.steps or ()] for item, answer in answers.items()}


def _played(pool: Path, folder: Path, replies: Mapping[str, Sequence[ModelOutput]], **options: Any) -> EvalLog:
    """Return a log in which each item's agent says these things in turn; what comes after them is idle talk.

    A model knows an item by its prompt: of those that share one, the first is played.
    """
    bench = benchmark(pool.stem)
    items = bench.items.read_pool(pool).items
    known = {bench.items.messages(item)[-1]["content"]: item.id for item in items[::-1]}

    def reply(messages: list[Any]) -> ModelOutput:
        asked = next(message.text for message in messages if message.role == "user")
        (turns,) = [replies[item] for prompt, item in known.items() if asked.startswith(prompt)]
        turn = sum(message.role == "assistant" for message in messages)
        return turns[turn].model_copy(deep=True) if turn < len(turns) else said("And so on.")

    task = getattr(adapter, bench.name)(str(pool), **options)
    task.dataset = task.dataset.filter(lambda sample: own_id(sample) in known.values())
    return evaluated(task, folder, reply=reply)


def _experiments(actions: Sequence[dict[str, Any]]) -> list[ModelOutput]:
    return [called("run_experiment", action=json.dumps(action)) for action in actions]


def test_an_agent_that_does_what_the_exact_row_does_is_right(interactive: Path, tmp_path: Path) -> None:
    actions = _actions(interactive)
    log = _played(interactive, tmp_path, {item: _experiments(done) for item, done in actions.items()})
    for sample in samples(log):
        assert [step["action"] for step in sample.store["Transcript:steps"]] == actions[own_id(sample)]
        assert sample.store["Transcript:handed_in"] is True
    assert metrics(log)["correct"] == rate(1.0, interactive.stem)


def test_two_calls_in_a_message_are_two_steps_in_their_order(interactive: Path, tmp_path: Path) -> None:
    actions = _actions(interactive)
    replies = {}
    for item, done in actions.items():
        first, second, *rest = _experiments(done)
        first.message.tool_calls = [*(first.message.tool_calls or ()), *(second.message.tool_calls or ())]
        replies[item] = [first, *rest]
    log = _played(interactive, tmp_path, replies)
    for sample in samples(log):
        assert [step["action"] for step in sample.store["Transcript:steps"]] == actions[own_id(sample)]
        told = [message.text for message in sample.messages if message.role == "system"]
        assert not [text for text in told if "parallel" in text]
        assert any("One experiment at a time" in text for text in told)
    assert metrics(log)["correct"] == rate(1.0, interactive.stem)


def test_the_same_answer_by_the_tool_submit_is_right(
    interactive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = benchmark(interactive.stem)
    replies = {}
    for item, done in _actions(interactive).items():
        kept = [action for action in done if not action.keys() & {"check", "submit", "reactor"}]
        (last,) = [action[verb] for action in done for verb in ("check", "submit") if verb in action]
        dialled = [action["reactor"] for action in done if "reactor" in action]
        answer = last if bench.name == "blickets" else {"frequency": dialled[-1], **last}
        replies[item] = [*_experiments(kept), called("submit", answer=json.dumps(answer))]
    log = _played(interactive, tmp_path, replies)
    assert metrics(log)["correct"] == rate(1.0, interactive.stem)
    assert all(sample.store["Transcript:handed_in"] is False for sample in samples(log))
    assert main(["score", str(interactive), log.location, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["correct"] for line in lines] == [True] * len(samples(log))
    assert {line["model"] for line in lines} == {"mockllm/model"}


def test_replies_that_are_no_action_cost_nothing_and_end(interactive: Path, tmp_path: Path) -> None:
    nothing = [said("Hm."), called("run_experiment", action="no JSON"), called("run_experiment", action="{}")]
    log = _played(interactive, tmp_path, dict.fromkeys(_actions(interactive), nothing), turns=6)
    assert metrics(log)["correct"] == rate(0.0, interactive.stem)
    for sample in samples(log):
        told = [message.text for message in sample.messages if message.role == "tool"]
        assert told[0].startswith("Not understood: ")
        assert "Refused: " in told[1]
        assert sum(message.role == "assistant" for message in sample.messages) == 6


def test_scoring_again_replays_the_transcript(interactive: Path, tmp_path: Path) -> None:
    pool = pool_of(interactive.stem, tmp_path)
    log = _played(pool, tmp_path, {item: _experiments(done) for item, done in _actions(pool).items()})
    pool.unlink()
    assert all_figures(score(log, verdict(), action="overwrite", display="none")) == all_figures(log)


def test_a_forged_transcript_is_refused_in_a_line_and_the_rest_is_scored(
    interactive: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = _played(interactive, tmp_path, {item: _experiments(done) for item, done in _actions(interactive).items()})
    first = samples(log)[0]
    log.samples = [first.model_copy(deep=True, update={"epoch": epoch}) for epoch in (1, 2, 3)]
    forged, unreadable, right = log.samples
    steps = forged.store["Transcript:steps"]
    number = next(index for index, step in enumerate(steps) if step.get("reading") is not None)
    steps[number]["reading"] = "ACTIVE 7"
    unreadable.store["Transcript:steps"][0] = {"nothing": 1}
    again = score(log, verdict(), action="overwrite", display="none")
    assert again.status == "success"
    found = {sample.epoch: (sample.scores or {})["verdict"] for sample in samples(again)}
    for epoch, why in ((forged.epoch, f"step {number}: reading"), (unreadable.epoch, "transcript: ")):
        assert isinstance(value := found[epoch].value, float)
        assert math.isnan(value)
        assert found[epoch].reason == "refused"
        assert why in (found[epoch].explanation or "")
        lines = [line for line in caplog.messages if f"sample {first.id}, epoch {epoch} is not scored: " in line]
        assert len(lines) == 1
        assert why in lines[0]
    assert isinstance(figures := found[right.epoch].value, dict)
    assert figures["correct"] == 1.0
    assert metrics(again)["correct"]["mean"] == 1.0


# --- Episodes of ReplaySCM beside items that are answered at once: an agent plays the former, one log has both --------
def test_an_agent_plays_episodes_and_answers_other_items_at_once(tmp_path: Path) -> None:
    episode, passive = small_problem(1), small_problem(2, is_episode=False)
    pool = tmp_path / "replayscm.jsonl"
    write_pool(Pool("pool", (episode, passive)), pool)
    start = benchmark("replayscm").items.messages(episode)[-1]["content"]

    def reply(messages: list[Any]) -> ModelOutput:
        prompt = next(message.text for message in messages if message.role == "user")
        if not prompt.startswith(start):
            return said(json.dumps(gold_submission(passive)))
        turn = sum(message.role == "assistant" for message in messages)
        actions = [{"do": {"X1": 1}}, {"submit": gold_submission(episode)}]
        return called("run_experiment", action=json.dumps(actions[min(turn, 1)]))

    log = evaluated(adapter.replayscm(str(pool)), tmp_path / "logs", reply=reply)
    assert metrics(log)["correct"] == {"mean": 1.0, "stderr": 0.0}
    played = [sample.store["Transcript:steps"] for sample in samples(log) if "Transcript:steps" in sample.store]
    assert [[sorted(step["action"]) for step in steps] for steps in played] == [[["start"], ["do"], ["submit"]]]


# --- Rows of ours through Inspect: what they answer and score there is what `calibrant run` records -------------------
@pytest.mark.parametrize("row", ["exact", None])
def test_a_row_scores_as_in_a_run(pool: Path, tmp_path: Path, row: str | None) -> None:
    bench = benchmark(pool.stem)
    name = row or list(protocols_of(bench))[-1]
    log = evaluated(getattr(adapter, bench.name)(str(pool)), tmp_path, solver=protocol(name))
    recorded = {record.instance: record for record in calibrant.run(name, pool, tmp_path / "runs")}
    assert len(samples(log)) == len(recorded) == 4
    columns = bench.metrics.views[bench.metrics.default_view].metrics
    for sample in samples(log):
        record = recorded[own_id(sample)]
        assert json.loads(sample.output.completion or "{}") == record.answer
        asked = bench.metrics.verdict(record.score, record.setting, InvalidHandling.PUBLISHED)
        expected = {column.key: column.value(asked) for column in columns} | {
            "correct": record.score["correct"] is True
        }
        found = figures(sample)
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert math.isnan(found[key]) if value is None else found[key] == value
    if name == "exact":
        assert metrics(log)["correct"] == {"mean": 1.0, "stderr": 0.0}


def test_epochs_are_samples_of_the_row(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = evaluated(getattr(adapter, pool.stem)(str(pool)), tmp_path, solver=protocol("exact"), epochs=2)
    assert main(["score", str(pool), log.location, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    ids = [item.id for item in benchmark(pool.stem).items.read_pool(pool).items]
    assert [(line["instanceId"], line["sample"]) for line in lines] == [(one, k) for one in ids for k in (0, 1)]
    assert {(line["model"], line["correct"]) for line in lines} == {("exact", True)}


def test_a_log_is_read_by_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.integrations.inspect.conftest import pool_of

    pool = pool_of("replayscm", tmp_path)
    log = evaluated(adapter.replayscm(str(pool)), tmp_path, solver=protocol("exact"))
    line = ["report", "--predictions", log.location, "--pools", str(pool), "--format", "csv", "--no-times"]
    assert main([*line, "--table", "1"]) == 0
    assert ",exact," in capsys.readouterr().out


def test_what_a_row_cannot_be_is_said(pool: Path, tmp_path: Path) -> None:
    task = getattr(adapter, pool.stem)
    for wrong, error in ((protocol("nothing"), "unknown protocol 'nothing'"), (protocol("exact", no=1), "its options")):
        log = evaluated(task(str(pool)), tmp_path, solver=wrong)
        assert log.status == "error"
        assert log.error is not None
        assert error in log.error.message


def test_a_file_is_no_name_of_a_row(pool: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("raise SystemExit('this was run')\n", encoding="utf-8")
    log = evaluated(getattr(adapter, pool.stem)(str(pool)), tmp_path, solver=protocol(f"{own}:Row"))
    assert log.error is not None
    assert "unknown protocol" in log.error.message


def test_a_pool_of_another_benchmark_is_refused(pool: Path) -> None:
    for name in ("replayscm", "blickets", "causalab", "causim"):
        if name != pool.stem:
            with pytest.raises(calibrant.CalibrantError, match=f"the task is calibrant/{pool.stem}"):
                getattr(adapter, name)(str(pool))
