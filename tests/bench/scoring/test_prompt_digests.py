"""Lines that carry the digest of the prompt that they answer: written by `prompts`, checked by whatever scores."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from pathlib import Path

import pytest

import calibrant
from calibrant.bench.cli import main
from calibrant.bench.core.registry import bundled_pool, bundled_sample
from calibrant.dsl.errors import CalibrantError
from tests.support.commands import jsonl, refused

BENCHMARKS = ("replayscm", "blickets", "causalab", "causim", "logic")
TEXT_OF_NONE = "I do not know."


@pytest.fixture(params=BENCHMARKS)
def pool(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "pool.jsonl"
    name = request.param
    shutil.copyfile(bundled_pool("hidden-roots") if name == "replayscm" else bundled_sample(name), path)
    return path


def prompts(pool: Path) -> list[dict[str, str]]:
    out = pool.with_name("prompts.jsonl")
    assert main(["prompts", str(pool), "--out", str(out)]) == 0
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def test_prompts_have_the_digest_of_what_stands_beside_it(pool: Path) -> None:
    for line in prompts(pool):
        assert line["promptDigest"] == hashlib.sha256(line["prompt"].encode()).hexdigest()


def test_lines_that_repeat_it_are_scored(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        {key: line[key] for key in ("instanceId", "promptDigest")} | {"response": TEXT_OF_NONE}
        for line in prompts(pool)
    ]
    answers = jsonl(pool.with_name("answers.jsonl"), *lines)
    capsys.readouterr()
    assert main(["score", str(pool), str(answers), "--json"]) == 0
    assert capsys.readouterr().out.count("\n") == len(lines)
    verdicts = calibrant.score_many(calibrant.load_pool(pool), answers.read_bytes().splitlines())
    assert len(list(verdicts)) == len(lines)


@pytest.mark.parametrize("stated", ["0" * 64, "", 7, {"sha256": "0"}], ids=str)
def test_a_line_with_another_is_refused_by_every_reader(
    stated: object, pool: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = ({"instanceId": line["instanceId"], "response": TEXT_OF_NONE} for line in prompts(pool)[:2])
    named = calibrant.load_pool(pool)[1].id
    answers = jsonl(pool.with_name("answers.jsonl"), first, second | {"promptDigest": stated})
    packed = pool.with_name("answers.jsonl.gz")
    packed.write_bytes(gzip.compress(answers.read_bytes()))
    capsys.readouterr()
    for line in (
        ["score", pool, answers],
        ["score", pool, packed, "--workers", "2"],
        ["report", "--predictions", answers, "--pool", pool],
    ):
        said = refused(capsys, *line)
        assert f": line 2: promptDigest of '{named}' is " in said
        assert said.count("\n") <= 1
    with pytest.raises(CalibrantError, match="line 2: promptDigest of "):
        list(calibrant.score_many(calibrant.load_pool(pool), answers.read_bytes().splitlines()))


def test_a_trace_is_held_to_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lines with steps are read by another reader than answers are."""
    pool = tmp_path / "pool.jsonl"
    shutil.copyfile(bundled_sample("blickets"), pool)
    line = {"id": calibrant.load_pool(pool)[0].id, "steps": [], "promptDigest": "0" * 64}
    said = refused(capsys, "score", pool, jsonl(tmp_path / "steps.jsonl", line))
    assert "line 1: promptDigest of " in said
