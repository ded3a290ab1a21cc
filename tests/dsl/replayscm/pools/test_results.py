"""Model results embedded in pool files: cut out as text, parsed when asked for, and the same as if parsed at once."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml

from calibrant.dsl.errors import PoolError
from calibrant.dsl.replayscm.item import ModelResult, Pool
from calibrant.dsl.replayscm.pools.files import read_pool
from tests.support.replayscm.official_records import POOLS
from tests.support.replayscm.pool_texts import Record, official_file, official_record
from tests.support.shared import shared_file


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
