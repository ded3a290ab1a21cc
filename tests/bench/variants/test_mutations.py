"""Of each kind of change 50 wrong maps and wrong copies are refused.

A mutation is a map with other names, values or kind, or a copy with one changed leaf of its record. One that passes
changes nothing: the prompts are equal, the programs have one model, or the networks one class and rounded values.
"""

from __future__ import annotations

import copy as copies
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from calibrant.bench.core.registry import benchmark_of, bundled_sample
from calibrant.bench.variants.contract import VARIANTS, CopyMap, permuted
from calibrant.bench.variants.pool import VariantChecker, read_maps, write_variants
from calibrant.dsl.causim.prompt import same_model
from calibrant.dsl.errors import CalibrantError

NUM_MUTATIONS = 50
SAMPLES = ("blickets", "causalab", "causim", "hidden_order", "logic")
MAX_LEAVES = 10  # each once; the others are drawn
HARMLESS = {"id", "labels", "suite", "line", "units"}  # fields without a meaning for the comparison
KINDS = [(sample, kind) for sample in SAMPLES for kind in benchmark_of(bundled_sample(sample)).require(VARIANTS).kinds]


@pytest.mark.parametrize(("sample", "kind"), KINDS)
def test_mutations_are_refused(sample: str, kind: str, tmp_path: Path) -> None:
    source, target = tmp_path / "pool.jsonl", tmp_path / "variants.jsonl"
    header, *lines = bundled_sample(sample).read_text(encoding="utf-8").splitlines(keepends=True)
    source.write_text("".join([header, *lines[1::10][:1]]), encoding="utf-8")
    write_variants(source, target, [kind], 1, 5)
    of = benchmark_of(source)
    checker, random = VariantChecker(of), Random(7)
    originals = {item.id: item for item in of.items.read_pool(source).items}
    images: Any = {item.id: item for item in of.items.read_pool(target).items}
    wrong = 0
    for name, stated in read_maps(target).copies.items():
        original, image = originals[stated.of], images[name]
        for other in _wrong_maps(stated, random):
            wrong += bool(checker.problem(original, image, other))
        for record in _wrong_records(of.items.record(image), random):
            try:
                other_image = of.items.item_of_record(record)
            except CalibrantError:  # refused before it is compared
                wrong += 1
                continue
            problem = checker.problem(original, other_image, stated)
            assert problem or _reads_alike(of, image, other_image), record
            wrong += bool(problem)
    assert wrong >= NUM_MUTATIONS


def _wrong_maps(stated: CopyMap, random: Random) -> Iterator[CopyMap]:
    """Yield other permutations, maps that leave a name out or have a strange one, and maps of unknown kinds."""
    names = stated.names
    for _ in range(20 if len(names) > 2 else 1 if names else 0):
        moved = permuted(sorted(names), random)
        if moved != names:
            yield replace(stated, names=moved)
    yield from (replace(stated, names={k: v for k, v in names.items() if k != name}) for name in names)
    yield replace(stated, names={**names, "strange": "name"})
    yield replace(stated, names={"a": "b", "b": "b"})
    yield replace(stated, kind="unknown")
    for key, values in stated.values.items():
        yield replace(stated, values={**stated.values, key: dict(zip(values, [*values][::-1], strict=True))})
        yield replace(stated, values={other: moved for other, moved in stated.values.items() if other != key})
        yield replace(stated, values={**stated.values, "strange": values})
        yield replace(stated, values={**stated.values, key: {"1": "2", "2": "2"}})


def _wrong_records(record: Mapping[str, Any], random: Random) -> Iterator[dict[str, Any]]:
    """Yield records with one changed leaf: bits flipped, numbers raised, words exchanged, entries left out."""
    plain = json.loads(json.dumps(record))
    places = [path for path in _leaves(plain) if not HARMLESS.intersection(map(str, path))]
    for path in random.sample(places, len(places))[:MAX_LEAVES] + random.choices(places, k=NUM_MUTATIONS):
        changed = copies.deepcopy(plain)
        *rest, last = path
        parent: Any = changed
        for key in rest:
            parent = parent[key]
        parent[last] = _mutated(parent[last], random)
        yield changed


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _leaves(part, (*path, key))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from _leaves(part, (*path, place))
    else:
        yield path


def _mutated(value: Any, random: Random) -> Any:
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return value + 1
    if value.strip("01"):
        place = random.randrange(len(value))
        return value[:place] + random.choice("ABCX01 ") + value[place + 1 :]
    place = random.randrange(len(value))
    return value[:place] + "10"[int(value[place])] + value[place + 1 :]


def _reads_alike(of: Any, first: Any, second: Any) -> bool:
    """Return whether two items are alike for a system; only then may both be accepted."""
    prompts = of.items.prompt(first), of.items.prompt(second)
    if prompts[0] != prompts[1] and of.name == "causim":
        return same_model(first.task.model, second.task.model) and first.task.question == second.task.question
    if prompts[0] != prompts[1] and of.name == "logic":
        forms = [(task.edges, task.discretised, task.experiments, task.questions) for task in (first.task, second.task)]
        return forms[0] == forms[1]
    return bool(prompts[0] == prompts[1])
