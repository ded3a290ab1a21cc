"""The example of docs/models.md, as it stands there: from prompts to scores, against a model on the loopback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.core.registry import benchmark
from calibrant.bench.pools.generated import write_drawn
from tests.support.commands import CHECKOUT, called
from tests.support.models import served

PAGE = (CHECKOUT / "docs" / "models.md").read_text(encoding="utf-8")
(PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def _ask(folder: Path, url: str, check: bool = True) -> int:
    settings = {**os.environ, "MODEL_URL": url, "MODEL_KEY": "none", "no_proxy": "*"}
    line = [sys.executable, "-c", PROGRAM, "prompts.jsonl", "my-model", "answers.jsonl"]
    return subprocess.run(line, cwd=folder, env=settings, check=check, timeout=60, capture_output=True).returncode


@pytest.fixture
def asked(tmp_path: Path) -> dict[str, str]:
    """Prompts of a pool in a folder, and a right answer to each."""
    of = benchmark("causim")
    write_drawn(of, tmp_path / "pool.jsonl", ["chain"], 1, 6)
    called("prompts", tmp_path / "pool.jsonl", "--out", tmp_path / "prompts.jsonl")
    items = of.items.read_pool(tmp_path / "pool.jsonl").items
    return {of.items.prompt(item): json.dumps(of.training.gold(item)) for item in items}


def test_it_is_as_short_as_it_says() -> None:
    assert len(PROGRAM.splitlines()) <= 25


def test_from_prompts_to_scores(tmp_path: Path, asked: dict[str, str]) -> None:
    with served(lambda messages: asked[messages[-1]["content"]]) as url:
        _ask(tmp_path, url)
    called("score", tmp_path / "pool.jsonl", tmp_path / "answers.jsonl", "--out", tmp_path / "scores.jsonl")
    scores = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert [(score["model"], score["correct"]) for score in scores] == [("my-model", True)] * 6


def test_it_goes_on_from_what_is_written(tmp_path: Path, asked: dict[str, str]) -> None:
    """After three answers, of which one was cut off in the middle of its line."""
    with served(lambda messages: asked[messages[-1]["content"]]) as url:
        _ask(tmp_path, url)
        whole = (tmp_path / "answers.jsonl").read_text().splitlines(keepends=True)
        (tmp_path / "answers.jsonl").write_text("".join(whole[:2]) + whole[2][:20])
    calls: list[list[dict[str, Any]]] = []
    with served(lambda messages: asked[messages[-1]["content"]], calls) as url:
        _ask(tmp_path, url)
    again = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert len(calls) == 4
    assert [(line["instanceId"], line["response"]) for line in again] == [
        (line["instanceId"], line["response"]) for line in map(json.loads, whole)
    ]


def test_an_endpoint_that_is_not_there_is_an_error(tmp_path: Path, asked: dict[str, str]) -> None:
    assert _ask(tmp_path, "http://127.0.0.1:9/v1", check=False) != 0
    assert (tmp_path / "answers.jsonl").read_text() == ""
