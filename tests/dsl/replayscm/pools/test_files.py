"""Pool files: what is written is what is read, and what native files must not say."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.bench.core.registry import benchmark_of
from calibrant.dsl.errors import PoolError
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.disclosure import Blocks, HiddenOrder, HiddenRoots, Ordered
from calibrant.dsl.replayscm.item import Pool, Problem, TaskKind
from calibrant.dsl.replayscm.pools.files import native_lines, read_pool, write_pool
from calibrant.dsl.replayscm.scm import scm
from calibrant.dsl.replayscm.world import Intervention
from tests.support.commands import CHECKOUT, called, jsonl
from tests.support.effort import examples
from tests.support.replayscm.records import (
    HEADER,
    Change,
    Record,
    both,
    check_refused,
    drop,
    native_file,
    native_record,
    official_file,
    official_record,
    put,
    read_text,
)
from tests.support.replayscm.strategies import problems
from tests.support.replayscm.written import HEADER as CLASSROOM_HEADER
from tests.support.replayscm.written import lamp_record

# --- round trips -------------------------------------------------------------------------------------------------


def _read_lines(lines: Sequence[bytes], folder: Path) -> Pool:
    path = folder / "pool.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return read_pool(path)


@given(st.lists(problems(), min_size=1, max_size=3), st.dictionaries(st.text("ab\n\u00e9"), st.integers(0, 9)))
@settings(deadline=None, max_examples=examples(60))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[Problem], metadata: dict[str, int]
) -> None:
    named = [Problem(f"I{i}", problem.task, problem.sealed) for i, problem in enumerate(drawn)]
    pool = Pool("drawn", tuple(named), metadata)
    lines = list(native_lines(pool))
    again = _read_lines(lines, tmp_path_factory.mktemp("pool"))
    assert again == pool
    assert list(native_lines(again)) == lines


def test_the_two_notations_of_one_problem_are_equal(tmp_path: Path) -> None:
    (official,) = read_pool(official_file([official_record()], tmp_path)).problems
    (native,) = read_pool(native_file([native_record()], tmp_path)).problems
    assert official == native
    task, sealed = native.task, native.sealed
    assert (native.id, task.kind) == ("I1", TaskKind.SCM)
    assert task.disclosure == Ordered(("X2", "X1", "X3", "X4"), ("X1", "X2"))
    assert [world.id for world in task.training.worlds] == ["train_00", "train_01", "train_02"]
    assert [world.intervention for world in native.worlds] == [
        Intervention(), Intervention({}, ("X3",)), Intervention({"X1": 0}, ("X3",)), Intervention({"X2": 0})
    ]  # fmt: skip
    assert dict(task.training.columns) == {  # 1110 1001 | 0111 1101 | 0011 0111, the last row first
        "X1": 0b001011, "X2": 0b101101, "X3": 0b110101, "X4": 0b111110
    }  # fmt: skip
    assert (sealed.latent_order, sealed.gold_size, sealed.budget_deltas) == (("X2", "X1", "X3", "X4"), 6, (0, 10, 25))
    assert sealed.gold == scm(["X1", "X2"], {"X3": parse("(and X1 X2)"), "X4": parse("(xor X3 X1)")})
    assert sealed.environments["train_01"] == {"X1": 0.8, "X2": 0.2}
    assert task.num_heldout == len(sealed.heldout.worlds) == 1
    assert task.shares_units is True
    assert (task.grammar.operators, task.grammar.allow_constants) == (("not", "and", "or", "xor", "iff"), False)


# --- the official forms ------------------------------------------------------------------------------------------


def expanded(record: Record) -> Record:
    """Return the record with worlds in the release's expanded form: bits per unit and variable, all else in `extra`."""
    made = copy.deepcopy(record)
    units, variables = made["problem"].pop("panelUnits"), made["problem"]["signature"]["variables"]
    worlds = []
    for world in made["problem"]["worlds"]:
        rows = [
            {"unitId": unit, "values": {v: int(bit) for v, bit in zip(variables, row, strict=True)}}
            for unit, row in zip(units, world["rows"], strict=True)
        ]
        extra = {key: world[key] for key in ("split", "envProfile")} | world["interventionSummary"] | {"rows": rows}
        kept = {key: world[key] for key in ("worldId", "observationMode")}
        interventions = [world.get("intervention", {})]
        worlds.append(
            {**kept, "domain": units, "domainSize": len(units), "interventions": interventions, "extra": extra}
        )
    made["problem"]["worlds"] = worlds
    return made


def older(record: Record) -> Record:
    """Return the same record with interventions told the older way only."""
    made = copy.deepcopy(record)
    for world in made["problem"]["worlds"]:
        summary = world.pop("interventionSummary")
        world.pop("intervention", None)
        constants, targets = summary["InterventionTargetsConstant"], summary["InterventionTargetsAll"]
        world["interventions"] = [{"type": "hard_do", "assignments": constants, "targets": targets}]
    return made


def test_every_form_of_a_record_is_the_same_problem(tmp_path: Path) -> None:
    record = official_record()
    (compact,) = read_pool(official_file([record], tmp_path)).problems
    for form in (expanded, older):
        (other,) = read_pool(official_file([form(record)], tmp_path)).problems
        assert other == compact


@pytest.mark.parametrize(
    ("world", "field"),
    [
        ({"domain": ["u00", "u02"]}, "domain"),
        ({"domain": ["u01", "u00"]}, "domain"),
        ({"domain": ["u00"]}, "domainSize"),
        ({"domainSize": 1}, "domainSize"),
    ],
)
def test_units_that_are_told_twice_are_told_alike(world: dict[str, Any], field: str, tmp_path: Path) -> None:
    record = expanded(official_record())
    record["problem"]["worlds"][1].update(world)
    check_refused(official_file([record], tmp_path), "I1", f"worlds['train_01'].{field}", "units")


@pytest.mark.parametrize("values", [{"X1": 1, "X2": 1, "X3": 1}, {"X1": 1, "X2": 1, "X3": 1, "X4": True}, [1, 1, 1, 0]])
def test_an_expanded_row_has_a_bit_for_every_variable(values: Any, tmp_path: Path) -> None:
    record = expanded(official_record())
    record["problem"]["worlds"][1]["extra"]["rows"][0]["values"] = values
    field = "values" if isinstance(values, list) else "rows"
    words = "expected a mapping" if isinstance(values, list) else "row 0 does not give every variable a bit"
    check_refused(official_file([record], tmp_path), "I1", f"worlds['train_01'].{field}", words)


def _changed(tmp_path: Path, **parameters: Any) -> Problem:
    record = official_record()
    for key, value in parameters.items():
        if value is None:
            del record["problem"]["task"]["parameters"][key]
        else:
            record["problem"]["task"]["parameters"][key] = value
    (problem,) = read_pool(official_file([record], tmp_path)).problems
    return problem


def test_what_a_missing_field_means(tmp_path: Path) -> None:
    """docs/semantics.md, "Official records": Ordered; constants are allowed; splits go by names."""
    assert _changed(tmp_path, scmPromptVariant=None) == _changed(tmp_path)
    assert _changed(tmp_path, allowConstants=None).task.grammar.allow_constants is True
    assert _changed(tmp_path, allowedOperators=None) == _changed(tmp_path)
    assert _changed(tmp_path, maxPredecessorsPerMechanism=None).sealed.max_predecessors is None
    record = official_record()
    for world, name in zip(record["problem"]["worlds"], ("a", "heldout_9", "test_1", "train_aug_0"), strict=True):
        del world["split"]
        world["worldId"] = name
    (problem,) = read_pool(official_file([record], tmp_path)).problems
    assert [world.id for world in problem.task.training.worlds] == ["a", "train_aug_0"]
    assert [world.id for world in problem.sealed.heldout.worlds] == ["heldout_9", "test_1"]


def test_an_order_that_is_not_stated_is_one_of_gold(tmp_path: Path) -> None:
    """Names are against the order: Z causes A, which causes C."""
    record = {
        "id": "x",
        "kind": "CIND_A_SCM",
        "variables": ["A", "C", "Z"],
        "units": ["u0", "u1"],
        "disclosure": {"type": "hidden_order", "roots": ["Z"]},
        "training": [{"id": "w0", "rows": ["000", "111"]}],
        "sealed": {"gold": {"A": "Z", "C": "A"}},
    }
    lines = [{"format": "calibrant-pool", "version": 1, "name": "x"}, record]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (problem,) = read_pool(tmp_path / "x.jsonl").problems
    assert problem.sealed.latent_order == ("Z", "A", "C")


@pytest.mark.parametrize(
    ("variants", "disclosure"),
    [
        ("with_topological_order", Ordered(("X2", "X1", "X3", "X4"), ("X1", "X2"))),
        (
            "partial_topological_order partial_order partial_topo",
            Blocks((("X1", "X2", "X3"), ("X4",)), ("X1", "X2")),  # inside a block the order says nothing
        ),
        (
            "no_topological_order ntopo no_topo unknown_topological_order blind_topological_order",
            HiddenOrder(("X1", "X2", "X3", "X4"), ("X1", "X2")),
        ),
    ],
)
def test_each_variant_has_its_disclosure(variants: str, disclosure: Any, tmp_path: Path) -> None:
    for variant in variants.split():
        layers = [["X3", "X2", "X1"], ["X4"]]
        assert _changed(tmp_path, scmPromptVariant=variant, topologicalLayers=layers).task.disclosure == disclosure


def test_hidden_roots_disclose_their_number_only(tmp_path: Path) -> None:
    record = official_record()
    record["problem"]["task"]["taskName"] = "CIND_A_SCM_ROOT_UNKNOWN"
    record["problem"]["task"]["parameters"]["scmPromptVariant"] = "no_topological_order"
    for count in (None, 2):
        if count:
            record["problem"]["task"]["parameters"]["rootCount"] = count
        (problem,) = read_pool(official_file([record], tmp_path)).problems
        assert problem.task.disclosure == HiddenRoots(("X1", "X2", "X3", "X4"), 2)
        assert (problem.task.kind, problem.setting) == (TaskKind.ROOTS, "Hidden-roots")


# --- files -------------------------------------------------------------------------------------------------------


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    pool = read_pool(native_file([native_record()], tmp_path))
    (tmp_path / "folder").mkdir()
    file = tmp_path / "pool.jsonl"
    for target in (tmp_path / "folder", file / "pool.jsonl", file / "a" / "pool.jsonl"):
        with pytest.raises(PoolError, match="cannot be written"):
            write_pool(pool, target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "pool.jsonl"]


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    with pytest.raises(PoolError, match=r"^missing\.yaml: cannot be read"):
        read_pool(tmp_path / "missing.yaml")
    with pytest.raises(PoolError, match="cannot be read"):
        read_pool(tmp_path)
    (tmp_path / "latin").write_bytes(b"problems: [\xe9]")
    with pytest.raises(PoolError, match="latin: not UTF-8 at byte 11"):
        read_pool(tmp_path / "latin")


def test_a_native_file_may_have_blank_lines_and_any_line_ends(tmp_path: Path) -> None:
    path = native_file([native_record("I1"), native_record("I2")], tmp_path)
    pool = read_pool(path)
    text = path.read_text(encoding="utf-8")
    path.write_text("\n \n" + text.replace("\n", "\r\n\n") + "\n\n", encoding="utf-8", newline="")
    assert read_pool(path) == pool
    assert read_text(HEADER, tmp_path) == Pool("small", ())


# --- What native pool files must not say: all of it is refused with file, instance and field --------------------------
def block(*blocks: list[str]) -> Change:
    return put("disclosure", {"type": "blocks", "blocks": list(blocks), "roots": ["X1", "X2"]})


ALTERNATIVE = put("kind", "CIND_A_SCM_ALT_EXP")
ROOTS = put("kind", "CIND_A_SCM_ROOT_UNKNOWN")
W0, W2 = "training['train_00']", "training['train_02']"

NATIVE: dict[str, tuple[Change, str, str]] = {  # what is wrong: (how, the field that is named, words of the reason)
    "a row is missing": (drop("training.0.rows.1"), f"{W0}.rows", "1 rows for 2 units"),
    "a short row": (put("training.0.rows.1", "100"), f"{W0}.rows", "row 1 is '100'"),
    "a row of other characters": (put("training.0.rows.0", "11x0"), f"{W0}.rows", "row 0 is '11x0'"),
    "a constant that rows contradict": (put("training.2.rows.0", "1011"), f"{W2}.rows", "contradict the clamp X1=0"),
    "a constant that is no bit": (put("training.2.constants.X1", 2), f"{W2}.constants", "X1=2"),
    "a constant of no variable": (put("training.2.constants", {"Q": 0}), W2, "'Q' is not a variable"),
    "a target listed twice": (put("training.0.assigned", ["X3", "X3"]), f"{W0}.assigned", "'X3' is listed twice"),
    "constant and assigned": (put("training.2.assigned", ["X1"]), W2, "X1 both constant and assigned"),
    "two worlds of one id": (put("training.1.id", "train_00"), W0, "a second world"),
    "two units of one id": (put("units", ["u", "u"]), "units", "'u' is listed twice"),
    "own units without rows": (put("training.0.units", ["a"]), f"{W0}.rows", "2 rows for 1 units"),
    "no training world": (put("training", []), "training", "at least one"),
    "a level beyond 1": (put("training.0.environment", {"X1": 1.5}), f"{W0}.environment", "from 0 to 1"),
    "two variables of one name": (put("variables", ["X1", "X2", "X3", "X3"]), "variables", "'X3' is listed twice"),
    "a name that is none": (put("variables", ["X1", "X2", "X3", "X 4"]), "variables", "'X 4' is not a variable name"),
    "too many variables": (put("variables", [f"X{i}" for i in range(61)]), "variables", "61 variables"),
    "an unknown task": (put("kind", "CIND_B"), "kind", "unknown task 'CIND_B'"),
    "hidden roots in another task": (put("disclosure", {"type": "hidden_roots", "root_count": 2}), "kind", "go with"),
    "disclosed roots in Hidden-roots": (ROOTS, "kind", "Ordered"),
    "no reference": (ALTERNATIVE, "reference", "reference SCM"),
    "a reference without the task": (put("reference", {"X3": "X1", "X4": "X1"}), "reference", "reference SCM"),
    "a reference with other roots": (
        both(ALTERNATIVE, put("reference", {"X3": "X1"})), "reference", "leave the roots X1, X2, X4"
    ),
    "no root is left": (
        both(ROOTS, put("disclosure", {"type": "hidden_roots", "root_count": 0})), "disclosure.root_count", "0 roots"
    ),
    "an unknown operator": (put("operators", ["not", "nand"]), "operators", "unknown operator 'nand'"),
    "an order that repeats": (put("disclosure.order.0", "X1"), "disclosure.order", "'X1' is listed twice"),
    "an empty block": (block(["X1", "X2"], [], ["X3", "X4"]), "disclosure.blocks", "a block is empty"),
    "blocks that overlap": (block(["X1", "X2"], ["X2", "X3", "X4"]), "disclosure.blocks", "'X2' is listed twice"),
    "a latent order that is none": (put("sealed.latent_order", ["X1"]), "sealed.latent_order", "does not list"),
    "another latent order": (
        put("sealed.latent_order", ["X1", "X2", "X3", "X4"]), "sealed.latent_order", "differs from the disclosed order"
    ),
    "gold that does not parse": (put("sealed.gold.X3", "(and X1)"), "sealed.gold.X3", "'and' got 1"),
    "gold that mentions itself": (put("sealed.gold.X3", "(and X1 X3)"), "sealed.gold.X3", "'X3' is not allowed"),
    "cyclic gold": (put("sealed.gold.X3", "(and X1 X4)"), "sealed.gold", "X3, X4 mention each other"),
    "gold with other roots": (drop("sealed.gold.X4"), "sealed.gold", "leave the roots X1, X2, X4"),
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
    "an unknown disclosure": (put("disclosure.type", "told"), "told"),
    "no disclosure": (drop("disclosure"), "disclosure"),
    "a bit that is a truth value": (put("training.2.constants.X1", False), "$.training[2].constants"),
    "a list where a text belongs": (put("sealed.gold.X3", ["X1"]), "$.sealed.gold"),
    "not a number": (put("training.0.environment.X1", float("nan")), "NaN"),
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
    pool = jsonl(tmp_path / "mine.jsonl", CLASSROOM_HEADER, lamp_record() | changes)
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
