"""Answers as models, harnesses and providers give them, against vectors from a reader of the specification's own."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import calibrant
from calibrant import rewards
from calibrant.bench.core.registry import benchmark_of_item
from calibrant.datasets import item_record
from tests.bench.commands.lines import app
from tests.support.shared import shared_file, shared_records

VECTORS = "vectors_answers_dev.jsonl"
GROUPS = ("thoughts", "rewards", "episodes", "reasons", "formats", "lines", "form")
FIELDS = ("item", "model", "sample", "reason", "correct", "correctPublished", "correctLenient", "source")
Vector = Mapping[str, Any]


@cache
def _pool(name: str) -> Path:
    return shared_file(name, part="frontier")


@cache
def _items(name: str) -> dict[str, Any]:
    return {item.id: item for item in calibrant.load_pool(_pool(name))}


def _item(vector: Vector) -> Any:
    return _items(vector["pool"])[vector["item"]]


def _keywords(options: Sequence[str]) -> dict[str, Any]:
    return {
        name.removeprefix("--").replace("-", "_"): value
        for name, value in zip(options[::2], options[1::2], strict=True)
    }


def _of_text(vector: Vector, folder: Path) -> dict[str, Any]:
    score = calibrant.score(_item(vector), vector["text"], **_keywords(vector["options"]))
    return {
        "correct": score.correct,
        "reason": score.reason,
        "correctPublished": score.correct_published,
        "correctLenient": score.correct_lenient,
        "repairs": bool(score.repairs),
    }


def _of_reward(vector: Vector, folder: Path) -> dict[str, Any]:
    item = _item(vector)
    (verdict,) = rewards.verdict(
        [vector["completion"]],
        record=[item_record(item)],
        benchmark=[benchmark_of_item(item).name],
        **_keywords(vector["options"]),
    )
    return {"verdict": verdict}


def _of_episode(vector: Vector, folder: Path) -> dict[str, Any]:
    episode = calibrant.text_episode(_item(vector), **_keywords(vector["options"]))
    episode.reset()
    reactions = [episode.reply(reply) for reply in vector["replies"]]
    return {
        "steps": [[step["action"] for step in reaction.info["steps"]] for reaction in reactions],
        "left": [reaction.info["left"] for reaction in reactions],
    }


def _of_file(vector: Vector, folder: Path) -> dict[str, Any]:
    raw = base64.b64decode(vector["base64"]) if "base64" in vector else vector["text"].encode()
    file = folder / f"predictions{vector['suffix']}"
    file.write_bytes(raw)
    result = CliRunner().invoke(app, ["score", str(_pool(vector["pool"])), str(file), "--json", *vector["options"]])
    if isinstance(result.exception, calibrant.CalibrantError):
        return {"rc": 2, "where": vector["expect"].get("where", "") in str(result.exception)}
    stdout = [json.loads(line) for line in result.stdout.splitlines()]
    summary: dict[str, Any] = next((line["summary"] for line in stdout if line.keys() == {"summary"}), {})
    lines = [line for line in stdout if line.keys() != {"summary"}]
    assert result.exit_code == 0, result.output
    rated = Counter(f"{line['instanceId']}|{line['model'] or ''}" for line in lines if line["sample"] is not None)
    return {
        "rc": 0,
        "answers": [{"item": line["instanceId"], **{key: line[key] for key in FIELDS[1:]}} for line in lines],
        "samples": dict(rated),
        "reasons": dict(Counter(line["reason"] for line in lines if line["reason"])),
        "warnings": summary.get("warnings", dict(Counter(kind for line in lines for kind in line["warnings"]))),
        "skipped": [skipped["line"] for skipped in summary.get("skipped", [])],
    }


DOORS: dict[str, Callable[[Vector, Path], dict[str, Any]]] = {
    "text": _of_text,
    "reward": _of_reward,
    "episode": _of_episode,
    "file": _of_file,
}


def _expected(vector: Vector) -> dict[str, Any]:
    expected = dict(vector["expect"])
    if vector["door"] == "text":
        expected["repairs"] = bool(expected["repairs"])
    if expected.get("rc") == 2:
        return {"rc": 2, "where": True}
    return expected


def differences(group: str, folder: Path) -> tuple[int, list[str]]:
    """Return how many vectors of a group there are, and a line for each that comes out otherwise."""
    number, lines = 0, []
    for vector in shared_records(VECTORS, part="frontier"):
        if vector["kind"].split("/")[0] != group:
            continue
        number += 1
        expected = _expected(vector)
        try:
            found = DOORS[vector["door"]](vector, folder)
        except Exception as error:  # a line of the report, as any other difference
            found = {"error": repr(error)}
        fields = [key for key in expected if found.get(key) != expected[key]]
        if fields:
            shown = "; ".join(f"{key}: {found.get(key, found)} for {expected[key]}" for key in fields)
            lines.append(f"{vector['id']} {vector['kind']} {vector['benchmark']}: {shown}"[:700])
    return number, lines


@pytest.mark.parametrize("group", GROUPS)
def test_vectors(group: str, tmp_path: Path) -> None:
    number, lines = differences(group, tmp_path)
    assert number
    assert not lines, f"{len(lines)} of {number}\n" + "\n".join(lines)
