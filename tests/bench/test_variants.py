"""Variants of items: renamings, orders, words, and the consistency of answers to them."""

from __future__ import annotations

import copy as copies
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace as replace_fields
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from calibrant.bench.core.registry import benchmark, benchmark_of, bundled_sample
from calibrant.bench.suites.board import share_consistent
from calibrant.bench.suites.rescoring import CellResult, ItemResult, PoolJudge
from calibrant.bench.variants import (
    NAMES,
    VARIANTS,
    CopyMap,
    VariantChecker,
    check_variants,
    permuted,
    read_maps,
    write_variants,
)
from calibrant.dsl.blickets import prompt as blickets
from calibrant.dsl.blickets.item import Condition
from calibrant.dsl.causalab import prompt as causalab
from calibrant.dsl.causalab.item import Family, Traced
from calibrant.dsl.causalab.reference import SettingMeaning
from calibrant.dsl.causim.prompt import same_model
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.logic import prompt as logic
from calibrant.dsl.replayscm import prompt as replayscm
from calibrant.dsl.replayscm.extensions.extension import Extension, parse_noise
from calibrant.dsl.replayscm.item import TaskKind
from tests.support.commands import called

# --- Copies of items have checked maps: wrong ones are refused, and what is right of an item is right of its copies
SAMPLES = {"blickets": 8, "causalab": 6, "causim": 8, "hidden_order": 12, "logic": 7}
"""Bundled pools, and the step at which items are taken."""


@pytest.fixture(scope="module", params=SAMPLES)
def pools(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Write a few items of a bundled pool, and copies of each kind."""
    folder = tmp_path_factory.mktemp(request.param)
    header, *items = bundled_sample(request.param).read_text(encoding="utf-8").splitlines(keepends=True)
    source, target = folder / "pool.jsonl", folder / "variants.jsonl"
    source.write_text("".join([header, *items[:: SAMPLES[request.param]]]), encoding="utf-8")
    kinds = benchmark_of(source).require(VARIANTS).kinds
    number, _ = write_variants(source, target, kinds, len(kinds), 3)
    assert number >= len(items[:: SAMPLES[request.param]])
    return source, target


def test_a_written_file_is_accepted_and_copies_differ_from_their_originals(pools: tuple[Path, Path]) -> None:
    source, target = pools
    assert list(check_variants(source, target)) == []
    bench = benchmark_of(source)
    prompts = {item.id: bench.items.prompt(item) for item in bench.items.read_pool(source).items}
    maps = read_maps(target).copies
    for item in bench.items.read_pool(target).items:
        if not bench.is_interactive(item) or maps[item.id].kind not in (
            "rename",
            "equivalent",
        ):  # prompts show no evidence
            assert bench.items.prompt(item) != prompts[maps[item.id].of], item.id


@pytest.mark.parametrize("suite", ["asia", "cancer", "survey", "nihss"])
def test_published_programs_have_copies_of_each_kind_of_names_and_orders(suite: str, tmp_path: Path) -> None:
    source, target = tmp_path / "pool.jsonl", tmp_path / "variants.jsonl"
    options = ("--benchmark", "causim", "--strata", suite, "--seed", 3, "--per-stratum", 1)
    assert called("generate", *options, "--out", source).returncode == 0
    write_variants(source, target, ["rename", "columns"], 2, 1)
    assert sorted(stated.kind for stated in read_maps(target).copies.values()) == ["columns", "rename"]
    assert list(check_variants(source, target)) == []
    original, renamed = (benchmark_of(path).items.read_pool(path).items[0] for path in (source, target))
    local = re.findall(r"\bitem_\w+ = f_(\w+)", renamed.task.source)
    assert bool(local) is (suite == "nihss")
    assert all(f"item_{name} = f_{name}(" in renamed.task.source for name in local)
    assert renamed.task.source != original.task.source


def test_the_page_states_the_kinds_of_each_benchmark() -> None:
    page = (Path(__file__).parents[2] / "docs" / "variants.md").read_text(encoding="utf-8")
    lines = [line for line in page.splitlines() if line.startswith(("| kind |", "| `"))]
    head, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    titles = {"ReplaySCM": "replayscm", "extended blickets": "blickets", "CausaLab": "causalab", "CauSim": "causim"}
    for place, title in enumerate(head[1:], 1):
        stated = [row[0].strip("`") for row in rows if row[place]]
        assert stated == list(benchmark(titles.get(title, "logic")).require(VARIANTS).kinds), title


def test_the_same_seed_gives_the_same_bytes(pools: tuple[Path, Path], tmp_path: Path) -> None:
    source, target = pools
    if benchmark_of(source).name == "replayscm":
        pytest.skip("the others take a tenth of the time")
    kinds = benchmark_of(source).require(VARIANTS).kinds
    for seed, same in ((3, True), (4, False)):
        write_variants(source, tmp_path / "again.jsonl", kinds, len(kinds), seed)
        assert (read_maps(tmp_path / "again.jsonl").copies == read_maps(target).copies) is same


def test_wrong_maps_and_wrong_copies_are_refused(pools: tuple[Path, Path]) -> None:
    """Other permutations, maps of other copies, names left out; a map that is right of symmetric items stays one."""
    source, target = pools
    bench = benchmark_of(source)
    variable, checker = bench.require(VARIANTS), VariantChecker(bench)
    originals = {item.id: item for item in bench.items.read_pool(source).items}
    copies: Any = {item.id: item for item in bench.items.read_pool(target).items}
    refused = 0
    for name, stated in read_maps(target).copies.items():
        original, copy = originals[stated.of], copies[name]
        maps = [permuted(sorted(stated.names), Random(seed)) for seed in range(4)] if stated.names else []
        maps += [dict(list(stated.names.items())[1:]), {**stated.names, "new": "name"}, {"a": "b", "b": "b"}]
        wrong = [replace(stated, names=names) for names in maps if names != stated.names]
        others = [other for other in originals.values() if other.id != stated.of]
        problems = [checker.problem(original, copy, other) for other in wrong]
        problems += [checker.problem(other, copy, stated) for other in others]
        refused += sum(map(bool, problems))
        for other, problem in zip(wrong, problems, strict=False):
            if not problem:
                image = variable.normal_form(bench.items.record(copy), stated.kind)
                mapped = variable.map_record(bench.items.record(original), other)
                assert variable.normal_form(mapped, stated.kind) == image
    assert refused >= 13  # four pools: 50 and more


def test_exact_rows_of_questions_are_consistent(tmp_path: Path) -> None:
    source, target = tmp_path / "pool.jsonl", tmp_path / "variants.jsonl"
    header, *items = bundled_sample("causim").read_text(encoding="utf-8").splitlines(keepends=True)
    source.write_text("".join([header, *items[::6]]), encoding="utf-8")
    assert called("variants", source, "--copies", 4, "--out", target).returncode == 0
    for row in ("exact", "copy"):
        assert called("run", row, source, target, "--out", tmp_path / "runs", "--workers", 1).returncode == 0
    done = called("table", tmp_path / "runs", "--consistency", target, "--json")
    rows = {row["system"]: row for row in json.loads(done.stdout)}
    assert rows["exact"]["mean"] == rows["exact"]["all_equal"] == rows["exact"]["worst_copy"] == 1
    assert rows["copy"]["all_equal"] == 1
    assert rows["copy"]["mean"] < 1
    flips = {kind: (flip["lost"], flip["gained"]) for kind, flip in rows["copy"]["flips"].items()}
    assert flips == dict.fromkeys(("rename", "columns", "values", "equivalent"), (0, 0))
    assert "All equal" in called("table", tmp_path / "runs", "--consistency", target).stdout
    refusal = called("table", tmp_path / "runs", "--consistency", target, "--columns", "all").stderr
    assert "it has no effect on --consistency" in refusal


def test_boards_have_the_share_of_originals_whose_copies_score_alike(tmp_path: Path) -> None:
    source, target = bundled_sample("blickets"), tmp_path / "variants.jsonl"
    write_variants(source, target, ["rename"], 2, 1)
    judge = PoolJudge(target)
    rights = {name: float(name.startswith("easy") or name.endswith("~rename-2")) for name in judge.ids}
    items = tuple(ItemResult(public, "", rights[name], True, 1, ("uncounted",)) for name, public in judge.ids.items())
    number = sum(name.startswith("easy") for name in judge.ids) // 2
    assert share_consistent(target, CellResult(items)) == number / 24
    assert share_consistent(source, CellResult(items)) is None


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    source, target = bundled_sample("blickets"), tmp_path / "variants.jsonl"
    assert called("variants", source, "--kinds", "rename", "--copies", 1, "--out", target).returncode == 0
    header, *lines = target.read_text(encoding="utf-8").splitlines()
    stated = json.loads(header)
    names = next(iter(stated["metadata"]["variants"]["copies"].values()))["names"]
    values = list(names.values())
    names |= dict(zip(names, [*values[1:], values[0]], strict=True))
    target.write_text("\n".join([json.dumps(stated), *lines]) + "\n", encoding="utf-8")
    done = called("variants", source, "--check", target)
    assert (done.returncode, done.stdout.count("refused")) == (1, 1)
    with pytest.raises(CalibrantError, match="not a pool of variants"):
        read_maps(source)
    assert called("variants", source, "--kinds", "values", "--out", tmp_path / "x").returncode == 2
    assert called("variants", source).returncode == 2


# --- Of each kind of change 50 wrong maps and wrong copies are refused ------------------------------------------------
NUM_MUTATIONS = 50
MUTATED_SAMPLES = ("blickets", "causalab", "causim", "hidden_order", "logic")
MAX_LEAVES = 10  # each once; the others are drawn
HARMLESS = {"id", "labels", "suite", "line", "units"}  # fields without a meaning for the comparison
KINDS = [
    (sample, kind)
    for sample in MUTATED_SAMPLES
    for kind in benchmark_of(bundled_sample(sample)).require(VARIANTS).kinds
]


def _write_item_of_network(path: Path) -> None:
    folder = path.with_name("networks")
    folder.mkdir()
    (folder / "toy.bnet").write_text("Raf, Ras & !Akt\nErk, Raf | Src\nMyc, Erk & Akt\n", encoding="utf-8")
    line = ("--seed", 1, "--per-stratum", 1, "--strata", "network_n8_k2", "-o", f"networks={folder}", "--out", path)
    assert called("generate", "--form", "network", *line).returncode == 0


@pytest.mark.parametrize(("sample", "kind"), KINDS)
def test_mutations_are_refused(sample: str, kind: str, tmp_path: Path) -> None:
    source, target = tmp_path / "pool.jsonl", tmp_path / "variants.jsonl"
    if kind == NAMES:
        _write_item_of_network(source)
    else:
        header, *lines = bundled_sample(sample).read_text(encoding="utf-8").splitlines(keepends=True)
        source.write_text("".join([header, *lines[1::10][:1]]), encoding="utf-8")
    write_variants(source, target, [kind], 1, 5)
    bench = benchmark_of(source)
    checker, random = VariantChecker(bench), Random(7)
    originals = {item.id: item for item in bench.items.read_pool(source).items}
    images: Any = {item.id: item for item in bench.items.read_pool(target).items}
    wrong = 0
    for name, stated in read_maps(target).copies.items():
        original, image = originals[stated.of], images[name]
        for other in _wrong_maps(stated, random):
            wrong += bool(checker.problem(original, image, other))
        for record in _wrong_records(bench.items.record(image), random):
            try:
                other_image = bench.items.item_of_record(record)
            except CalibrantError:  # refused before it is compared
                wrong += 1
                continue
            problem = checker.problem(original, other_image, stated)
            assert problem or _reads_alike(bench, image, other_image), record
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
        for index, part in enumerate(value):
            yield from _leaves(part, (*path, index))
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


# --- Prompts in other words: every sentence is replaced, and what an item states stays --------------------------------
PHRASES = {
    "replayscm": replayscm.PHRASES,
    "blickets": blickets.PHRASES,
    "causalab": causalab.PHRASES,
    "logic": logic.PHRASES,
}
_STATED = re.compile(r"X[0-9]+|[0-9]+(?:\.[0-9]+)?|[\"{}]")  # names, numbers and marks of JSON


def _tasks(name: str) -> list[Any]:
    """Return tasks of bundled pools, and some with what these pools lack."""
    samples = ["ordered", "block", "hidden_order", "hidden_roots"] if name == "replayscm" else [name]
    items = [item for sample in samples for item in _items(sample)[::4]]
    first = items[0]
    tasks = [item.task for item in items]
    if name == "replayscm":
        grammar = replace_fields(first.task.grammar, allow_constants=True, operators=("not", "if"))
        tasks += [replace_fields(first.task, grammar=grammar), replace_fields(first.task, kind=TaskKind.ALTERNATIVE)]
        tasks += [replace_fields(first.task, reference=first.sealed.gold)]
        extension = Extension(first.task.variables, ("X1",), 3, noise=parse_noise("1/20"))
        tasks += [replace_fields(first.task, extension=extension)]
    if name == "blickets":
        tasks += [
            replace_fields(first.task, graded=True),
            *(replace_fields(first.task, condition=c) for c in Condition),
        ]
    if name == "causalab":
        tasks += [
            replace_fields(first.task, family=Family.QUADRATIC, allowance=0),
            replace_fields(first.task, noise=True),
        ]
        trace = (Traced(first.task.baseline), Traced(first.task.baseline, "p", 1.0))
        tasks += [replace_fields(first.task, reading=SettingMeaning.BASE), replace_fields(first.task, trace=trace)]
    if name == "logic":
        tasks += [replace_fields(first.task, questions=())]
    return tasks


def _items(sample: str) -> Any:
    path = bundled_sample(sample)
    return benchmark_of(path).items.read_pool(path).items


def _prompt(name: str, task: Any, item: Any) -> str:
    return "\n".join(message["content"] for message in benchmark(name).items.messages(replace_fields(item, task=task)))


@pytest.mark.parametrize("name", PHRASES)
def test_every_phrase_occurs_and_is_replaced(name: str) -> None:
    item = _items("ordered" if name == "replayscm" else name)[0]
    rest = dict(PHRASES[name])
    for task in _tasks(name):
        standard, other = (_prompt(name, replace_fields(task, wording=w), item) for w in ("standard", "rephrased"))
        for phrase in list(rest):
            if phrase in standard:
                assert rest.pop(phrase) in other
        assert set(_STATED.findall(standard)) == set(_STATED.findall(other))
    assert not rest
