"""Measurements of a built pool that questions of checklists are answered by."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from calibrant.bench.core.options import GivenOptions
from calibrant.bench.pools.capabilities import CHECK
from calibrant.bench.suites.release.pools import BuiltPool
from calibrant.bench.suites.rescoring import PoolJudge
from calibrant.dsl.errors import CalibrantError


class RowMeasures(msgspec.Struct, frozen=True):
    """Answers of a row: rate, and what guessers with its evidence expect; equal: a second scoring gave the same."""

    rate: float
    num_answered: int
    chance: float | None
    best: float | None
    kinds: dict[str, float]
    scored_twice_equal: bool


class PoolMeasures(msgspec.Struct, frozen=True):
    """Measurements of a pool.

    num_sound: items that `pool check` found no fault in
    num_gold, num_gold_right: items with an answer that is right when submitted at once, and those that score so
    num_text_equal: gold in a fenced block of prose scores as gold itself
    num_empty_right: items for which the answer that stands in for none scores right
    num_listed_right: items for which gold and an empty answer together, as two samples, score more than one half
    num_forged, num_forged_refused: answers of rows with a changed step or item, and those that were refused
    states: items by what the evidence leaves; num_certificates: verified ones
    """

    benchmark: str
    num_items: int
    num_interactive: int
    num_sound: int
    num_gold: int
    num_gold_right: int
    num_text_equal: int
    num_empty_right: int
    num_listed_right: int
    num_forged: int
    num_forged_refused: int
    states: dict[str, int]
    num_certificates: int
    rows: dict[str, RowMeasures]


def measure_pool(pool: BuiltPool, rows: Path, scratch: Path) -> PoolMeasures:
    """Measure a pool; rows: folder of the rows' answers."""
    judge = PoolJudge(pool.file)
    items = pool.of.items.read_pool(pool.file).items
    counts = [_measure_item(judge, item) for item in items]
    totals = {key: sum(count[key] for count in counts) for key in (counts[0] if counts else {})}
    files = [rows / row / f"{pool.spec.name}.jsonl" for row in pool.spec.rows]
    forged = [_is_refused(judge, line, scratch) for file in files for line in _forged_lines(file)]
    return PoolMeasures(
        benchmark=pool.of.name,
        num_items=len(items),
        num_interactive=sum(map(pool.of.is_interactive, items)),
        num_sound=_count_sound(pool),
        num_forged=len(forged),
        num_forged_refused=sum(forged),
        states=pool.state_counts,
        num_certificates=len(pool.certificates),
        rows={row: _measure_row(judge, rows / row / f"{pool.spec.name}.jsonl") for row in pool.spec.rows},
        **totals,
    )


def _measure_row(judge: PoolJudge, file: Path) -> RowMeasures:
    cell = judge.score_file(file)
    is_equal = cell == judge.fresh().score_file(file)
    return RowMeasures(cell.rate, cell.num_answered, cell.chance, cell.best, cell.kinds, is_equal)


def _forged_lines(file: Path) -> Iterator[str]:
    """Yield the first answer of a row about another item, and with another cost of its first step."""
    with file.open(encoding="utf-8") as lines:
        line = json.loads(lines.readline())
    yield json.dumps(line | {"instanceId": f"{line['instanceId']}0"})
    if steps := line.get("steps"):
        yield json.dumps(line | {"steps": [steps[0] | {"cost": steps[0].get("cost", 0) + 1}, *steps[1:]]})


def _is_refused(judge: PoolJudge, line: str, scratch: Path) -> bool:
    file = scratch / "forged.jsonl"
    file.write_text(line + "\n", encoding="utf-8")
    try:
        judge.score_file(file)
    except CalibrantError:
        return True
    return False


def _count_sound(pool: BuiltPool) -> int:
    options = GivenOptions("pool check", {}).convert(pool.of.name, pool.spec.name)
    (report,) = pool.of.require(CHECK).check([pool.file], options)
    faulty = {instance for _, instance, _ in report.failures}
    return report.num_instances - len(faulty)


def _measure_item(judge: PoolJudge, item: Any) -> dict[str, int]:
    """Return what an item adds to each count."""
    of = judge.of
    no_answer = of.scoring.no_answer(item)
    empty = judge.is_right(of.scoring.score(item, no_answer, ()), item.setting)
    gold = of.training.gold(item)
    has_gold = gold is not None
    right = gold is not None and _is_right(judge, item, gold)
    text = gold is not None and _is_text_right(judge, item, gold)
    return {
        "num_gold": int(has_gold),
        "num_gold_right": int(right),
        "num_text_equal": int(has_gold and text == right),
        "num_empty_right": int(empty),
        "num_listed_right": int(has_gold and (right + empty) / 2 > 1 / 2),
    }


def _is_right(judge: PoolJudge, item: Any, answer: Mapping[str, Any]) -> bool:
    return judge.is_right(judge.of.scoring.score(item, answer, ()), item.setting)


def _is_text_right(judge: PoolJudge, item: Any, answer: Mapping[str, Any]) -> bool:
    """Return whether an answer is right when it stands in a fenced block after a sentence."""
    response = f"My answer is below.\n\n```json\n{json.dumps(answer, indent=2)}\n```\n"
    return _is_right(judge, item, judge.of.scoring.extract(item, response))
