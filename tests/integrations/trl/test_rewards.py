"""The reward path of TRL's trainer, with a model of random weights that is made on disk."""

from __future__ import annotations

import json
import math
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import calibrant
from calibrant.bench.pools.generated import write_drawn
from tests.support.models import write_random_model
from tests.support.packages import needs

needs("trl", "torch", "datasets")

import datasets
from trl import GRPOConfig, GRPOTrainer
from typer.testing import CliRunner

from calibrant.bench.core.registry import NAMES, benchmark, bundled_sample
from calibrant.bench.hub.export import ExportRows
from calibrant.bench.training import in_turns, lesson
from calibrant.rewards import Environment, attributed, shaped, verdict
from tests.bench.commands.lines import app

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch, transformers and trl


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Of every benchmark, as the part of an export with gold has them."""
    folder = tmp_path_factory.mktemp("pools")
    for name in NAMES:
        bench = benchmark(name)
        write_drawn(bench, folder / f"{name}.jsonl", [bench.training.stages[0]], 5, 2)
    return list(ExportRows(sorted(folder.glob("*.jsonl")), folder / "rows"))


def one_step(folder: Path, **options: Any) -> Any:
    """Return settings of a trainer that takes one step with two short completions a prompt, on the processor."""
    return GRPOConfig(
        output_dir=str(folder / "out"),
        num_generations=2,
        max_completion_length=4,
        max_steps=1,
        use_cpu=True,
        bf16=False,
        report_to=[],
        save_strategy="no",
        logging_steps=1,
        **options,
    )


@pytest.fixture(scope="module")
def trainer(rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("model")
    tokenizer = write_random_model(folder)
    settings = one_step(folder, per_device_train_batch_size=4, log_completions=True, num_completions_to_print=0)
    return GRPOTrainer(
        model=str(folder),
        reward_funcs=[verdict, shaped, attributed],
        args=settings,
        train_dataset=datasets.Dataset.from_list(rows),
        processing_class=tokenizer,
    )


def test_rewards_of_a_batch_with_every_benchmark(trainer: Any) -> None:
    """Right answers, nothing, and a row of another task: the trainer's own path, None becomes NaN."""
    rows = list(trainer.train_dataset)
    assert {row["benchmark"] for row in rows} == set(NAMES)
    batch = [*rows, *rows, {**rows[0], "record": None}]
    said = [row["answer"] for row in rows] + ["no idea"] * len(rows) + ["no idea"]
    prompts = [row["prompt"] for row in batch]
    found = trainer._calculate_rewards(batch, prompts, said, [[1]] * len(batch)).tolist()
    right, wrong, foreign = found[: len(rows)], found[len(rows) : -1], found[-1]
    assert [row[:2] for row in right] == [[1.0, 1.0]] * len(rows)
    assert [row[:2] for row in wrong] == [[0.0, 0.0]] * len(rows)
    assert all(math.isnan(value) for value in foreign)


def test_a_step_is_trained(trainer: Any) -> None:
    """Random words earn nothing, and the columns of an export reach the rewards."""
    trainer._pending_metrics.clear()  # of the other tests
    trainer.train()
    logged = {name: value for entry in trainer.state.log_history for name, value in entry.items()}
    assert logged["rewards/verdict/mean"] == 0.0
    assert logged["calibrant/answered"] == 0.0


def test_its_table_of_completions_is_scored_by_one_command(trainer: Any, tmp_path: Path) -> None:
    """What the trainer's log writes of a right answer behind a draft, a draft that does not end, and no answer."""
    bench, pool = benchmark("causim"), bundled_sample("causim")
    items: Any = list(bench.items.read_pool(pool).items)[:2]
    right, other = (json.dumps(bench.training.gold(item)) for item in items)
    said = [(items[0], f"<think>{other}</think>{right}"), (items[1], "<think>It"), (items[0], "no"), (items[0], "no")]
    trainer.args.output_dir = str(tmp_path)
    (tmp_path / "completions").mkdir()
    for name, values in (
        ("prompt", [[{"role": "user", "content": bench.items.prompt(item)}] for item, _ in said]),
        ("completion", [[{"role": "assistant", "content": text}] for _, text in said]),
        ("advantages", [0.0] * len(said)),
    ):
        trainer._logs[name].clear()
        trainer._logs[name].extend(values)
    for rewards in trainer._logs["rewards"].values():
        rewards.clear()
        rewards.extend([0.0] * len(said))
    trainer._logs["extra"].clear()
    trainer.log({})
    (file,) = (tmp_path / "completions").glob("*.parquet")
    result = CliRunner().invoke(app, ["score", str(pool), str(file), "--json", "--model", "policy"])
    lines = [line for line in map(json.loads, result.stdout.splitlines()) if "summary" not in line]
    found = [(line["instanceId"], line["sample"], line["reason"], line["correct"]) for line in lines]
    first, second = (item.id for item in items)
    assert found == [
        (first, 0, "", True),
        (second, 0, "cut_off", False),
        (first, 1, "unreadable", False),
        (first, 2, "unreadable", False),
    ]


def test_conversations_of_episodes(trainer: Any) -> None:
    bench = benchmark("blickets")
    item = next(islice(in_turns(bench, (), 5), 1)).item
    columns = {
        "prompt": [{"role": "user", "content": "p"}],
        "benchmark": "blickets",
        "record": json.dumps(bench.items.record(item)),
    }
    said = [{"place": "A"}, {"check": bench.training.gold(item)}]
    played = [{"role": "assistant", "content": json.dumps(one)} for one in said]
    cut = [*played[:1], {"role": "user", "content": "The detector is INACTIVE."}]
    found = trainer._calculate_rewards([columns] * 2, [columns["prompt"]] * 2, [played, cut], [[1]] * 2).tolist()
    assert [row[0] for row in found] == [1.0, 0.0]


# --- The environment of several turns ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def interactive(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Rows of interactive items as an export with gold has them, prompts as messages."""
    folder = tmp_path_factory.mktemp("interactive")
    for name in ("blickets", "causalab"):
        bench = benchmark(name)
        write_drawn(bench, folder / f"{name}.jsonl", [bench.training.stages[0]], 5, 1)
    rows = list(ExportRows(sorted(folder.glob("*.jsonl")), folder / "rows"))
    for row in rows:
        system = [{"role": "system", "content": row["system"]}] if row["system"] else []
        row["prompt"] = [*system, {"role": "user", "content": row["prompt"]}]
    return [{key: row[key] for key in ("prompt", "record", "benchmark")} for row in rows]


def test_a_trainer_opens_an_episode_for_each_rollout(interactive: list[dict[str, Any]], tmp_path: Path) -> None:
    """One step with random weights: episodes are opened, the tool is `act`, and nothing submitted is worth 0."""
    from trl.chat_template_utils import qwen3_chat_template

    tokenizer = write_random_model(tmp_path)
    tokenizer.chat_template = qwen3_chat_template
    settings = one_step(tmp_path, per_device_train_batch_size=2)
    trainer = GRPOTrainer(
        model=str(tmp_path),
        args=settings,
        train_dataset=datasets.Dataset.from_list(interactive),
        processing_class=tokenizer,
        environment_factory=Environment,
    )
    assert [tool.__name__ for tool in trainer.tools] == ["act"]
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "rewards/Environment/mean" in entry]
    assert [entry["rewards/Environment/mean"] for entry in logged] == [0.0]


def test_an_environment_pays_what_the_verdict_of_its_actions_is(interactive: list[dict[str, Any]]) -> None:
    for row in interactive:
        item: Any = lesson(row["benchmark"], row["record"]).item
        environment = Environment()
        assert environment.reset(**row) is None  # the prompt of the row has all
        assert environment.reset(**{**row, "prompt": "Begin."}) is not None
        solution = calibrant.solve(item).value
        for step in solution.steps:
            environment.act(json.dumps(dict(step.action)))
        assert environment.get_reward() == 0.0
        for action in benchmark(row["benchmark"]).play.submission(solution.answer, solution.steps):
            environment.act(json.dumps(dict(action)))
        right = calibrant.score(item, solution.answer, steps=solution.steps).correct
        assert environment.get_reward() == float(bool(right)) == 1.0
        environment.reset(**row)
        assert environment.get_reward() == 0.0
