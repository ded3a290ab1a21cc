"""Loading of an 86 MB pool file in the official format, made on the fly and deleted afterwards.

Rivals: the plain libyaml safe loader, which gives dictionaries and checks nothing, and the native file of the same
pool. Items are whole pools, each of its own format.

Official files are large because every record embeds the outputs of several models: a response, the answer extracted
from it and its evaluation. Records are repeated under other ids, each with nine such outputs; long responses are a
chain of thought of random words before the answer.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import yaml

from calibrant.bench.lab.speed.report import Comparison, Discipline, Options, Rival, Row, measure
from calibrant.bench.replayscm.rows.exact import scm_answer
from calibrant.bench.replayscm.rows.rates import gold_of
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.dsl.replayscm.pools.official import cut_results
from calibrant.dsl.replayscm.score import Evaluator

# --- An official-format pool file as large as the real ones, made of a small one --------------------------------------
SEED = 6
MODELS = tuple(f"model-{number}" for number in range(1, 10))
NUM_RECORDS = 240
MEGABYTE = 1_000_000
_RECORD = re.compile(r"^( *)- problem:", re.MULTILINE)
_WORDS = ("so", "X1", "X4", "differs", "in", "world", "w3", "hence", "(xor X2 X5)", "row", "17", "0", "1", "check:")


def write_official_file(source: Path, target: Path, num_bytes: int) -> int:
    """Write records of the source until the file has that size; how many there are.

    source: a pool file in the official format, block style, of problems that ask for an SCM and tell the latent one
    """
    problems = read_pool(source, keep_results=False).problems
    head, records = _split(source.read_text(encoding="utf-8"))
    if len(records) != len(problems):
        raise CalibrantError(f"{source.name}: expected block-style YAML with one '- problem:' per record")
    count = max(1, round(NUM_RECORDS * num_bytes / (86 * MEGABYTE)))
    per_record = (num_bytes - len(head)) // count
    with target.open("w", encoding="utf-8") as file:
        file.write(head)
        for index in range(count):
            place = index % len(records)
            file.write(_record(records[place], problems[place], index, per_record))
    return count


def _split(text: str) -> tuple[str, list[str]]:
    lean, _ = cut_results(text)
    starts = [match.start() for match in _RECORD.finditer(lean)]
    return lean[: starts[0]] if starts else lean, [lean[a:b] for a, b in pairwise([*starts, len(lean)])]


def _record(text: str, problem: Problem, index: int, num_bytes: int) -> str:
    """Return a copy of a record under an id of its own, with model results that fill it up."""
    indent = len(text) - len(text.lstrip(" ")) + 2
    body = re.sub(r"^ *modelResults:.*\n?", "", text.rstrip() + "\n", flags=re.MULTILINE)
    body = body.replace(f"instanceId: {problem.id}", f"instanceId: {problem.id}_copy{index}", 1)
    results = _results(problem, Random(SEED + index), num_bytes - len(body))
    return body + "".join(f"{' ' * indent}{line}\n" for line in _block({"modelResults": results}))


def _results(problem: Problem, rng: Random, num_bytes: int) -> dict[str, Any]:
    answer = scm_answer(problem.task.kind, gold_of(problem))
    evaluation = Evaluator(problem).score_answer(answer).to_dict()
    shared = {"taskName": evaluation["taskName"], "success": True, "runStatus": "ok", "responseCandidateIndex": 0}
    shared |= {"extractedAnswer": answer, "valid": True, "correct": True, "evaluation": evaluation}
    empty = sum(map(len, _block(shared))) + len(json.dumps(answer))
    num_words = max(0, (num_bytes // len(MODELS) - empty) // (1 + round(sum(map(len, _WORDS)) / len(_WORDS))))
    return {
        model: shared
        | {"model": model, "rawResponse": " ".join([*rng.choices(_WORDS, k=num_words), json.dumps(answer)])}
        for model in MODELS
    }


def _block(value: Mapping[str, Any] | Sequence[Any]) -> Iterator[str]:
    """Yield lines of block-style YAML; scalars are written as JSON, which YAML can read."""
    entries = value.items() if isinstance(value, Mapping) else (("-", item) for item in value)
    for key, item in entries:
        start = key if key == "-" else f"{key}:"
        if isinstance(item, Mapping | list | tuple) and item:
            yield start
            yield from (f"  {line}" for line in _block(item))
        else:
            yield f"{start} {json.dumps(item)}"


TOPIC = "load"
NUM_BYTES = 86 * MEGABYTE
ROUNDS = 3


def rows(options: Options) -> Iterator[Row]:
    if options.official is None:
        yield Row(TOPIC, "86 MB", "all", note="left out: needs a pool file in the official YAML format, see --pool")
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        comparison = _comparison(options.official, Path(folder), round(NUM_BYTES * options.scale))
        yield from measure(comparison, Discipline(min(options.discipline.rounds, ROUNDS), 0.0))


def _comparison(source: Path, folder: Path, num_bytes: int) -> Comparison:
    official, native, lean = (folder / name for name in ("official.yaml", "native.jsonl", "lean.jsonl"))
    num_records = write_official_file(source, official, num_bytes)
    write_pool(read_pool(official), native)
    write_pool(read_pool(official, keep_results=False), lean)
    rivals = [
        Rival("official, results as text", lambda: read_pool(official)),
        Rival("official, without results", lambda: read_pool(official, keep_results=False)),
        Rival("official, safe_load of libyaml", lambda: plain_yaml(official)),
        Rival("native, with results", lambda: read_pool(native)),
        Rival("native, results dropped on reading", lambda: read_pool(native, keep_results=False)),
        Rival("native, written without results", lambda: read_pool(lean)),
    ]
    sizes = {path.name: path.stat().st_size / MEGABYTE for path in (official, native, lean)}
    counts = {"problems": num_records} | {f"MB {name}": size for name, size in sizes.items()}
    return Comparison(TOPIC, f"{sizes[official.name]:.0f} MB", "pool", rivals, counts=counts)


def plain_yaml(path: Path) -> object:
    """Load YAML as most programs do: a rival."""
    with path.open(encoding="utf-8") as file:
        return yaml.load(file, Loader=yaml.CSafeLoader)
