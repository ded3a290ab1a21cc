"""Rewards a second on one core, of items that a trainer asks for again: right, wrong and unreadable answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

from msgspec.structs import replace

from calibrant.bench.core.registry import NAMES, benchmark
from calibrant.bench.lab.speed.comparison import Comparison, Options, Rival, Row, measure
from calibrant.bench.training import Worth, attributed, in_turns, lesson, shaped, verdict

TOPIC = "rewards"
SEED, ITEMS, REPEATS = 1, 32, 160
WANTED_A_SECOND = 5_000


def rows(options: Options) -> Iterator[Row]:
    repeats = max(1, round(REPEATS * options.scale))
    for name in NAMES:
        answers = list(_answers(name))
        for worth in (verdict, shaped, attributed):
            work = partial(_reward, worth, name, answers, repeats)
            rival = Rival("calibrant", work, len(answers) * repeats)
            case = f"{worth.__name__}, {benchmark(name).title}"
            for row in measure(Comparison(TOPIC, case, "answer", [rival]), options.discipline):
                reached = row.per_second is not None and row.per_second >= WANTED_A_SECOND
                yield replace(row, met=reached, note=f"at least {WANTED_A_SECOND:,} a second")


def _answers(name: str) -> Iterator[tuple[str, str]]:
    """Return records, each with a text that answers it rightly, as another item asks, or not at all."""
    of = benchmark(name)
    items = [entry.item for entry in islice(in_turns(of, of.training.stages[:4], SEED), ITEMS)]
    golds = [json.dumps(of.training.gold(item)) for item in items]
    for place, item in enumerate(items):
        reply = (golds[place], golds[place - 1], "I cannot tell.")[place % 3]
        yield json.dumps(of.items.record(item)), reply


def _reward(worth: Worth, name: str, answers: Sequence[tuple[str, str]], repeats: int) -> None:
    for _ in range(repeats):
        for record, text in answers:
            task = lesson(name, record)
            result = task.score_completion(text)
            assert result is not None
            worth(task, result)
