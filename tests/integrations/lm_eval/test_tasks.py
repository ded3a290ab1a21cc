"""The tasks of lm-evaluation-harness, run by it: with its dummy model, and with models that answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.pools.generated import write_drawn
from tests.support.packages import needs
from tests.support.replayscm.extensions import small_problem

needs("lm_eval")

import lm_eval
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

import calibrant.lm_eval
from calibrant.bench.core.benchmark import PublicIds
from calibrant.bench.core.registry import NAMES, benchmark
from calibrant.dsl.errors import CalibrantError
from calibrant.lm_eval.items import documents, results

FOLDER = Path(calibrant.lm_eval.__file__).parent
METRICS = ("strict", "extracted", "shaped", "answered")


class Answering(LM):
    """Gives the answers of a table from ids of items to texts."""

    def __init__(self, answers: dict[str, str]) -> None:
        super().__init__()
        self.answers = answers

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        return [self.answers[request.doc["id"]] for request in requests]

    def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[Any]:
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[Any]:
        raise NotImplementedError


def _scores(model: Any, tasks: list[str], metadata: dict[str, Any]) -> dict[str, dict[str, float]]:
    manager = TaskManager(include_path=str(FOLDER), include_defaults=False, metadata=metadata)
    found = lm_eval.simple_evaluate(model=model, tasks=tasks, task_manager=manager, bootstrap_iters=0)
    return {task: {name: found["results"][task][f"{name},none"] for name in METRICS} for task in tasks}


def test_the_dummy_model_answers_nothing() -> None:
    tasks = [f"calibrant_{name}" for name in NAMES]
    assert _scores("dummy", tasks, {"count": 2}) == {task: dict.fromkeys(METRICS, 0.0) for task in tasks}


@pytest.mark.parametrize("name", NAMES)
def test_strict_and_extracted_verdicts(name: str) -> None:
    """Four items: right alone, right among words, another object, nothing."""
    rows = documents(name, seed=3, count=4)["test"]
    said = (rows[0]["answer"], f"I found it:\n{rows[1]['answer']}\nThat is all.", '{"nothing": 1}', "I cannot tell.")
    answers = dict(zip(rows["id"], said, strict=True))
    (found,) = _scores(Answering(answers), [f"calibrant_{name}"], {"seed": 3, "count": 4}).values()
    assert (found["strict"], found["extracted"]) == (0.25, 0.5)
    assert found["shaped"] == 0.5


def test_an_item_with_nothing_held_out_has_no_verdict(tmp_path: Path) -> None:
    """The second of two noisy items; the means are those of the first."""
    bench = benchmark("replayscm")
    records = [bench.items.record(small_problem(seed, rate="1/10", is_episode=False)) for seed in (1, 2)]
    records[1]["sealed"]["heldout"] = []
    lines = [{"format": "calibrant-pool", "version": 1, "name": "noisy"}, *records]
    (tmp_path / "pool.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    rows = documents("replayscm", pool=str(tmp_path / "pool.jsonl"))["test"]
    assert set(results(rows[1], [rows[1]["answer"]])) == {"shaped", "answered"}
    answers = dict(zip(rows["id"], rows["answer"], strict=True))
    (means,) = _scores(Answering(answers), ["calibrant_replayscm"], {"pool": str(tmp_path / "pool.jsonl")}).values()
    assert (means["extracted"], means["strict"], means["answered"]) == (1.0, 1.0, 1.0)


def test_a_pool_is_evaluated(tmp_path: Path) -> None:
    bench = benchmark("causim")
    write_drawn(bench, tmp_path / "pool.jsonl", ["chain"], 1, 3)
    rows = documents("causim", pool=str(tmp_path / "pool.jsonl"))["test"]
    items = bench.items.read_pool(tmp_path / "pool.jsonl").items
    public = PublicIds.of_pool(tmp_path / "pool.jsonl", items)
    assert rows["id"] == [public.public(item.id) for item in items]
    assert [bench.items.item_of_record(json.loads(record)) for record in rows["record"]] == list(items)
    assert results(rows[0], [rows[0]["answer"]]) == dict.fromkeys(METRICS, 1.0)
    with pytest.raises(CalibrantError, match="is a pool of CauSim; its task is calibrant_causim"):
        documents("blickets", pool=str(tmp_path / "pool.jsonl"))
