"""The taskset of verifiers: its own commands check every benchmark, and a stand-in model plays it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.core.registry import bundled_sample
from calibrant.bench.pools.generated import write_drawn
from tests.support.packages import needs

needs("verifiers")

import verifiers.v1 as vf
from pydantic_config import cli
from typer.testing import CliRunner
from verifiers.v1.cli.eval.runner import run_eval
from verifiers.v1.cli.resolve import narrow_config, with_positional_taskset
from verifiers.v1.cli.validate import run_validate
from verifiers.v1.configs.cli.eval import EvalConfig
from verifiers.v1.configs.cli.validate import ValidateConfig
from verifiers.v1.utils.loaders import default_harness_id, environment_class, load_taskset, taskset_config_type

from calibrant.bench.core.benchmark import PublicIds
from calibrant.bench.core.registry import NAMES, benchmark
from calibrant.bench.training import in_turns
from tests.bench.commands.lines import app
from tests.support.commands import CHECKOUT
from tests.support.models import served

ID = "calibrant-tasks"
TOOLS = Path(sys.executable).parent
NOT_PUSHED = ("--no-push", "--no-rich", "-m", "stand-in", "--client.api-key-var", "STAND_IN_KEY")


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let verifiers find `uv` beside its commands, a key, and this checkout."""
    monkeypatch.setenv("PATH", os.pathsep.join((str(TOOLS), os.environ["PATH"])))
    monkeypatch.setenv("STAND_IN_KEY", "none")
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))


def _tool(name: str, *arguments: object) -> str:
    """Return the output of one of verifiers' commands."""
    line = [str(TOOLS / name), ID, *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def _loaded(**options: Any) -> Any:
    return load_taskset(taskset_config_type(ID)(id=ID, **options))


def _drawn(name: str, number: int) -> list[Any]:
    return [drawn.item for drawn in islice(in_turns(benchmark(name), (), 0), number)]


def test_the_command_finds_gold_right_and_the_untouched_task_not(tmp_path: Path) -> None:
    options = ("--taskset.benchmark", "blickets", "-n", 4, "--runtime.type", "subprocess", "--no-rich", "-o", tmp_path)
    _tool("vf-validate", *options)
    (results,) = tmp_path.rglob("results.jsonl")
    _require_valid([json.loads(line) for line in results.read_text().splitlines()], 4)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "blickets"])
def test_gold_is_right_and_the_untouched_task_is_not(name: str, tmp_path: Path) -> None:
    """What the command runs, in this process."""
    taskset = {"id": ID, "benchmark": name}
    chosen = {"taskset": taskset, "select": {"limit": 8}, "runtime": {"type": "subprocess"}, "rich": False}
    config = ValidateConfig.model_validate(chosen | {"output_dir": tmp_path})
    _require_valid(asyncio.run(run_validate(config)), 8)


def _require_valid(rows: list[dict[str, Any]], number: int) -> None:
    found = [(row["gold"]["valid"], row["noop"]["valid"], row["noop"]["reward"]) for row in rows]
    assert found == [(True, True, 0.0)] * number


def _traces(folder: Path) -> list[dict[str, Any]]:
    (traces,) = folder.rglob("traces.jsonl")
    return [trace for line in traces.read_text().splitlines() for trace in json.loads(line)["traces"]]


def _options(name: str, url: str, folder: Path) -> tuple[object, ...]:
    of = ("--env.taskset.benchmark", name, *NOT_PUSHED, "--client.base-url", url, "-o", folder)
    return (*of, "--env.agent.runtime.type", "subprocess")


def _play(
    name: str, model: Callable[[list[dict[str, Any]]], str], folder: Path, *options: object
) -> list[dict[str, Any]]:
    """Return the traces of what the command runs, in this process: a start of the command takes 8 s."""
    with served(model) as url:
        line = with_positional_taskset([ID, *map(str, (*_options(name, url, folder), *options))])
        asyncio.run(run_eval(cli(narrow_config(EvalConfig, line), args=line)))
    return _traces(folder)


def _asked(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "user"]


def test_a_model_that_answers_at_once(tmp_path: Path) -> None:
    bench, items = benchmark("causim"), _drawn("causim", 2)
    right = {
        bench.items.prompt(items[0]): json.dumps(bench.training.gold(items[0])),
        bench.items.prompt(items[1]): "no idea",
    }
    with served(lambda messages: right[_asked(messages)[0]]) as url:
        _tool("vf-eval", *_options("causim", url, tmp_path), "-n", 2)
    traces = _traces(tmp_path)
    found = {trace["task"]["data"]["id"]: trace["rewards"]["verdict"]["score"] for trace in traces}
    public = PublicIds.of_seed("causim", 0)
    assert found == {public.public(items[0].id): 1.0, public.public(items[1].id): 0.0}


def test_its_traces_are_scored_by_one_command(tmp_path: Path) -> None:
    """A right answer behind a draft, a draft that does not end, and a model that fails."""
    bench, pool = benchmark("causim"), bundled_sample("causim")
    items: Any = bench.items.read_pool(pool).items
    golds = [json.dumps(bench.training.gold(item)) for item in items]
    texts = {
        bench.items.prompt(items[0]): f"<think>{golds[1]}</think>{golds[0]}",
        bench.items.prompt(items[1]): "<think>It",
    }
    options = ("-n", 3, "--env.taskset.pool", pool)
    _play("causim", lambda messages: texts[_asked(messages)[0]], tmp_path, *options)
    (file,) = tmp_path.rglob("traces.jsonl")
    result = CliRunner().invoke(app, ["score", str(pool), str(file), "--json"])
    lines = {line["instanceId"]: line for line in map(json.loads, result.stdout.splitlines()) if "summary" not in line}
    found = [(line["reason"], line["correct"]) for line in (lines[item.id] for item in items[:3])]
    assert found == [("", True), ("only_thoughts", False), ("infrastructure_error", None)]
    assert {line["model"] for line in lines.values()} == {"stand-in"}


def test_a_model_that_experiments_first(tmp_path: Path) -> None:
    """It places an object, is told of the detector, and hands in the right rule, which one reading does not decide."""
    bench, (item,) = benchmark("blickets"), _drawn("blickets", 1)
    heard: list[str] = []

    def model(messages: list[dict[str, Any]]) -> str:
        asked = _asked(messages)
        if len(asked) == 1:
            return json.dumps({"place": "A"})
        heard.append(asked[-1])
        return "ACTION: " + json.dumps({"check": bench.training.gold(item)})

    options = ("-n", 1, "--env.taskset.task.reward", "attributed")
    (trace,) = _play("blickets", model, tmp_path, *options)
    assert trace["rewards"]["attributed"]["score"] == 0.5
    assert trace["metrics"]["answered"] == 1.0
    assert [said.startswith("The detector is ") for said in heard] == [True]


def test_a_model_that_sets_a_property_first_in_a_laboratory(tmp_path: Path) -> None:
    """It is told what its setting changed, then of the reactor, and submits; a wrong try before is no answer."""
    bench, (item,) = benchmark("causalab"), _drawn("causalab", 1)
    gold = dict(bench.training.gold(item) or {})
    frequency = gold.pop("frequency")
    actions: list[dict[str, Any]] = [
        {"set": item.task.settable[0], "value": 5.0},
        {"reactor": frequency + 50},
        {"reactor": frequency},
        {"submit": gold},
    ]
    heard: list[str] = []

    def model(messages: list[dict[str, Any]]) -> str:
        asked = _asked(messages)
        heard.append(asked[-1])
        return json.dumps(actions[len(asked) - 1])

    (trace,) = _play("causalab", model, tmp_path, "-n", 1)
    assert trace["rewards"]["verdict"]["score"] == 1.0
    assert trace["metrics"]["answered"] == 1.0
    told = bench.play.open(item)
    assert heard[1:] == [bench.play.describe(told, told.act(action)) for action in actions[:-1]]
    assert f"{item.task.settable[0]}" in heard[1]
    assert len(set(heard)) == 4


def test_a_model_that_asks_for_a_world_of_a_causal_model(tmp_path: Path) -> None:
    """It gets the world as a table, and hands in gold."""
    bench, path = benchmark("replayscm"), bundled_sample("replayscm_episodes")
    gold_by_prompt = {bench.items.prompt(item): bench.training.gold(item) for item in bench.items.read_pool(path).items}
    heard: list[str] = []

    def model(messages: list[dict[str, Any]]) -> str:
        asked = _asked(messages)
        if len(asked) == 1:
            return 'No mechanism is certain yet.\nACTION: {"do": {"X1": 1}}'
        heard.append(asked[-1])
        return "ACTION: " + json.dumps({"submit": gold_by_prompt[asked[0]]})

    (trace,) = _play("replayscm", model, tmp_path, "-n", 1, "--env.taskset.pool", path)
    assert trace["rewards"]["verdict"]["score"] == 1.0
    assert trace["metrics"]["answered"] == 1.0
    assert [said.startswith("World 1 (X1=1):") for said in heard] == [True]


def test_items_without_end_have_labels_and_come_in_stages() -> None:
    stages = _loaded(benchmark="causalab", suites=["3nodes", "4nodes"], per_stage=2)
    assert not stages.bounded
    tasks = list(islice(iter(stages), 5))
    assert [task.data.name for task in tasks] == ["3nodes", "3nodes", "4nodes", "4nodes", "4nodes"]
    assert [task.data.difficulty["nodes"] for task in tasks] == [3, 3, 4, 4, 4]
    assert [task.key for task in islice(iter(stages), 5)] != [task.key for task in islice(iter(_loaded(seed=1)), 5)]


def test_a_pool_is_a_bounded_taskset(tmp_path: Path) -> None:
    bench = benchmark("causim")
    write_drawn(bench, tmp_path / "pool.jsonl", ["chain"], 1, 3)
    tasks = _loaded(pool=tmp_path / "pool.jsonl")
    assert tasks.bounded
    items = bench.items.read_pool(tmp_path / "pool.jsonl").items
    assert [task.lesson.item for task in tasks] == list(items)


def test_no_agent_with_tools_is_started_unless_it_is_asked_for() -> None:
    assert default_harness_id(ID) == ID
    assert issubclass(environment_class(ID), vf.Env)
