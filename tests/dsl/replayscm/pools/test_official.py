"""Official files: read a record at a time, written, refused with file, instance and field, and hostile ones."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant.dsl.records
from calibrant.bench.cli import main
from calibrant.bench.core.registry import bundled_pools
from calibrant.bench.replayscm.pools.check import count_unused_fields
from calibrant.dsl.errors import PoolError
from calibrant.dsl.parse_limits import check_nesting
from calibrant.dsl.records import StoredItems
from calibrant.dsl.replayscm.item import ModelResult, Pool, Problem
from calibrant.dsl.replayscm.pools import runtime_yaml
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.dsl.replayscm.pools.runtime_yaml import read_official, read_official_whole, write_official
from calibrant.dsl.yaml_text import load_whole
from tests.fuzz.corruption import CHARACTER_DAMAGE, LINE_DAMAGE
from tests.fuzz.pools import TOKENS
from tests.support.effort import effort, examples
from tests.support.replayscm.records import (
    HEADER,
    POOLS,
    Record,
    native_file,
    native_record,
    official_file,
    official_record,
    official_records,
    put,
    read_records,
    read_text,
)
from tests.support.replayscm.strategies import problems
from tests.support.shared import shared_file

# --- Official files read a record at a time: the problems of the whole document, or its refusal, word for word --------
RESPONSE = "so\n\n- problem: x\nmodelResults:\n *bold* a & b\n\ttab  \n"
LAYOUTS: dict[str, dict[str, Any]] = {
    "as published": {"sort_keys": False, "indent": 2},
    "keys in order": {"sort_keys": True},  # modelResults before problem: nothing is cut
    "flow": {"sort_keys": False, "default_flow_style": None},
    "narrow": {"sort_keys": False, "width": 20},
}


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def text_in(layout: str) -> str:
    """Three small records with results, and metadata after them."""
    results = [
        {"m": {"rawResponse": RESPONSE, "extractedAnswer": {"mechanisms": {"X3": 1.5}}, "valid": True}},
        {},
        {"m": {}},
    ]
    records = [official_record(f"I{i}") | {"modelResults": raw} for i, raw in enumerate(results)]
    for record in records:
        record["problem"]["worlds"] = record["problem"]["worlds"][::3]
    document = {"version": 1, "problems": records, "metadata": {"made": "2001-01-01"}}
    text: str = yaml.dump(document, Dumper=_Dumper, **LAYOUTS[layout])
    return text


def outcome(read: Any, data: bytes, *, keep_results: bool) -> Any:
    try:
        pool: Pool = read(BytesIO(data), "pool.yaml", keep_results=keep_results)
    except PoolError as error:
        return str(error)
    return pool.name, repr(pool.metadata), [(problem, results_of(problem)) for problem in pool.problems]


def results_of(problem: Any) -> str:
    try:
        return repr(problem.results())
    except PoolError as error:
        return str(error)


def require_same(data: bytes, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether it is read at all."""
    expected: Any = ""
    for keep_results in (True, False):
        with monkeypatch.context() as patched:
            patched.setattr(runtime_yaml, "load_yaml", load_whole)
            expected = outcome(read_official_whole, data, keep_results=keep_results)
        for kept in (2000, 1):  # all are kept; all are stored
            with monkeypatch.context() as patched:
                patched.setattr(calibrant.dsl.records, "MAX_CACHED_ITEMS", kept)
                assert outcome(read_official, data, keep_results=keep_results) == expected
    return not isinstance(expected, str)


@pytest.mark.soak
@pytest.mark.parametrize("layout", LAYOUTS)
def test_damaged_files(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few dozen files with one or two kinds of damage still meet every way of reading, whole and in parts."""
    rng = random.Random(layout)
    text = text_in(layout)
    read = 0
    number = effort(12, 1_000)
    for _ in range(number):
        made = text
        for _ in range(rng.choice([1, 1, 2])):
            if rng.random() < 0.5:
                start = rng.randrange(len(made) + 1)
                made = made[:start] + rng.choice(TOKENS) + made[start + rng.choice([0, 0, 1, 5]) :]
            else:
                made = rng.choice(rng.choice([LINE_DAMAGE, CHARACTER_DAMAGE]))(rng, made)
        data = made.encode("utf-8", "surrogatepass")
        if rng.random() < 0.1 and data:
            place = rng.randrange(len(data))
            data = data[:place] + bytes([data[place] ^ 128]) + data[place + 1 :]
        read += require_same(data, monkeypatch)
    assert 0 < read < number


@pytest.mark.parametrize(
    "text",
    [
        "", "a", "- a", "problems: x", "problems:", "metadata: {}", "problems: []", "problems: []\nmetadata: x",
        "problems: [{}]", "problems: [x]\nmetadata: [", "problems: [x]\na: 1\na: 2", "problems: [x]\nproblems: []",
        "problems: &p []\nmetadata: *p", "problems: []\n--- x", "problems: []\n...\n", "\ufeffproblems: []",
        "problems: [\xff", "problems: [x, y]\nmetadata: [",
        "problems: [x]\n" + "#\n" * 20_000 + "]", "problems: [x]\n" + "#\n" * 20_000 + "\0", "? [problems]\n: []",
    ],
)  # fmt: skip
def test_the_first_thing_wrong_is_the_one_that_is_told(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_same(text.encode(), monkeypatch)


def test_bytes_that_are_no_text_are_told_before_anything_else() -> None:
    data = b"problems: [x]\nmetadata: [\n" + b"#\n" * 20_000 + b"\xff\n"
    with pytest.raises(PoolError, match=f"not UTF-8 at byte {len(data) - 2}"):
        read_official(BytesIO(data), "pool.yaml")


def test_of_many_items_only_lines_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with shared_file("pool_dev_t1_hidden_roots.runtime.yaml").open("rb") as file:
        kept = read_official(file, "pool")
        monkeypatch.setattr(calibrant.dsl.records, "MAX_CACHED_ITEMS", 5)
        monkeypatch.setattr(runtime_yaml, "load_yaml", None)  # which reading in parts does not call
        stored = read_official(file, "pool")
    assert isinstance(kept.problems, tuple)
    assert isinstance(stored.problems, StoredItems)
    assert stored == kept
    assert count_unused_fields(shared_file("pool_dev_t1_hidden_roots.runtime.yaml"))


# --- Model results embedded in pool files: cut out as text, parsed when asked for, and the same as if parsed at once


def _results(raw: Any) -> tuple[ModelResult, ...]:
    """Return a record's results as the whole file parsed at once has them."""
    return tuple(
        ModelResult(
            model,
            result.get("rawResponse"),
            result.get("extractedAnswer"),
            result.get("evaluation") or {},
            {key: result[key] for key in ("valid", "correct") if key in result},
        )
        for model, result in (raw or {}).items()
    )


def _check_lazy(path: Path) -> Pool:
    records = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["problems"]
    pool = read_pool(path)
    expected = [_results(record.get("modelResults")) for record in records]
    assert [problem.results() for problem in pool.problems] == expected
    assert [pickle.loads(pickle.dumps(problem)).results() for problem in pool.problems] == expected
    assert [problem.results() for problem in read_pool(path, keep_results=False).problems] == [()] * len(records)
    return pool


def _with_results(*results: Any) -> list[Record]:
    return [official_record(f"I{i}") | {"modelResults": raw} for i, raw in enumerate(results)]


AWKWARD = "line\n\n   \n- problem: x\nmodelResults:\n  deep: *bold* &c\n---\n# no comment\n\ttab\u2028\u0085 end  \n"


@pytest.mark.parametrize(
    "dump",
    [
        {"sort_keys": False},
        {"sort_keys": True},  # modelResults before problem: nothing is cut
        {"sort_keys": False, "default_flow_style": None},
        {"sort_keys": False, "width": 20},
        {"sort_keys": False, "default_style": "'"},
        {"sort_keys": False, "indent": 7},
    ],
    ids=str,
)
def test_results_in_any_layout_are_those_of_the_whole_file(dump: dict[str, Any], tmp_path: Path) -> None:
    shared = {"mechanisms": {"X3": "X1"}}  # the dumper writes it once, and references
    first = {"m1": {"rawResponse": AWKWARD, "extractedAnswer": shared}, "m2": {"extractedAnswer": shared}}
    records = _with_results(first, {}, {"m1": {"rawResponse": AWKWARD, "extractedAnswer": shared}}, None)
    records[0]["problem"]["notes"] = [{"problem": AWKWARD}, AWKWARD, shared]
    path = tmp_path / "pool.yaml"
    document = {"problems": records, "metadata": {"notes": AWKWARD, "shared": shared}}
    path.write_text(yaml.dump(document, **dump), encoding="utf-8")
    _check_lazy(path)


BLOCKS = {  # what stands under `modelResults:`, whose model `m` has a response
    "spaces alone in a line": "rawResponse: |-\n        one\n             \n        two\n",
    "a line that is not indented": 'rawResponse: "one\ntwo"\n',
    "a line that looks like the next key": 'rawResponse: "one\n  modelResults:\n\n   x"\n',
    "a line that looks like the next record": 'rawResponse: "one\n- problem: x"\n',
    "comments": "rawResponse: x # no\n# here\n      # there\n      extractedAnswer: {}\n",
    "an anchor inside": "rawResponse: &r x\n    m2: {rawResponse: *r}\n",
    "an anchor inside, used outside": "rawResponse: &r x\n  notes: *r\n",
    "an anchor outside": "rawResponse: *n\n",
    "more keys": "rawResponse: x\n  more: y\n",
}
HEADS = {"one line": "  modelResults: {m: {rawResponse: x}}\n", "nothing": "  modelResults:\n"}
HEADS["a comment"] = "  modelResults: # of one model\n    m:\n      rawResponse: x\n"
HEADS |= {what: f"  modelResults:\n    m:\n      {block}" for what, block in BLOCKS.items()}
HEADS["an anchor outside"] = "  notes: &n x\n" + HEADS["an anchor outside"]


@pytest.mark.parametrize("what", HEADS)
def test_results_written_by_hand_are_those_of_the_whole_file(what: str, tmp_path: Path) -> None:
    text = official_file([official_record("I0"), official_record("I1"), official_record("I2")], tmp_path).read_text()
    parts = text.split("  modelResults: {}\n")
    assert len(parts) == 4
    for place in range(3):
        blocks = ["  modelResults:\n    other:\n      rawResponse: y\n"] * 3
        blocks[place] = HEADS[what]
        path = tmp_path / "pool.yaml"
        path.write_text("".join(part + block for part, block in zip(parts, [*blocks, ""], strict=True)))
        _check_lazy(path)


def test_a_nested_record_is_not_counted_for_one_that_begins_otherwise(tmp_path: Path) -> None:
    """As many lines begin with `- problem:` as there are records; yet the second is not the second record's."""
    records = _with_results(*({"m": {"rawResponse": f"of record {i}"}} for i in range(3)))
    records[0]["problem"]["notes"] = [{"problem": "x"}]
    records[2] = {"subslice": "s", **records[2]}
    path = tmp_path / "pool.yaml"
    path.write_text(yaml.dump({"problems": records}, sort_keys=False), encoding="utf-8")
    assert path.read_text(encoding="utf-8").count("- problem:") == len(records)
    pool = _check_lazy(path)
    assert [problem.results()[0].raw_response for problem in pool.problems] == [f"of record {i}" for i in range(3)]


def test_results_that_are_not_what_the_format_says_are_refused_when_asked_for(tmp_path: Path) -> None:
    pool = read_pool(official_file(_with_results({"m": "text"}, {"m": {}}), tmp_path))
    assert pool.problems[1].results() == (ModelResult("m", None, None, {}),)
    with pytest.raises(PoolError, match="modelResults"):
        pool.problems[0].results()


# --- The official runtime YAML as we write it: read back it is the same, and it says what official files say ----------
T1 = [f"pool_dev_t1_{name}.runtime.yaml" for name in ("ordered", "block", "hidden_order", "hidden_roots")]


@given(st.lists(problems(), min_size=1, max_size=3), st.dictionaries(st.text("ab\n\u00e9"), st.text("7x: '\n")))
@settings(deadline=None, max_examples=examples(60))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[Problem], labels: dict[str, str]
) -> None:
    named = [
        Problem(f"I{i}", p.task, replace(p.sealed, labels={**p.sealed.labels, **labels})) for i, p in enumerate(drawn)
    ]
    path = tmp_path_factory.mktemp("pool") / "pool.yaml"
    write_official(Pool("drawn", tuple(named)), path)
    assert read_pool(path).problems == tuple(named)


@pytest.mark.parametrize("name", [*T1, POOLS["Alt-Ordered"]])
def test_official_pools_come_back_equal_through_both_formats(name: str, tmp_path: Path) -> None:
    official = shared_file(name)
    native, again = tmp_path / "native.jsonl", tmp_path / "again.yml"
    assert main(["pool", "convert", str(official), str(native)]) == 0
    assert main(["pool", "convert", str(native), str(again)]) == 0
    before, after = read_pool(official), read_pool(again)
    assert after.problems == before.problems
    assert [p.results() for p in after.problems] == [p.results() for p in before.problems]
    assert after.metadata == before.metadata


def shared_fields(ours: Any, official: Any, where: str = "") -> Iterator[str]:
    """Fields of ours that official records have too and fill otherwise; worlds by their names."""
    if isinstance(ours, dict) and isinstance(official, dict):
        for key in sorted(ours.keys() & official.keys()):
            yield from shared_fields(ours[key], official[key], f"{where}.{key}")
    elif where.endswith(".worlds"):
        named = [{world["worldId"]: world for world in listed} for listed in (ours, official)]
        assert named[0].keys() == named[1].keys()
        yield from shared_fields(named[0], named[1], where)
    elif where.endswith(".topologicalLayers"):
        yield from shared_fields([sorted(layer) for layer in ours], [sorted(layer) for layer in official])
    elif ours != official:
        yield f"{where}: {ours!r} for {official!r}"


NOT_COMPARED = (  # drawn by chance; said in one of two places; without the worlds that were added afterwards
    ".promptVariableOrder:",
    ".pairedSourceInstanceId:",
    ".difficulty:",
    ".worldSplits.train:",
)


@pytest.mark.parametrize("setting", POOLS)
def test_every_field_that_official_records_have_too_says_the_same(setting: str, tmp_path: Path) -> None:
    records = official_records(setting, 2)
    write_official(read_records(records, tmp_path), tmp_path / "again.yaml")
    written = yaml.load((tmp_path / "again.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["problems"]
    told = [line for ours, official in zip(written, records, strict=True) for line in shared_fields(ours, official)]
    assert [line for line in told if not any(name in line for name in NOT_COMPARED)] == []


def test_hardened_generated_and_bundled_pools_go_back_to_the_official_form(tmp_path: Path) -> None:
    source, hard, official = bundled_pools()[2], tmp_path / "hard.jsonl", tmp_path / "hard.yaml"
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "few.jsonl").write_text("".join(lines[:3]), encoding="utf-8")
    assert main(["harden", str(tmp_path / "few.jsonl"), "--out", str(hard), "--seed", "1", "--workers", "1"]) in (0, 1)
    assert main(["pool", "convert", str(hard), str(official)]) == 0
    assert read_pool(official).problems == read_pool(hard).problems
    assert main(["pool", "check", str(official)]) == 0
    for pool in bundled_pools():
        converted = tmp_path / f"{pool.stem}.yaml"
        assert main(["pool", "convert", str(pool), str(converted)]) == 0
        assert read_pool(converted).problems == read_pool(pool).problems


def test_several_results_of_one_model_have_no_place(tmp_path: Path) -> None:
    problem = read_pool(bundled_pools()[0]).problems[0]
    twice = Problem(problem.id, problem.task, problem.sealed, lambda: (ModelResult("m", "", None, {}),) * 2)
    with pytest.raises(PoolError, match="several results of one model"):
        write_official(Pool("p", (twice,)), tmp_path / "p.yaml")
    assert list(tmp_path.iterdir()) == []


def test_results_keep_texts_that_yaml_could_take_for_something_else(tmp_path: Path) -> None:
    problem = read_pool(bundled_pools()[0]).problems[0]
    texts = ["0110", "null", "a\n- b: *c\n\nmodelResults:\n", "\u2028\x85\x07", "  x", "{", "é😀", ""]
    said = {"valid": False}
    results = tuple(ModelResult(f"m{i}", text, {"t": text}, {"valid": 1}, said) for i, text in enumerate(texts))
    path = tmp_path / "p.yaml"
    write_official(Pool("p", (Problem(problem.id, problem.task, problem.sealed, lambda: results),)), path)
    (again,) = read_pool(path).problems
    assert again.results() == results
    write_pool(read_pool(path), tmp_path / "p.jsonl")
    assert read_pool(tmp_path / "p.jsonl").problems[0].results() == results


# --- Files made to hurt: nesting, aliases, numbers without end. Each is refused in one line, and soon -----------------
DEEP = 100_000
LAUGHS = "l0: &l0 [x, x]\n" + "".join(f"l{i}: &l{i} [*l{i - 1}, *l{i - 1}]\n" for i in range(1, 60))

HOSTILE = {
    "open brackets": "problems: " + "[" * DEEP,
    "brackets": "problems: " + "[" * DEEP + "]" * DEEP,
    "braces": "problems: " + "{a: " * DEEP + "}" * DEEP,
    "brackets that quoted ones seem to close": "problems: " + "[']', " * DEEP + "]" * DEEP,
    "sequences in one line": "- " * DEEP + "x",
    "sequences in one line, tabs between": "-\t" * DEEP + "x",
    "sequences after another line break": "a: b\u2028" + "- " * DEEP + "x",
    "keys and sequences": "? - " * DEEP + "x",
    "blocks in blocks": "".join(" " * i + "a:\n" for i in range(1_500)),
    "a list of itself": "problems: &a [*a]",
    "a mapping of itself": "problems: &a\n  worlds: *a",
    "billion laughs": LAUGHS + "problems: *l59",
    "billion laughs elsewhere": LAUGHS + "problems: []",
    "a tagged number without digits": "problems: !!int ''",
    "a tagged object": "problems: !!python/object/apply:os.getcwd []",
    "a date that is none": "problems: 2024-13-45",
    "a key that is a list": "problems: {[a]: b}",
    "a null character": "problems: \0",
    "a number without end": "problems: " + "9" * DEEP,
    "nested lists of a native file": HEADER + "\n" + "[" * DEEP,
    "a closed nest in a native file": HEADER + '\n{"id":' + "[" * 500 + "]" * 500 + "}",
    "a nest in the header": '{"format":"calibrant-pool","version":1,"metadata":{"a":' + "[" * 300 + "]" * 300 + "}}",
    "a number without end in a native file": HEADER + '\n{"id":' + "9" * DEEP + "}",
    "a key that comes again at the end": HEADER + "\n{" + "".join(f'"k{i}":0,' for i in range(DEEP)) + '"k7":1}',
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_text_is_refused_in_one_line(what: str, tmp_path: Path) -> None:
    with pytest.raises(PoolError) as caught:
        read_text(HOSTILE[what], tmp_path)
    assert str(caught.value).startswith("pool.txt: ")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) <= 1_000


FIELDS = [
    "modelResults",
    "problemDescription.seed",
    "subslice",
    "problem.panelUnits",
    "problem.worlds",
    "problem.worlds.0.worldId",
    "problem.worlds.0.rows",
    "problem.worlds.0.domain",
    "problem.worlds.0.domainSize",
    "problem.worlds.0.envProfile.X1",
    "problem.worlds.2.interventionSummary.InterventionTargetsConstant.X1",
    "problem.signature.domains",
    "problem.signature.variables.0",
    "problem.task.parameters.scmPromptVariant",
    "problem.task.parameters.allowedOperators.0",
    "problem.task.parameters.rootVariables.0",
    "problem.goldAnswer.scm.totalAst",
    "problem.goldAnswer.scm.mechanisms.X3",
]


ENDLESS = "0x" + "f" * 5_000  # hexadecimal digits are read; the interpreter refuses to write so many decimal ones


@pytest.mark.parametrize("value", [ENDLESS, ".nan", "~", "{}", "[[]]"])
@pytest.mark.parametrize("field", FIELDS)
def test_any_value_anywhere_is_read_or_refused(field: str, value: str, tmp_path: Path) -> None:
    record = official_record()
    put(field, "PLACE")(record)
    path = official_file([record], tmp_path)
    text = path.read_text(encoding="utf-8")
    assert text.count("PLACE") == 1
    path.write_text(text.replace("PLACE", value), encoding="utf-8")
    refusal, pool = _read(path)
    if pool is None:
        assert refusal.isprintable()
        assert 0 < len(refusal) <= 1_000
    else:
        rows = [world["rows"] for world in official_record()["problem"]["worlds"]]
        assert [world.row_texts() for world in pool.problems[0].worlds] == rows


def _read(path: Path) -> tuple[str, Pool | None]:
    try:
        return "", read_pool(path)
    except PoolError as error:
        return str(error), None


@pytest.mark.parametrize("level", ["1e999", "-0.001", "1.0001", "-1e-400"])
def test_levels_are_numbers_from_0_to_1(level: str, tmp_path: Path) -> None:
    record = native_record()
    record["training"][0]["environment"]["X1"] = "PLACE"
    text = native_file([record], tmp_path).read_text(encoding="utf-8").replace('"PLACE"', level)
    if level == "-1e-400":  # which is zero
        assert len(read_text(text, tmp_path)) == 1
        return
    with pytest.raises(PoolError, match="from 0 to 1"):
        read_text(text, tmp_path)


@pytest.mark.parametrize("metadata", [{1: 2}, {"a": "\ud800"}, {"a": object()}, {"a": {(1, 2): 3}}])
def test_metadata_that_does_not_fit_json_is_told_when_written(metadata: Any, tmp_path: Path) -> None:
    with pytest.raises(PoolError, match="does not fit JSON"):
        write_pool(Pool("p", (), metadata), tmp_path / "pool.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_shared_parts_count_wherever_they_occur() -> None:
    shared = [1, 2, 3]
    check_nesting([shared, shared], max_items=8)
    with pytest.raises(PoolError, match="aliases"):
        check_nesting([shared, shared], max_items=7)
    check_nesting("text", max_items=0)
    check_nesting(json.loads("[1, 2]"), max_items=2)
