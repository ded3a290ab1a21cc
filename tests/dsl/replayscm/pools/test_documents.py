"""Official files read a record at a time: the problems of the whole document, or its refusal, word for word."""

from __future__ import annotations

import pickle
import random
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import yaml

import calibrant.dsl.records
from calibrant.bench.replayscm.pools.check import count_unused_fields
from calibrant.dsl.errors import PoolError
from calibrant.dsl.records import StoredItems
from calibrant.dsl.replayscm.item import ModelResult, Pool
from calibrant.dsl.replayscm.pools import documents
from calibrant.dsl.replayscm.pools.documents import read_official, read_official_whole
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.yaml_text import load_whole
from tests.fuzz.corruption import CHARACTER_DAMAGE, LINE_DAMAGE
from tests.fuzz.pools import TOKENS
from tests.support.effort import effort
from tests.support.replayscm.records import POOLS, Record, official_file, official_record
from tests.support.shared import shared_file

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
            patched.setattr(documents, "load_yaml", load_whole)
            expected = outcome(read_official_whole, data, keep_results=keep_results)
        for kept in (2000, 1):  # all are kept; all are stored
            with monkeypatch.context() as patched:
                patched.setattr(calibrant.dsl.records, "MAX_CACHED_ITEMS", kept)
                assert outcome(read_official, data, keep_results=keep_results) == expected
    return not isinstance(expected, str)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert require_same(text_in(layout).encode(), monkeypatch)


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
        monkeypatch.setattr(documents, "load_yaml", None)  # which reading in parts does not call
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


def test_results_of_the_sample_are_those_of_the_whole_file() -> None:
    pool = _check_lazy(shared_file(POOLS["Alt-Ordered"]))
    assert [len(problem.results()) for problem in pool.problems] == [9, 9]


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
