"""What one door pays, the others pay: the vectors on thoughts through the adapters, run by the real packages."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.models import write_random_model
from tests.support.packages import needs
from tests.support.shared import shared_file, shared_records

needs("inspect_ai", "lm_eval", "verifiers", "trl", "torch", "datasets")

import datasets
import lm_eval
import verifiers.v1 as vf
from inspect_ai.solver import Generate, Solver, TaskState, solver
from lm_eval.tasks import TaskManager
from trl import GRPOConfig, GRPOTrainer
from verifiers.v1.graph import MessageNode
from verifiers.v1.types import AssistantMessage

import calibrant.lm_eval
from calibrant import inspect as adapter
from calibrant import rewards
from calibrant.bench.core.benchmark import PublicIds
from calibrant.bench.core.registry import benchmark_of
from calibrant.datasets import item_record
from calibrant_tasks import ItemTaskset
from calibrant_tasks.taskset import ItemConfig, ItemTaskConfig
from tests.integrations.inspect.logs import evaluated, own_id, said, samples
from tests.integrations.lm_eval.test_tasks import Answering

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch, transformers and trl
KIND = "thoughts/"
Vector = Mapping[str, Any]


def _vectors() -> Sequence[Vector]:
    vectors = [v for v in shared_records("vectors_answers_dev.jsonl", part="frontier") if v["kind"].startswith(KIND)]
    assert vectors
    return vectors


def _options(vector: Vector) -> dict[str, str]:
    words = vector["options"]
    return {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}


def _pools(folder: Path, *, with_extractors: bool) -> Iterator[tuple[Path, dict[str, str], dict[str, Vector]]]:
    """Write pools in which an item stands once for each of its vectors; yield them with options and vectors by id."""
    groups: dict[tuple[str, str], list[Vector]] = defaultdict(list)
    for vector in _vectors():
        options = _options(vector)
        if with_extractors or "extractor" not in options:
            groups[vector["pool"], json.dumps(options, sort_keys=True)].append(vector)
    for number, ((pool, option_text), vectors) in enumerate(groups.items()):
        header, *lines = shared_file(pool, part="frontier").read_text(encoding="utf-8").splitlines()
        records = {record["id"]: record for record in map(json.loads, lines)}
        by_item = {f"{vector['item']}-{place}": vector for place, vector in enumerate(vectors)}
        copies = [json.dumps({**records[vector["item"]], "id": name}) for name, vector in by_item.items()]
        path = folder / f"{number}_{pool}"
        path.write_text("\n".join([header, *copies]) + "\n", encoding="utf-8")
        yield path, json.loads(option_text), by_item


def _differences(paid: Mapping[str, object]) -> list[str]:
    """Return the vectors that a door pays otherwise; it has to have paid or refused each."""
    expected = {vector["id"]: float(vector["expect"]["correct"]) for vector in _vectors() if vector["id"] in paid}
    assert expected
    return [f"{name}: {paid[name]} for {value}" for name, value in expected.items() if paid[name] != value]


@solver
def _replied(texts: Mapping[str, str]) -> Solver:
    """Reply with the text of a sample, under a stop reason that states nothing, as a vector has none."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output = said(texts.get(str(state.sample_id), ""))
        state.output.choices[0].stop_reason = "unknown"
        return state

    return solve


def test_inspect(tmp_path: Path) -> None:
    paid: dict[str, object] = {}
    for pool, options, vectors in _pools(tmp_path, with_extractors=True):
        items: Any = calibrant.load_pool(pool)
        public = PublicIds.of_pool(pool, items)
        texts = {public.public(name): vector["text"] for name, vector in vectors.items()}
        task = getattr(adapter, benchmark_of(pool).name)(str(pool), **options)
        for sample in samples(evaluated(task, tmp_path / pool.stem, solver=_replied(texts))):
            vector = vectors[own_id(sample)]
            assert sample.scores
            (score,) = sample.scores.values()
            assert isinstance(score.value, dict)
            assert score.metadata is not None
            paid[vector["id"]] = score.value["correct"]
            assert score.metadata["reason"] == vector["expect"]["reason"], vector["id"]
    assert len(paid) == len(_vectors())
    assert _differences(paid) == []


def test_lm_eval(tmp_path: Path) -> None:
    paid: dict[str, object] = {}
    for pool, options, vectors in _pools(tmp_path, with_extractors=False):
        items: Any = calibrant.load_pool(pool)
        public = PublicIds.of_pool(pool, items)
        answered = {public.public(name): vector for name, vector in vectors.items()}
        answers = {name: vector["text"] for name, vector in answered.items()}
        folder = str(Path(calibrant.lm_eval.__file__).parent)
        metadata = {"pool": str(pool), **options}
        manager = TaskManager(include_path=folder, include_defaults=False, metadata=metadata)
        task = f"calibrant_{benchmark_of(pool).name}"
        results = lm_eval.simple_evaluate(
            model=Answering(answers), tasks=[task], task_manager=manager, bootstrap_iters=0, log_samples=True
        )
        for sample in results["samples"][task]:
            paid[answered[sample["doc"]["id"]]["id"]] = sample["extracted"]
    assert _differences(paid) == []


def test_verifiers(tmp_path: Path) -> None:
    """Scored by its own path, of a trace that holds the text as the model's message."""
    paid: dict[str, object] = {}
    for pool, options, vectors in _pools(tmp_path, with_extractors=False):
        config = ItemConfig(id="calibrant-tasks", pool=pool, task=ItemTaskConfig(**options))
        for task in ItemTaskset(config).load():
            vector = vectors[json.loads(task.data.record)["id"]]
            node = MessageNode(message=AssistantMessage(content=vector["text"]), sampled=True)
            trace = vf.Trace.model_construct(nodes=[node])
            paid[vector["id"]] = asyncio.run(task.reward(trace))["verdict"]
    assert _differences(paid) == []


def test_trl(tmp_path: Path) -> None:
    vectors = [vector for vector in _vectors() if not vector["options"]]
    items = {
        name: {item.id: item for item in calibrant.load_pool(shared_file(name, part="frontier"))}
        for name in {v["pool"] for v in vectors}
    }
    rows = [
        {
            "prompt": "p",
            "record": item_record(items[vector["pool"]][vector["item"]]),
            "benchmark": vector["benchmark"],
        }
        for vector in vectors
    ]
    tokenizer = write_random_model(tmp_path)
    settings = GRPOConfig(
        output_dir=str(tmp_path / "out"),
        per_device_train_batch_size=2,
        num_generations=2,
        use_cpu=True,
        bf16=False,
        report_to=[],
    )
    trainer = GRPOTrainer(
        model=str(tmp_path),
        reward_funcs=[rewards.verdict],
        args=settings,
        train_dataset=datasets.Dataset.from_list(rows),
        processing_class=tokenizer,
    )
    completions = [[{"role": "assistant", "content": vector["text"]}] for vector in vectors]
    prompts = [row["prompt"] for row in rows]
    paid = trainer._calculate_rewards(rows, prompts, completions, [[1]] * len(rows))[:, 0].tolist()
    assert _differences({vector["id"]: value for vector, value in zip(vectors, paid, strict=True)}) == []
