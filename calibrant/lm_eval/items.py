"""Functions that the YAML files of this folder name: documents of a pool or of a seed, and verdicts on responses.

`--metadata '{"pool": "FILE"}'` names a pool; without one, `seed`, `count` and `suites` decide the draws. A document
holds the item's native record, gold and all, and logs of samples hold documents.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import datasets

from calibrant.bench.core.benchmark import PublicIds
from calibrant.bench.core.registry import benchmark as named
from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.training import in_turns, lesson, shaped, verdict
from calibrant.dsl.answer_text import Thoughts, check_thoughts
from calibrant.dsl.errors import CalibrantError, short_repr


def documents(
    benchmark: str,
    pool: str | None = None,
    seed: int = 0,
    count: int = 100,
    suites: Sequence[str] = (),
    thoughts: Thoughts = "strip",
    **_: Any,
) -> dict[str, Any]:
    """Return the split `test`: a row for each item, with the rule for parts of a response that are thoughts."""
    check_thoughts(thoughts)
    bench = named(benchmark)
    if pool is None:
        items = [sample.item for sample in islice(in_turns(bench, suites, seed), count)]
        public = PublicIds.of_seed(benchmark, seed)
    else:
        pool_benchmark = benchmark_of(Path(pool))
        if pool_benchmark is not bench:
            raise CalibrantError(
                f"{short_repr(pool)} is a pool of {pool_benchmark.title}; its task is calibrant_{pool_benchmark.name}"
            )
        items = list(bench.items.read_pool(Path(pool)).items)
        public = PublicIds.of_pool(Path(pool), items)
    rows = [
        {
            "id": public.public(item.id),
            "benchmark": benchmark,
            "question": bench.items.prompt(item),
            "answer": json.dumps(bench.training.gold(item)),
            "record": json.dumps(bench.items.record(item)),
            "thoughts": thoughts,
        }
        for item in items
    ]
    return {"test": datasets.Dataset.from_list(rows)}


def results(doc: Mapping[str, Any], responses: Sequence[str]) -> dict[str, float]:
    """Return the metrics of a response.

    extracted: the verdict on the response; strict: the same, if the response is one JSON object and nothing else;
    neither is there for an item with nothing held out, so that the harness's means leave it out
    shaped: the share that is right; answered: whether the response contains an answer
    """
    task = lesson(doc["benchmark"], doc["record"])
    conversation = task.score_completion(responses[0], doc.get("thoughts", "strip"))
    assert conversation is not None
    extracted = verdict(task, conversation)
    verdicts = {} if extracted is None else {"extracted": extracted, "strict": extracted * _is_object(responses[0])}
    return {
        **verdicts,
        "shaped": shaped(task, conversation),
        "answered": float(conversation.answered),
    }


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
