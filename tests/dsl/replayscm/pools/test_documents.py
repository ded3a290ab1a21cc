"""Official files read a record at a time: the problems of the whole document, or its refusal, word for word."""

from __future__ import annotations

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
from calibrant.dsl.replayscm.item import Pool
from calibrant.dsl.replayscm.pools import documents
from calibrant.dsl.replayscm.pools.documents import read_official, read_official_whole
from calibrant.dsl.yaml_text import load_whole
from tests.fuzz.corruption import CHARACTER_DAMAGE, LINE_DAMAGE
from tests.fuzz.pools import TOKENS
from tests.support.effort import effort
from tests.support.replayscm.pool_texts import official_record
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
