"""Splits by latent model: no part shares one with another, whatever names, disclosures and questions are."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.bench.cli import main
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.registry import benchmark, benchmarks, bundled_files, bundled_pool
from calibrant.bench.pools.capabilities import CHECK
from calibrant.bench.pools.distinct import KeyedItem, ModelIndex, assign_units, join_units, measure_parts
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.solvers.canonical import canonical_key
from calibrant.solvers.replayscm.canonical import scm_structure
from tests.support.commands import jsonl, refused

ROOTS, NAMES = ("a", "b"), ("a", "b", "c", "d")
FORMULAS = ("a", "b", "(and a b)", "(or a b)", "(xor a b)", "(not a)", "(not b)")
LAST_FORMULAS = (*FORMULAS, "c", "(not c)", "(and a c)", "(and b c)", "(or c (and a b))", "(and a (or a c))")
PAIRS = st.tuples(st.sampled_from(FORMULAS), st.sampled_from(LAST_FORMULAS))


def _meaning(model: Scm, names: tuple[str, ...]) -> tuple[object, ...]:
    """Return the roots, and the value of each mechanism for all values of all variables, under other names."""
    new = dict(zip(NAMES, names, strict=True))
    rows = []
    for bits in range(1 << len(NAMES)):
        values = {name: bits >> place & 1 for place, name in enumerate(NAMES)}
        outputs = [(new[name], evaluate(formula, values)) for name, formula in model.mechanisms.items()]
        rows.append((sorted((new[name], value) for name, value in values.items()), sorted(outputs)))
    return sorted(new[root] for root in ROOTS), sorted(rows)


@given(PAIRS, PAIRS)
def test_keys_are_equal_for_renamings_alone(first: tuple[str, str], second: tuple[str, str]) -> None:
    one, other = (scm(ROOTS, {"c": parse(c), "d": parse(d)}) for c, d in (first, second))
    is_renaming = any(_meaning(one, order) == _meaning(other, NAMES) for order in permutations(NAMES))
    assert (canonical_key(scm_structure(one)) == canonical_key(scm_structure(other))) is is_renaming


def _renamed(of: Benchmark[Any], tmp_path: Path, num_items: int = 6) -> tuple[Path, Path]:
    """Return a pool with items, and one with two renamed copies of each."""
    source, pool, copies = bundled_files()[of.name][0], tmp_path / "pool.jsonl", tmp_path / "copies.jsonl"
    lines = source.read_text(encoding="utf-8").splitlines()
    jsonl(pool, *lines[: num_items + 1])
    assert main(["variants", str(pool), "--kinds", "rename", "--copies", "2", "--out", str(copies)]) == 0
    return pool, copies


@pytest.mark.parametrize("of", benchmarks(), ids=lambda of: of.name)
def test_copies_under_other_names_are_in_the_part_of_their_model(of: Benchmark[Any], tmp_path: Path) -> None:
    pool, copies = _renamed(of, tmp_path)
    identity = of.require(CHECK).identity
    originals = [identity.model_keys(item) for item in of.items.read_pool(pool).items]
    assert all(originals)
    copied = [identity.model_keys(item) for item in of.items.read_pool(copies).items]
    assert len(copied) > len(originals) > 1
    assert {*copied} == {*originals}
    assert main(["pool", "split", str(copies), "--by", "model", "--shares", ".5,.5", "--out", str(tmp_path / "a")]) == 0
    parts = [of.items.read_pool(tmp_path / "a" / name).items for name in ("train.jsonl", "test.jsonl")]
    train, test = ({key for item in part for key in identity.model_keys(item)} for part in parts)
    assert train
    assert test
    assert not train & test
    everything = copies.read_text(encoding="utf-8").splitlines()[1:]
    written = [
        (tmp_path / "a" / name).read_text(encoding="utf-8").splitlines()[1:] for name in ("train.jsonl", "test.jsonl")
    ]
    assert sorted(written[0] + written[1]) == sorted(everything)
    report = json.loads((tmp_path / "a" / "split.json").read_text(encoding="utf-8"))
    assert [part["items"] for part in report["parts"]] == [len(part) for part in parts]
    assert [part["units_of_earlier_parts"] for part in report["parts"]] == [0, 0]
    assert report["units"] == len({*copied}) == sum(part["units"] for part in report["parts"])


@pytest.mark.parametrize("of", benchmarks(), ids=lambda of: of.name)
def test_a_test_apart_from_training_by_model_has_no_renamed_copy(
    of: Benchmark[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool, copies = _renamed(of, tmp_path)
    line = ["pool", "distinct", copies, tmp_path / "new.jsonl", "--apart-from", pool]
    capsys.readouterr()
    assert "repeats one of the other pools" in refused(capsys, *line, "--by", "model")
    assert main([str(word) for word in line]) == 0  # by item renamed copies are new


def test_the_same_scm_under_another_disclosure_is_the_same_unit(tmp_path: Path) -> None:
    """An item about gold and its Alternative-SCM item, which names gold, share it as well."""
    of = benchmark("replayscm")
    identity = of.require(CHECK).identity
    keys = [
        {key for item in of.items.read_pool(bundled_pool(name)).items for key in identity.model_keys(item)}
        for name in ("ordered", "block", "hidden-order", "hidden-roots")
    ]
    assert len(keys[0]) > 10
    assert keys[0] == keys[1] == keys[2]
    out = tmp_path / "alternatives.jsonl"
    assert main(["pool", "alternatives", str(bundled_pool("ordered")), str(out), "--open-ended"]) == 0
    alternatives = [identity.model_keys(item) for item in of.items.read_pool(out).items]
    assert alternatives
    assert all(keys[0] & {*item_keys} for item_keys in alternatives)


@pytest.mark.parametrize("of", benchmarks(), ids=lambda of: of.name)
def test_no_part_has_a_model_of_the_pools_that_a_split_is_apart_from(
    of: Benchmark[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool, copies = _renamed(of, tmp_path, num_items=12)
    keys = of.require(CHECK).identity.model_keys
    header, *lines = pool.read_text(encoding="utf-8").splitlines()
    known = jsonl(tmp_path / "known.jsonl", header, lines[0])
    models = {key for item in of.items.read_pool(known).items for key in keys(item)}
    line = ["pool", "split", str(copies), "--shares", ".5,.5", "--out", str(tmp_path / "a"), "--apart-from"]
    assert main([*line, str(known)]) == 0
    written = [
        item for name in ("train", "test") for item in of.items.read_pool(tmp_path / "a" / f"{name}.jsonl").items
    ]
    expected = [item.id for item in of.items.read_pool(copies).items if not models & {*keys(item)}]
    assert sorted(item.id for item in written) == sorted(expected)
    report = json.loads((tmp_path / "a" / "split.json").read_text(encoding="utf-8"))
    assert report["left_out"] == {str(known): len(of.items.read_pool(copies)) - len(expected)}
    assert report["left_out"][str(known)] >= 2
    line[6] = str(tmp_path / "b")
    capsys.readouterr()
    assert "about a model of the other pools" in refused(capsys, *line, pool)


def test_the_report_names_the_same_model_under_another_disclosure(tmp_path: Path) -> None:
    """It is counted from the items: what a part shares with other pools is counted as what it shares with parts."""
    identity = benchmark("replayscm").require(CHECK).identity
    items: list[KeyedItem] = []
    for name in ("ordered", "block"):
        pool = benchmark("replayscm").items.read_pool(bundled_pool(name))
        items += [KeyedItem(identity.model_keys(i), identity.structure_key(i), i.setting) for i in pool.items[:5]]
    assert items[0].models == items[5].models
    known = ModelIndex()
    for item in items[:5]:
        known.add(item)
    first, second = measure_parts(["a", "b"], [items[5:8], items[5:7]], known, {0: 3, 1: 2})
    assert (first.num_shared_models, first.num_other_disclosures, first.num_graphs) == (3, 3, 3)
    assert (second.num_shared_models, second.num_other_disclosures) == (2, 2)
    (alone,) = measure_parts(["a"], [items[:3]], ModelIndex(), {0: 3})
    assert (alone.num_shared_models, alone.num_other_disclosures, alone.num_graphs) == (0, 0, 0)
    (same,) = measure_parts(["a"], [items[:3]], known, {0: 3})
    assert same.num_shared_models == 3


def test_names_and_order_of_the_items_decide_nothing(tmp_path: Path) -> None:
    source = bundled_files()["causim"][0]
    header, *lines = source.read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in reversed(lines)]
    other = jsonl(tmp_path / "other.jsonl", header, *({**r, "id": f"x{n}"} for n, r in enumerate(records)))
    contents = []
    for number, pool in enumerate((source, other)):
        folder = tmp_path / str(number)
        assert main(["pool", "split", str(pool), "--out", str(folder), "--seed", "5"]) == 0
        parts = [
            (folder / f"{name}.jsonl").read_text("utf-8").splitlines()[1:] for name in ("train", "validation", "test")
        ]
        contents.append(
            [sorted(json.dumps(json.loads(line) | {"id": ""}, sort_keys=True) for line in p) for p in parts]
        )
    assert contents[0] == contents[1]


@given(st.lists(st.integers(1, 30), min_size=3, max_size=60), st.integers(0, 9))
def test_parts_have_their_shares_but_for_a_unit(sizes: list[int], seed: int) -> None:
    units = [(size, bytes([number])) for number, size in enumerate(sizes)]
    shares = (Fraction(8, 10), Fraction(1, 10), Fraction(1, 10))
    parts = assign_units(units, shares, seed)
    totals = Counter[int]()
    for part, size in zip(parts, sizes, strict=True):
        totals[part] += size
    assert {*parts} == {0, 1, 2}
    for part, share in enumerate(shares):
        assert totals[part] - share * sum(sizes) <= max(sizes)


def test_units_are_joined_through_others() -> None:
    assert sorted(map(sorted, join_units(["ab", "c", "bd", "e", "dc", "f"]))) == [[0, 1, 2, 4], [3], [5]]


@pytest.mark.parametrize(
    "shares", ["1", ".5,.6", "0,1", "-1,2", "a,b", ".5,.5,", "1e9,1", "1/2,1/2", ",".join(["1"] * 40)]
)
def test_shares_that_are_none(shares: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["pool", "split", bundled_pool("ordered"), "--shares", shares, "--out", tmp_path / "out"]
    assert "expected 2 to 20 positive numbers that add up to 1" in refused(capsys, *line)
    assert not (tmp_path / "out").exists()
