"""Answers as models, harnesses and providers give them, against vectors from a reader of the specification's own."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import calibrant
from calibrant import rewards
from calibrant.bench.core.registry import benchmark_of_item
from calibrant.bench.suites.rescoring import judge_of
from calibrant.datasets import item_record
from tests.bench.commands.lines import app
from tests.support.commands import called
from tests.support.play.right_lines import right_actions
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
    result = called("score", _pool(vector["pool"]), file, "--json", *vector["options"])
    if result.returncode == 2:
        return {"rc": 2, "where": vector["expect"].get("where", "") in result.stderr.partition("\n")[0]}
    stdout = [json.loads(line) for line in result.stdout.splitlines()]
    summary: dict[str, Any] = next((line["summary"] for line in stdout if line.keys() == {"summary"}), {})
    lines = [line for line in stdout if line.keys() != {"summary"}]
    assert result.returncode == 0, result.stderr
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


# --- Doors: what one pays, the others pay -----------------------------------------------------------------------------
DOOR_KINDS = ("thoughts", "form")


def _files(vectors: Sequence[Vector], folder: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield files of texts with their pool and options, each text under a model of its own; one response is empty."""
    for pool, options in dict.fromkeys((vector["pool"], tuple(vector["options"])) for vector in vectors):
        chosen = [v for v in vectors if (v["pool"], tuple(v["options"])) == (pool, options)]
        lines = [{"instanceId": v["item"], "model": v["id"], "response": v["text"]} for v in chosen]
        lines.append({"instanceId": chosen[0]["item"], "model": "silent", "response": ""})
        file = folder / "texts.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        yield file, ["--pool", str(_pool(pool)), *options]


def _stdout(*words: str) -> str:
    result = called(*words)
    assert result.returncode == 0, result.stderr
    return result.stdout


def _paid_by_files(vectors: Sequence[Vector], folder: Path) -> tuple[dict[str, bool], dict[str, bool]]:
    """Return what `score` says of the texts, and what the report's table of readings has as the rate of each."""
    by_score: dict[str, bool] = {}
    by_report: dict[str, bool] = {}
    for file, (_, pool, *options) in _files(vectors, folder):
        verdicts = map(json.loads, _stdout("score", pool, str(file), "--json", *options).splitlines())
        by_score |= {verdict["model"]: verdict["correct"] for verdict in verdicts}
        of_report = _stdout("report", "--predictions", str(file), "--pool", pool, "--format", "csv", *options)
        rows = [row for row in csv.DictReader(io.StringIO(of_report)) if row["table"] == "reading"]
        by_report |= {row["system"]: row["value"] == "1.000" for row in rows if row["column"] == "chosen"}
    return by_score, by_report


def _paid_by_reward(vector: Vector) -> bool:
    keywords = _keywords(vector["options"])
    texts = [[vector["text"]], [[{"role": "assistant", "content": vector["text"]}]]]
    item = _item(vector)
    record, names = [item_record(item)], [vector["benchmark"]]
    (text,), (message,) = (rewards.verdict(completion, record, names, **keywords) for completion in texts)
    assert text == message, vector["id"]
    return text == 1


def _right_by_shown_text(benchmark: str, text: str) -> dict[str, bool]:
    """Return what `show --run` says of each model's answer to an item, by the first or last sentence of its part."""
    if benchmark == "replayscm":
        heads = re.findall(r"^\S+: (.+) \((\S+)\)$", text, re.MULTILINE)
        return {model: verdict.startswith("a right answer") for verdict, model in heads}
    parts = re.split(r"(?m)^(\S+)(?: on |, )\S+$", text)[1:]
    end = r"(?m)^(?:lucky|earned): .*; right\." if benchmark == "blickets" else r"(?m)^frequency (?:lucky|earned)"
    return {model: bool(re.search(end, part)) for model, part in zip(parts[::2], parts[1::2], strict=True)}


def _paid_by_show(vectors: Sequence[Vector], folder: Path) -> dict[str, bool]:
    """Return what `show --run` says of the texts to items whose benchmark it supports; what it cannot show is wrong."""
    paid: dict[str, bool] = {}
    for file, (_, pool, *options) in _files(vectors, folder):
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for item in dict.fromkeys(line["instanceId"] for line in lines):
            benchmark = benchmark_of_item(_items(Path(pool).name)[item]).name
            gold = ["--gold"] if benchmark == "replayscm" else []
            result = called("show", pool, item, "--run", file, *gold, *options)
            assert result.returncode in (0, 2), result.stderr
            paid |= {line["model"]: False for line in lines if line["instanceId"] == item}
            paid |= _right_by_shown_text(benchmark, result.stdout)
    del paid["silent"]
    return paid


def _paid_by_official(vectors: Sequence[Vector], folder: Path) -> dict[str, bool]:
    """Return HeldoutExact of `table --official` for pools that embed the texts as results, a model each."""
    paid: dict[str, bool] = {}
    for pool, options in dict.fromkeys((vector["pool"], tuple(vector["options"])) for vector in vectors):
        head, *records = map(json.loads, _pool(pool).read_text(encoding="utf-8").splitlines())
        for record in records:
            chosen = [
                v for v in vectors if (v["pool"], tuple(v["options"]), v["item"]) == (pool, options, record["id"])
            ]
            record["results"] = [{"model": v["id"], "raw_response": v["text"]} for v in chosen]
        file = folder / "embedded.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in (head, *records)), encoding="utf-8")
        rows = json.loads(_stdout("table", "--official", str(file), "--json", *options))["rows"]
        paid |= {row["system"]: row["heldout_exact"] == 1 for row in rows}
    return paid


def _paid_by_board(vectors: Sequence[Vector], folder: Path) -> dict[str, bool]:
    """Return whether a board's judge has the only answer of a submission as right."""
    paid: dict[str, bool] = {}
    for vector in vectors:
        file = folder / "submission.jsonl"
        line = {"instanceId": vector["item"], "response": vector["text"]}
        file.write_text(json.dumps(line) + "\n", encoding="utf-8")
        cell = judge_of(_pool(vector["pool"])).score_file(file)
        assert sum(item.num_samples for item in cell.items) == 1
        paid[vector["id"]] = cell.rate > 0
    return paid


Door = Callable[[Sequence[Vector], Path], dict[str, bool]]
MORE_DOORS: dict[str, tuple[Door, tuple[str, ...], tuple[str, ...]]] = {
    "show": (_paid_by_show, ("replayscm", "blickets", "causalab"), ("--thoughts", "--extractor")),
    "official": (_paid_by_official, ("replayscm",), ("--thoughts",)),
    "board": (_paid_by_board, ("replayscm", "blickets", "causalab", "causim", "logic"), ()),
}  # door -> function, benchmarks, and options that it has


@pytest.mark.parametrize("door", MORE_DOORS)
@pytest.mark.parametrize("kind", DOOR_KINDS)
def test_pages_stored_results_and_boards_pay_alike(kind: str, door: str, tmp_path: Path) -> None:
    pay, benchmarks, flags = MORE_DOORS[door]
    vectors = [
        vector
        for vector in shared_records(VECTORS, part="frontier")
        if (vector["kind"].split("/")[0], vector["door"]) == (kind, "text")
        and vector["benchmark"] in benchmarks
        and set(vector["options"][::2]) <= set(flags)
    ]
    expected = {vector["id"]: vector["expect"]["correct"] for vector in vectors}
    assert {*expected.values()} == {True, False}
    assert {v["benchmark"] for v in vectors} == {*benchmarks}
    assert pay(vectors, tmp_path) == expected


@pytest.mark.parametrize("pool", [f"answers_pool_{name}.jsonl" for name in MORE_DOORS["board"][1]])
def test_play_pays_what_stands_outside_thoughts(pool: str) -> None:
    """The right moves after a closed draft, and the same moves inside thoughts, which are none."""
    moves = right_actions(next(iter(_items(pool).values())))
    for before, after, is_right in (("<think>a</think>", "", True), ("a</think>", "", True), ("<think>", "", False)):
        lines = "".join(f"{before}{move}{after}\n" for move in moves)
        result = CliRunner().invoke(app, ["play", str(_pool(pool)), "--jsonl"], input=lines)
        verdict = json.loads(result.stdout.splitlines()[-1])
        assert verdict["event"] == "verdict", result.output
        assert verdict["right"] is is_right
        assert result.stdout.count('"event": "unreadable"') == (0 if is_right else len(moves))


@pytest.mark.parametrize("kind", DOOR_KINDS)
def test_what_one_door_pays_the_others_pay(kind: str, tmp_path: Path) -> None:
    """Lines of a file, a report of them, and rewards, which know the paper's rule alone."""
    vectors = [
        vector
        for vector in shared_records(VECTORS, part="frontier")
        if vector["kind"].split("/")[0] == kind and vector["door"] == "text"
    ]
    expected = {vector["id"]: vector["expect"]["correct"] for vector in vectors}
    assert expected
    for paid in _paid_by_files(vectors, tmp_path):
        assert paid == expected | {"silent": False}
    by_rule = [vector for vector in vectors if "--extractor" not in vector["options"]]
    assert {v["id"]: _paid_by_reward(v) for v in by_rule} == {v["id"]: expected[v["id"]] for v in by_rule}
