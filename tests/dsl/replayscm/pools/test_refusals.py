"""What native pool files must not say: all of it is refused with file, instance and field."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.core.registry import benchmark_of
from calibrant.dsl.errors import PoolError
from calibrant.dsl.replayscm.pools.files import read_pool
from tests.support.commands import CHECKOUT, called, jsonl
from tests.support.replayscm.records import (
    Change,
    both,
    check_refused,
    drop,
    native_file,
    native_record,
    official_file,
    official_record,
    put,
)
from tests.support.replayscm.written import HEADER, lamp_record


def block(*blocks: list[str]) -> Change:
    return put("disclosure", {"type": "blocks", "blocks": list(blocks), "roots": ["X1", "X2"]})


ALTERNATIVE = put("kind", "CIND_A_SCM_ALT_EXP")
ROOTS = put("kind", "CIND_A_SCM_ROOT_UNKNOWN")
W0, W2 = "training['train_00']", "training['train_02']"

NATIVE: dict[str, tuple[Change, str, str]] = {  # what is wrong: (how, the field that is named, words of the reason)
    "a row is missing": (drop("training.0.rows.1"), f"{W0}.rows", "1 rows for 2 units"),
    "a row too many": (put("training.0.rows", ["1110"] * 3), f"{W0}.rows", "3 rows for 2 units"),
    "a short row": (put("training.0.rows.1", "100"), f"{W0}.rows", "row 1 is '100'"),
    "a long row": (put("training.0.rows.1", "10010"), f"{W0}.rows", "row 1 is '10010'"),
    "a row of other characters": (put("training.0.rows.0", "11x0"), f"{W0}.rows", "row 0 is '11x0'"),
    "a row of other digits": (put("training.0.rows.0", "11\u06610"), f"{W0}.rows", "row 0 is"),
    "rows of a held-out world": (put("sealed.heldout.0.rows.0", "2000"), "sealed.heldout['heldout_00'].rows", "'2000'"),
    "a constant that rows contradict": (put("training.2.rows.0", "1011"), f"{W2}.rows", "contradict the clamp X1=0"),
    "a constant that is no bit": (put("training.2.constants.X1", 2), f"{W2}.constants", "X1=2"),
    "a negative constant": (put("training.2.constants.X1", -1), f"{W2}.constants", "X1=-1"),
    "a constant of no variable": (put("training.2.constants", {"Q": 0}), W2, "'Q' is not a variable"),
    "an assigned stranger": (put("training.0.assigned", ["Q"]), f"{W0}.assigned", "'Q' is not a variable"),
    "a target listed twice": (put("training.0.assigned", ["X3", "X3"]), f"{W0}.assigned", "'X3' is listed twice"),
    "constant and assigned": (put("training.2.assigned", ["X1"]), W2, "X1 both constant and assigned"),
    "two worlds of one id": (put("training.1.id", "train_00"), W0, "a second world"),
    "a training world's id held out": (
        put("sealed.heldout.0.id", "train_00"), "sealed.heldout['train_00']", "a second world"
    ),
    "two units of one id": (put("units", ["u", "u"]), "units", "'u' is listed twice"),
    "two own units of one id": (put("training.0.units", ["a", "a"]), f"{W0}.units", "'a' is listed twice"),
    "own units without rows": (put("training.0.units", ["a"]), f"{W0}.rows", "2 rows for 1 units"),
    "no training world": (put("training", []), "training", "at least one"),
    "a level beyond 1": (put("training.0.environment", {"X1": 1.5}), f"{W0}.environment", "from 0 to 1"),
    "two variables of one name": (put("variables", ["X1", "X2", "X3", "X3"]), "variables", "'X3' is listed twice"),
    "a name that is none": (put("variables", ["X1", "X2", "X3", "X 4"]), "variables", "'X 4' is not a variable name"),
    "no variables": (put("variables", []), "variables", "0 variables"),
    "too many variables": (put("variables", [f"X{i}" for i in range(61)]), "variables", "61 variables"),
    "an unknown task": (put("kind", "CIND_B"), "kind", "unknown task 'CIND_B'"),
    "hidden roots in another task": (put("disclosure", {"type": "hidden_roots", "root_count": 2}), "kind", "go with"),
    "disclosed roots in Hidden-roots": (ROOTS, "kind", "Ordered"),
    "no reference": (ALTERNATIVE, "reference", "reference SCM"),
    "a reference without the task": (put("reference", {"X3": "X1", "X4": "X1"}), "reference", "reference SCM"),
    "a reference with other roots": (
        both(ALTERNATIVE, put("reference", {"X3": "X1"})), "reference", "leave the roots X1, X2, X4"
    ),
    "a reference that does not parse": (
        both(ALTERNATIVE, put("reference", {"X3": "(X1", "X4": "X1"})), "reference.X3", "missing ')'"
    ),
    "no root is left": (
        both(ROOTS, put("disclosure", {"type": "hidden_roots", "root_count": 0})), "disclosure.root_count", "0 roots"
    ),
    "more roots than variables": (
        both(ROOTS, put("disclosure", {"type": "hidden_roots", "root_count": 5})), "disclosure.root_count", "5 roots"
    ),
    "an unknown operator": (put("operators", ["not", "nand"]), "operators", "unknown operator 'nand'"),
    "an operator listed twice": (put("operators", ["not", "not"]), "operators", "'not' is listed twice"),
    "a root of no variable": (put("disclosure.roots", ["X1", "Q"]), "disclosure.roots", "'Q' is not a variable"),
    "a root listed twice": (put("disclosure.roots", ["X1", "X1"]), "disclosure.roots", "'X1' is listed twice"),
    "an order that leaves out": (drop("disclosure.order.0"), "disclosure.order", "does not list X2"),
    "an order that repeats": (put("disclosure.order.0", "X1"), "disclosure.order", "'X1' is listed twice"),
    "an order of strangers": (put("disclosure.order.0", "Q"), "disclosure.order", "'Q' is not a variable"),
    "an empty block": (block(["X1", "X2"], [], ["X3", "X4"]), "disclosure.blocks", "a block is empty"),
    "blocks that overlap": (block(["X1", "X2"], ["X2", "X3", "X4"]), "disclosure.blocks", "'X2' is listed twice"),
    "blocks that leave out": (block(["X1", "X2"], ["X3"]), "disclosure.blocks", "does not list X4"),
    "a latent order that is none": (put("sealed.latent_order", ["X1"]), "sealed.latent_order", "does not list"),
    "another latent order": (
        put("sealed.latent_order", ["X1", "X2", "X3", "X4"]), "sealed.latent_order", "differs from the disclosed order"
    ),
    "gold that does not parse": (put("sealed.gold.X3", "(and X1)"), "sealed.gold.X3", "'and' got 1"),
    "gold with a stranger": (put("sealed.gold.X3", "Q"), "sealed.gold.X3", "'Q' is not allowed"),
    "gold of a stranger": (put("sealed.gold.Q", "X1"), "sealed.gold", "'Q' is not a variable"),
    "gold that mentions itself": (put("sealed.gold.X3", "(and X1 X3)"), "sealed.gold.X3", "'X3' is not allowed"),
    "cyclic gold": (put("sealed.gold.X3", "(and X1 X4)"), "sealed.gold", "X3, X4 mention each other"),
    "gold with other roots": (drop("sealed.gold.X4"), "sealed.gold", "leave the roots X1, X2, X4"),
    "gold that is a root": (put("sealed.gold.X1", "X2"), "sealed.gold", "leave the roots X2"),
    "a blank id": (put("id", " "), "id", "needs an id"),
}  # fmt: skip


@pytest.mark.parametrize("what", NATIVE)
def test_a_native_record_is_refused(what: str, tmp_path: Path) -> None:
    change, field, words = NATIVE[what]
    record = native_record("I2")
    change(record)
    check_refused(native_file([native_record("I1"), record], tmp_path), record["id"], field, words)


SCHEMA: dict[str, tuple[Change, str]] = {
    "an unknown field": (put("note", "x"), "note"),
    "an unknown field of a world": (put("training.0.weight", 1), "$.training[0]"),
    "an unknown field of the sealed part": (put("sealed.hint", 1), "$.sealed"),
    "an unknown field of the disclosure": (put("disclosure.hint", 1), "$.disclosure"),
    "an unknown disclosure": (put("disclosure.type", "told"), "told"),
    "no disclosure": (drop("disclosure"), "disclosure"),
    "rows that are numbers": (put("training.0.rows.1", 1001), "$.training[0].rows"),
    "a bit that is a truth value": (put("training.2.constants.X1", False), "$.training[2].constants"),
    "a bit that is a fraction": (put("training.2.constants.X1", 0.5), "$.training[2].constants"),
    "a count that is a text": (put("sealed.gold_size", "6"), "$.sealed.gold_size"),
    "a list where a text belongs": (put("sealed.gold.X3", ["X1"]), "$.sealed.gold"),
    "not a number": (put("training.0.environment.X1", float("nan")), "NaN"),
    "an infinite level": (put("training.0.environment.X1", 1e999), "Infinity"),
    "half a character": (put("id", "\ud800"), "surrogates"),
}


@pytest.mark.parametrize("what", SCHEMA)
def test_a_line_outside_the_schema_is_refused_with_its_number(what: str, tmp_path: Path) -> None:
    change, words = SCHEMA[what]
    record = native_record("I2")
    change(record)
    path = native_file([native_record(), record], tmp_path)
    check_refused(path, "I2", "line 3", words)


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ('{"format": "other", "version": 1}', "format", "'other' version 1"),
        ('{"format": "calibrant-pool", "version": 2}', "format", "version 2"),
        ('{"format": "calibrant-pool"}', "line 1", "version"),
        ('{"format": "calibrant-pool", "version": 1, "version": 1}', "line 1", "'version' occurs twice"),
        ('{"format": "calibrant-pool", "version": 1, "made": 1}', "line 1", "made"),
        ('{"format": "calibrant-pool", "version": 1}\n[]', "line 2", "array"),
        ('{"format": "calibrant-pool", "version": 1}\n\n{"id": "x"', "line 3", "delimiter"),
        ('{"format": "calibrant-pool", "version": 1}\n{"id": "x", "id": "x"}', "line 2", "'id' occurs twice"),
    ],
)
def test_a_line_that_is_no_record_is_refused(text: str, field: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "pool.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PoolError) as caught:
        read_pool(path)
    assert (caught.value.file, caught.value.field) == (path.name, field)
    assert words in caught.value.problem


def test_a_second_instance_of_an_id_is_refused(tmp_path: Path) -> None:
    for path in (
        native_file([native_record(), native_record()], tmp_path),
        official_file([official_record(), official_record()], tmp_path),
    ):
        check_refused(path, "I1", "id", "a second instance")


def test_every_case_changes_a_record_that_can_be_read(tmp_path: Path) -> None:
    assert len(read_pool(native_file([native_record()], tmp_path))) == 1
    changes = {what: case[0] for what, case in NATIVE.items()} | {what: case[0] for what, case in SCHEMA.items()}
    for what, change in changes.items():
        record = native_record()
        change(record)
        assert json.dumps(record) != json.dumps(native_record()), what


# --- Refused pools say which item it is, what is allowed there, and what to do; the documented items are read ---------


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"sealed": {"gold": {"X3": {"a": 1}}}}, ("'lamp'", "line 2", "prefix form", '{"X3": "(and X1 X2)"}')),
        ({"sealed": {"gold": {"X3": "X1 and X2", "X4": "X3"}}}, ("lamp", "sealed.gold.X3", "such as (and X1 X2)")),
        ({"sealed": {"heldout": ["000"]}}, ("'lamp'", '"rows": ["000", "111"]')),
        ({"disclosure": {"type": "hidden-order", "roots": []}}, ("ordered, blocks, hidden_order, hidden_roots",)),
        ({"knd": "x"}, ("unknown field `knd`", "did you mean 'kind'?")),
    ],
)
def test_a_refusal_names_the_item_and_what_is_allowed(
    changes: dict[str, Any], parts: tuple[str, ...], tmp_path: Path
) -> None:
    pool = jsonl(tmp_path / "mine.jsonl", HEADER, lamp_record() | changes)
    with pytest.raises(PoolError) as refused:
        read_pool(pool)
    assert all(part in str(refused.value) for part in parts), refused.value


def test_a_pool_without_a_header_is_told_to_add_one(tmp_path: Path) -> None:
    with pytest.raises(PoolError, match=r'begins with a header: .*"format": "calibrant-pool", "version": 1'):
        benchmark_of(jsonl(tmp_path / "mine.jsonl", lamp_record()))


def test_documented_items_are_pools_whose_gold_replays(tmp_path: Path) -> None:
    text = (CHECKOUT / "docs" / "pools.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```json\n(.*?)```", text, re.S)
    assert len(blocks) == 3
    for block in blocks:
        (tmp_path / "documented.jsonl").write_text(block, encoding="utf-8")
        done = called("pool", "check", tmp_path / "documented.jsonl")
        assert (done.returncode, done.stderr) == (0, "")
    assert '"gold"' in blocks[1]
    assert '"heldout"' in blocks[1]
