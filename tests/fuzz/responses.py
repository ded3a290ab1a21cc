"""Whole responses: the bytes of a line of predictions in, the verdict out, compared with the plainest way to find it.

Scorers live as long as the process does, so that most responses come after others of their problem: what was met before
must change nothing, nor whether compiled code reads what was not. Some texts are made anew from one of few seeds, and
come again.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeAlias

from calibrant.bench.core.registry import bundled_pools
from calibrant.bench.core.responses import ReadingOptions
from calibrant.bench.replayscm.scoring import meaning_digest
from calibrant.bench.scoring.lines import json_line
from calibrant.bench.scoring.predictions import PredictionLines
from calibrant.bench.scoring.scorer import PoolScorer
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.dsl.replayscm.submission import MIN_NEW, NOVELTY
from tests.fuzz.corruption import LONGEST
from tests.fuzz.submissions import answer, good_answer, response
from tests.oracles import independent
from tests.oracles.independent import require

Extractor: TypeAlias = Literal["paper", "published"]
EXTRACTORS: tuple[Extractor, ...] = ("paper", "paper", "paper", "published")
BY_ROWS = 1 / 16  # of the valid answers are replayed row by row
COMPILED = 1 / 2  # of all are also judged in compiled code
EVERY = 6  # of the 24 problems of a bundled pool
SEEDS = 60  # of texts that come again
OF_THE_FILE = ("instanceId", "model", "sample", "pool", "poolDigest", "poolSize", "setting", "stratum", "seconds")
OF_THE_READING = ("correctPublished", "correctLenient", "reason", "source", "stop", "warnings", "repairs")
NUMBERS = ("1e999999", "-1e999999", "1" * 4_000, "1" * 5_000, "NaN", "0.1e-99999", "18446744073709551616")


@cache
def _problems() -> tuple[tuple[int, Problem, dict[str, Any]], ...]:
    """Return the number of their pool, problems, and an answer that is right."""
    pools = [read_pool(path).problems[::EVERY] for path in bundled_pools()]
    return tuple((index, one, good_answer(one)) for index, problems in enumerate(pools) for one in problems)


@cache
def _evaluator(extractor: str, pool: int, instance: str) -> Evaluator:
    """One that lives as long, and reads new mechanisms in compiled code."""
    problem = next(one for number, one, _ in _problems() if (number, one.id) == (pool, instance))
    return Evaluator(problem, extractor=extractor)


def forget_scores() -> None:
    """Make evaluators anew, with nothing that they keep of responses."""
    _evaluator.cache_clear()
    _scorer.cache_clear()


@cache
def _scorer(extractor: Extractor) -> PoolScorer:
    return PoolScorer(bundled_pools(), reading=ReadingOptions(extractor))


def case(rng: random.Random) -> str:
    """One line; the outcome is how far its response came, or that there is none."""
    if rng.random() < 0.3:
        rng = random.Random(rng.randrange(SEEDS))
    pool, problem, good = rng.choice(_problems())
    extractor = rng.choice(EXTRACTORS)
    text = _text(rng, problem, good)
    raw = json.dumps({"instanceId": problem.id, "model": "m", "response": text}, ensure_ascii=rng.random() < 0.7)
    line = _damaged(rng, raw.encode("utf-8", "surrogatepass"))
    expected = _response(line, problem)
    scorer = _scorer(extractor)
    try:
        (prediction, *_) = PredictionLines([line], scorer.items[pool])
        found = json.loads(json_line(scorer.score(prediction).line))
    except CalibrantError as error:
        require(expected is None, f"refused: {error}")
        require("\n" not in str(error) and len(str(error)) < 2_000, f"a reason of more than a line: {error}")
        return "no line"
    if expected is None:  # damage has made another line of it, which counts as what it is
        return "another line"
    wanted = independent.verdict(problem, expected, extractor, by_rows=rng.random() < BY_ROWS)
    told = {
        key: value for key, value in found.items() if key not in (*OF_THE_FILE, *OF_THE_READING, "meaning", "structure")
    }
    wanted = json.loads(json.dumps(wanted))
    _require_same(told, wanted, line)
    if rng.random() < COMPILED:
        NOVELTY.num_checked = NOVELTY.num_new = MIN_NEW
        score = _evaluator(extractor, pool, problem.id).score_text(expected)
        NOVELTY.num_checked = NOVELTY.num_new = 0
        told = {**score.to_dict(), "strictJson": score.strict_json, "funnel": score.funnel}
        require(
            meaning_digest(score) == found["meaning"], f"another meaning_digest in compiled code for {line[:300]!r}"
        )
        _require_same(json.loads(json.dumps(told)), wanted, line)
    if not told["valid"]:
        return f"not {told['stage']}"
    return "correct" if told["correct"] else "train exact" if told["trainExact"] else "valid"


def _require_same(told: Mapping[str, Any], wanted: Mapping[str, Any], line: bytes) -> None:
    keys = [key for key in told.keys() | wanted.keys() if told.get(key, ...) != wanted.get(key, ...)]
    require(not keys, f"{keys}: {[(told.get(key), wanted.get(key)) for key in keys]!r:.300} for {line[:300]!r}")


def _text(rng: random.Random, problem: Problem, good: dict[str, Any]) -> str:
    """Return a response: bare, fenced, among other words, with another key or key twice, deep, huge, or broken off."""
    made = good if rng.random() < 0.15 else answer(rng, good, problem.task.variables)
    match rng.randrange(8):
        case 0:
            return json.dumps(made)
        case 1:
            return f"The model:\n```json\n{json.dumps(made, indent=1)}\n```\n" + rng.choice(["", "Done.", "}"])
        case 2:
            return _with_key_twice(rng, json.dumps(made))
        case 3:
            return json.dumps(made).replace('"mechanisms"', f'"n": {rng.choice(NUMBERS)}, "mechanisms"', 1)
        case 4 if rng.random() < 0.3:
            depth = rng.choice([5, 200, 1_000, 20_000])
            return rng.choice(['{"a":', "[", '{"answer":[']) * depth + json.dumps(made) + "}" * rng.choice([0, depth])
        case 5:
            text = json.dumps(made)
            return text[: rng.randrange(len(text) + 1)]
        case _:
            return response(rng, [made, good] if rng.random() < 0.2 else [made])


def _with_key_twice(rng: random.Random, text: str) -> str:
    """One of its members stands there again, before or behind the first time, the same or another."""
    places = [index for index, character in enumerate(text) if character == ","]
    start = rng.choice(places) if places else 0
    piece = text[start : text.find(",", start + 1)]
    if rng.random() < 0.5:
        piece = piece.replace("and", "or").replace("X1", "X2")
    where = rng.choice(places) if places else len(text)
    return (text[:where] + piece + text[where:])[:LONGEST]


def _damaged(rng: random.Random, line: bytes) -> bytes:
    """Mostly as it is; some have bytes that are no UTF-8, break off, or differ in a bit."""
    place = rng.randrange(len(line) + 1)
    match rng.randrange(60):
        case 0:
            return (
                line[:place] + rng.choice([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x00", b"\xef\xbb\xbf"]) + line[place:]
            )
        case 1:
            return line[:place]
        case 2 if place < len(line):
            return line[:place] + bytes([line[place] ^ 1 << rng.randrange(8)]) + line[place + 1 :]
        case _:
            return line


def _response(line: bytes, problem: Problem) -> str | None:
    """Return the text that a line gives for the problem, if it is a line such as were made."""
    try:
        read = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(read, dict) or read.keys() != {"instanceId", "model", "response"}:
        return None
    if read["instanceId"] != problem.id or not isinstance(read["model"], str):
        return None
    return read["response"] if isinstance(read["response"], str) else None
