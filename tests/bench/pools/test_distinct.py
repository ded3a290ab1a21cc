"""Items that repeat each other are named or left out; parts of a split share no latent model."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.json import encode

from calibrant.audits.replayscm.findings import IDENTITY
from calibrant.bench.cli import main
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.registry import benchmark, benchmarks, bundled_files, bundled_pool
from calibrant.bench.pools.capabilities import CHECK
from calibrant.bench.pools.distinct import KeyedItem, ModelIndex, assign_units, join_units, measure_parts
from calibrant.bench.pools.generated import write_part
from calibrant.dsl.blickets.item import (
    BlicketItem,
    Condition,
    Count,
    Exposure,
    Form,
    Mechanism,
    Rule,
    Sealed,
    SwitchBy,
    Task,
)
from calibrant.dsl.blickets.reference import run
from calibrant.dsl.formulas.formula import apply
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.episode import ScmEpisode, candidate_worlds
from calibrant.dsl.replayscm.extensions.extension import Allowance, Contexts
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.solvers.canonical import canonical_key
from calibrant.solvers.replayscm.canonical import scm_structure
from tests.support.commands import jsonl, refused
from tests.support.effort import effort
from tests.support.replayscm.extensions import small_problem


# --- Items of a test that repeat those of training are left out, by what is asked, and named when they are
# generated
def _generated(path: Path, of: str, seed: int, strata: str, number: int) -> list[dict[str, object]]:
    line = ["generate", "--benchmark", of, "--seed", seed, "--strata", strata, "--per-stratum", number, "--out", path]
    assert main(list(map(str, line))) == 0
    return _items(path)


def _items(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[1:]]


def _rule(record: dict[str, object]) -> str:
    """Return what a detector without noise is: the seed of its noise is never drawn."""
    assert isinstance(record["sealed"], dict)
    sealed = {name: value for name, value in record["sealed"].items() if name != "noise_seed"}
    return json.dumps([{**record, "sealed": sealed, "id": "", "labels": {}}], sort_keys=True)


def test_no_rule_is_left_that_occurs_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, test, new = (tmp_path / name for name in ("train.jsonl", "test.jsonl", "new.jsonl"))
    known = {_rule(record) for record in _generated(train, "blickets", 1, "easy-3", 12)}
    records = _generated(test, "blickets", 2, "easy-3,order-2-of-4", 12)
    told = capsys.readouterr().err
    assert "items ask what an earlier one asks" in told
    assert f"calibrant pool distinct {test}" in told
    assert main(["pool", "distinct", str(test), str(new), "--apart-from", str(train), "--json"]) == 0
    expected = []
    for record in records:
        if _rule(record) not in known:
            known.add(_rule(record))
            expected.append(record)
    assert _items(new) == expected
    written = json.loads(capsys.readouterr().out)
    assert written["items"] == len(expected) == 24 - len(written["left_out"])
    assert len(expected) < 24


def test_a_pool_that_only_repeats_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, out = tmp_path / "train.jsonl", tmp_path / "out.jsonl"
    _generated(train, "causim", 1, "chain", 2)
    assert "ask what" not in capsys.readouterr().err
    assert "each of its 2 items repeats one" in refused(capsys, "pool", "distinct", train, out, "--apart-from", train)
    assert not out.exists()


def test_the_settings_of_a_problem_are_no_repeats_but_a_pool_of_itself_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is disclosed is part of a ReplaySCM question."""
    ordered, block = bundled_pool("ordered"), bundled_pool("block")
    out = tmp_path / "out.jsonl"
    assert main(["pool", "distinct", str(block), str(out), "--apart-from", str(ordered)]) == 0
    assert "; 0 left out" in capsys.readouterr().err
    assert "repeats one" in refused(capsys, "pool", "distinct", block, tmp_path / "none.jsonl", "--apart-from", block)


def test_items_of_two_files_repeat_each_other_whatever_their_ids(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An id of one letter is one object in both files."""
    train, out = tmp_path / "train.jsonl", tmp_path / "out.jsonl"
    (record,) = _generated(train, "causim", 1, "chain", 1)
    header = train.read_text(encoding="utf-8").splitlines()[0]
    train.write_text(f"{header}\n{json.dumps({**record, 'id': 'a'})}\n", encoding="utf-8")
    capsys.readouterr()
    assert "repeats one" in refused(capsys, "pool", "distinct", train, out, "--apart-from", train)


def test_episodes_are_equal_only_if_every_action_shows_the_same() -> None:
    """Their tasks are alike: nothing is shown before the first action."""
    problem, noisy = (small_problem(3, rate=rate, is_episode=True) for rate in ("0", "1/20"))
    sampled = _with_contexts(problem, Contexts.SAMPLED)
    assert problem.sealed.gold is not None
    child, formula = next(iter(problem.sealed.gold.mechanisms.items()))
    other = scm(problem.sealed.gold.roots, {**problem.sealed.gold.mechanisms, child: apply("not", [formula])})
    twice = apply("not", [apply("not", [formula])])
    alike = scm(problem.sealed.gold.roots, {**problem.sealed.gold.mechanisms, child: twice})

    def key(one: Problem, **sealed: object) -> bytes:
        return IDENTITY.duplicate_key(replace(one, id="x", sealed=replace(one.sealed, **sealed)))  # type: ignore[arg-type]

    assert key(problem) != key(problem, gold=other)
    assert key(problem) == key(problem, gold=alike) == key(problem, seed=99) == key(problem, labels={})
    assert key(noisy) != key(noisy, seed=(noisy.sealed.seed or 0) + 1)
    assert key(noisy) == key(noisy, labels={})
    assert key(sampled) != key(sampled, seed=99)


def _with_contexts(problem: Problem, contexts: Contexts) -> Problem:
    extension = problem.task.extension
    assert extension is not None
    assert extension.allowance is not None
    changed = replace(extension, allowance=replace(extension.allowance, contexts=contexts))
    return replace(problem, task=replace(problem.task, extension=changed))


@pytest.mark.parametrize("of", ["blickets", "causalab"])
def test_noise_is_part_of_what_is_shown(of: str) -> None:
    """An item with noise repeats itself, under other labels too, and none whose noise has another seed."""
    items: Any = benchmark(of).items.read_pool(bundled_files()[of][0]).items
    key = benchmark(of).require(CHECK).identity.duplicate_key
    noisy = next(item for item in items if (item.sealed.p < 1 if of == "blickets" else item.sealed.noise is not None))
    seeds = {"noise_seed": 99} if of == "blickets" else {"noise": replace(noisy.sealed.noise, seed=99)}
    assert key(noisy) == key(replace(noisy, id="another"))
    assert key(noisy) != key(replace(noisy, sealed=replace(noisy.sealed, **seeds)))
    if of == "blickets":
        quiet = next(item for item in items if item.sealed.p == 1)
        assert key(quiet) == key(replace(quiet, sealed=replace(quiet.sealed, noise_seed=99)))


@pytest.mark.parametrize("bench", benchmarks(), ids=lambda bench: bench.name)
def test_part_of_a_pool_is_a_pool(bench: Benchmark[Any], tmp_path: Path) -> None:
    pool = bench.items.read_pool(bundled_files()[bench.name][0])
    write_part(bench, pool, pool.items[1:3], tmp_path / "part.jsonl")
    part = bench.items.read_pool(tmp_path / "part.jsonl")
    assert list(part.items) == list(pool.items[1:3])
    assert part.name == pool.name


def _outcomes(item: BlicketItem, actions: tuple[dict[str, Any], ...] = ()) -> list[object]:
    """Return what every sequence of moves within the budget shows, and which answer is right after it."""
    objects, history = item.task.objects, run(item, actions)
    rule = item.sealed.mechanisms[history.phase].rule
    check = run(item, (*actions, {"check": rule.as_json(objects)})).moments[-1]
    right = rule if item.sealed.strict_singleton else rule.canonical
    outcomes: list[object] = [[moment.reading for moment in history.moments], check.refused, right]
    if len(actions) < item.task.budget:
        moves = [{verb: name} for verb in ("place", "remove") for name in objects]
        for move in (*moves, {"place": "no object"}):
            outcomes += _outcomes(item, (*actions, move))
    return outcomes


def _tiny_detector(rng: Random) -> BlicketItem:
    """Return an item of 2 objects and 1 to 3 moves: few enough to play every sequence, and to meet twins."""
    rules = [Rule(form, blickets) for form in Form for blickets in (1, 2, 3)]
    switches = tuple(sorted(rng.sample(range(1, 5), rng.choice((0, 1, 1, 2)))))
    sealed = Sealed(
        tuple(Mechanism(rng.choice(rules)) for _ in range(len(switches) + 1)),
        switches,
        rng.choice(list(SwitchBy)),
        start_on=rng.choice((None, None, (), (1,), (1, 0))),
        exposure=Exposure(rng.choice((0, 0, 2)), after_switch=rng.random() < 0.2),
        strict_singleton=rng.random() < 0.2,
    )
    graded, count = rng.random() < 0.3, rng.choice(list(Count))
    return BlicketItem("tiny", Condition.MODERATOR, Task(("A", "B"), rng.randint(1, 3), count, graded=graded), sealed)


@pytest.mark.soak
def test_detectors_are_equal_exactly_if_no_sequence_of_moves_shows_a_difference() -> None:
    """Play every sequence of actions on the reference; a tenth of the soak still has twins of every kind."""
    rng, key = Random(5), benchmark("blickets").require(CHECK).identity.duplicate_key
    shown: dict[str, bytes] = {}
    keys: dict[bytes, str] = {}
    stated = set()
    for _ in range(effort(120, 4000)):
        item = _tiny_detector(rng)
        outcomes = repr((encode(item.task), item.sealed.start_on, _outcomes(item)))
        assert shown.setdefault(outcomes, key(item)) == key(item), item.sealed
        assert keys.setdefault(key(item), outcomes) == outcomes, item.sealed
        stated.add(repr((encode(item.task), item.sealed.start_on, item.sealed.mechanisms, item.sealed.switches)))
    assert 50 < len(shown) < len(stated)


def test_rules_beyond_the_budget_are_no_part_of_a_detector() -> None:
    """A finer key, with noise and in an order, leaves them out as well."""
    key = benchmark("blickets").require(CHECK).identity.duplicate_key
    first, second = Mechanism(Rule(Form.CONJUNCTIVE, 1)), Mechanism(Rule(Form.DISJUNCTIVE, 3))
    task = Task(tuple("ABCD"), 20)

    def detector(mechanisms: tuple[Mechanism, ...], switches: tuple[int, ...] = (), p: float = 1.0) -> BlicketItem:
        return BlicketItem("x", Condition.MODERATOR, task, Sealed(mechanisms, switches, SwitchBy.STEPS, p))

    for p in (1.0, 0.7):
        alone, unreached = detector((first,), p=p), detector((first, second), (21,), p)
        assert key(alone) == key(unreached) == key(replace(alone, condition=Condition.DISJUNCTIVE, id="y"))
        assert key(alone) != key(detector((first, second), (19,), p))
        word = replace(unreached, sealed=replace(unreached.sealed, strict_singleton=True))
        assert key(word) != key(alone)


def _episode(rng: Random) -> Problem:
    """Return an episode whose last variable has many parents that are copies, so that actions reach few states."""
    problem = small_problem(rng.randrange(12))
    extension, gold = problem.task.extension, problem.sealed.gold
    assert extension is not None
    assert extension.allowance is not None
    assert gold is not None
    root, (child, last) = gold.roots[0], gold.order
    formulas = ("(and {0} {1})", "(or {0} {1})", "{1}", "(xor {0} {1})", "(not {0})", "(and {0} (not {0}))")
    mechanisms = {
        child: parse(rng.choice((root, f"(not {root})", f"(and {root} {gold.roots[1]})"))),
        last: parse(rng.choice(formulas).format(root, child)),
    }
    contexts, rows = rng.choice(((Contexts.ALL, 4), (Contexts.CHOSEN, 1), (Contexts.CHOSEN, 4)))
    allowance = Allowance(rng.choice((0, 1, 2)), rows, rng.choice((0, 1)), contexts)
    task = replace(problem.task, extension=replace(extension, allowance=allowance))
    return replace(problem, task=task, sealed=replace(problem.sealed, gold=scm(gold.roots, mechanisms)))


def _shown(problem: Problem) -> list[object]:
    """Return the start and, of every action that may follow it, what it shows; nothing depends on earlier actions."""
    extension = problem.task.extension
    assert extension is not None
    assert extension.allowance is not None
    shown: list[object] = [ScmEpisode(problem).steps[0].reading]
    chosen = extension.allowance.contexts is Contexts.CHOSEN
    texts = ["".join(bits) for bits in product("01", repeat=len(extension.roots))]
    for do in candidate_worlds(extension.variables, extension.allowance.max_targets):
        for context in texts if chosen else [""]:
            step = ScmEpisode(problem).act({"do": do, "contexts": [context]} if chosen else {"do": do})
            shown.append(step.refused or step.reading)
    return shown


@pytest.mark.soak
def test_episodes_are_equal_exactly_if_no_action_shows_a_difference() -> None:
    """Mechanisms differ in states that parents never have together, or without a request; few cases have both."""
    rng = Random(3)
    shown: dict[str, bytes] = {}
    keys: dict[bytes, str] = {}
    stated = set()
    for _ in range(effort(150, 3000)):
        problem = _episode(rng)
        assert problem.sealed.gold is not None
        key, readings = (
            IDENTITY.duplicate_key(problem),
            repr((problem.task.extension, problem.task.disclosure, _shown(problem))),
        )
        assert shown.setdefault(readings, key) == key
        assert keys.setdefault(key, readings) == readings
        stated.add(repr((problem.task.extension, problem.task.disclosure, problem.sealed.gold.signature)))
    assert 50 < len(shown) < len(stated)


# --- Splits by latent model: no part shares one with another, whatever names, disclosures and questions are -----------
ROOTS, NAMES = ("a", "b"), ("a", "b", "c", "d")
FORMULAS = ("a", "b", "(and a b)", "(or a b)", "(xor a b)", "(not a)", "(not b)")
LAST_FORMULAS = (*FORMULAS, "c", "(not c)", "(and a c)", "(and b c)", "(or c (and a b))", "(and a (or a c))")
PAIRS = st.tuples(st.sampled_from(FORMULAS), st.sampled_from(LAST_FORMULAS))


def _meaning(model: Scm, names: tuple[str, ...]) -> tuple[object, ...]:
    """Return the roots, and the value of each mechanism for all values of all variables, under other names."""
    new = dict(zip(NAMES, names, strict=True))
    rows = []
    for bits in range(1 << len(NAMES)):
        values = {name: bits >> index & 1 for index, name in enumerate(NAMES)}
        outputs = [(new[name], evaluate(formula, values)) for name, formula in model.mechanisms.items()]
        rows.append((sorted((new[name], value) for name, value in values.items()), sorted(outputs)))
    return sorted(new[root] for root in ROOTS), sorted(rows)


@given(PAIRS, PAIRS)
def test_keys_are_equal_for_renamings_alone(first: tuple[str, str], second: tuple[str, str]) -> None:
    one, other = (scm(ROOTS, {"c": parse(c), "d": parse(d)}) for c, d in (first, second))
    is_renaming = any(_meaning(one, order) == _meaning(other, NAMES) for order in permutations(NAMES))
    assert (canonical_key(scm_structure(one)) == canonical_key(scm_structure(other))) is is_renaming


def _renamed(bench: Benchmark[Any], tmp_path: Path, num_items: int = 6) -> tuple[Path, Path]:
    """Return a pool with items, and one with two renamed copies of each."""
    source, pool, copies = bundled_files()[bench.name][0], tmp_path / "pool.jsonl", tmp_path / "copies.jsonl"
    lines = source.read_text(encoding="utf-8").splitlines()
    jsonl(pool, *lines[: num_items + 1])
    assert main(["variants", str(pool), "--kinds", "rename", "--copies", "2", "--out", str(copies)]) == 0
    return pool, copies


@pytest.mark.parametrize("bench", benchmarks(), ids=lambda bench: bench.name)
def test_copies_under_other_names_are_in_the_part_of_their_model(bench: Benchmark[Any], tmp_path: Path) -> None:
    pool, copies = _renamed(bench, tmp_path)
    identity = bench.require(CHECK).identity
    originals = [identity.model_keys(item) for item in bench.items.read_pool(pool).items]
    assert all(originals)
    copied = [identity.model_keys(item) for item in bench.items.read_pool(copies).items]
    assert len(copied) > len(originals) > 1
    assert {*copied} == {*originals}
    assert main(["pool", "split", str(copies), "--by", "model", "--shares", ".5,.5", "--out", str(tmp_path / "a")]) == 0
    parts = [bench.items.read_pool(tmp_path / "a" / name).items for name in ("train.jsonl", "test.jsonl")]
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


@pytest.mark.parametrize("bench", benchmarks(), ids=lambda bench: bench.name)
def test_a_test_apart_from_training_by_model_has_no_renamed_copy(
    bench: Benchmark[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool, copies = _renamed(bench, tmp_path)
    line = ["pool", "distinct", copies, tmp_path / "new.jsonl", "--apart-from", pool]
    capsys.readouterr()
    assert "is about a model of the other pools" in refused(capsys, *line, "--by", "model")
    assert main([str(word) for word in line]) == 0  # by item renamed copies are new


def test_the_same_scm_under_another_disclosure_is_the_same_unit(tmp_path: Path) -> None:
    """An item about gold and its Alternative-SCM item, which names gold, share it as well."""
    bench = benchmark("replayscm")
    identity = bench.require(CHECK).identity
    keys = [
        {key for item in bench.items.read_pool(bundled_pool(name)).items for key in identity.model_keys(item)}
        for name in ("ordered", "block", "hidden-order", "hidden-roots")
    ]
    assert len(keys[0]) > 10
    assert keys[0] == keys[1] == keys[2]
    out = tmp_path / "alternatives.jsonl"
    assert main(["pool", "alternatives", str(bundled_pool("ordered")), str(out), "--open-ended"]) == 0
    alternatives = [identity.model_keys(item) for item in bench.items.read_pool(out).items]
    assert alternatives
    assert all(keys[0] & {*item_keys} for item_keys in alternatives)


@pytest.mark.parametrize("bench", benchmarks(), ids=lambda bench: bench.name)
def test_no_part_has_a_model_of_the_pools_that_a_split_is_apart_from(
    bench: Benchmark[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool, copies = _renamed(bench, tmp_path, num_items=12)
    keys = bench.require(CHECK).identity.model_keys
    header, *lines = pool.read_text(encoding="utf-8").splitlines()
    known = jsonl(tmp_path / "known.jsonl", header, lines[0])
    models = {key for item in bench.items.read_pool(known).items for key in keys(item)}
    line = ["pool", "split", str(copies), "--shares", ".5,.5", "--out", str(tmp_path / "a"), "--apart-from"]
    assert main([*line, str(known)]) == 0
    written = [
        item for name in ("train", "test") for item in bench.items.read_pool(tmp_path / "a" / f"{name}.jsonl").items
    ]
    expected = [item.id for item in bench.items.read_pool(copies).items if not models & {*keys(item)}]
    assert sorted(item.id for item in written) == sorted(expected)
    report = json.loads((tmp_path / "a" / "split.json").read_text(encoding="utf-8"))
    assert report["left_out"] == {str(known): len(bench.items.read_pool(copies)) - len(expected)}
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
    for index, pool in enumerate((source, other)):
        folder = tmp_path / str(index)
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
    units = [(size, bytes([index])) for index, size in enumerate(sizes)]
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
