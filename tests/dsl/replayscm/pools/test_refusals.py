"""What official runtime files must not say to themselves: all of it is refused with file, instance and field."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from calibrant.dsl.errors import PoolError
from calibrant.dsl.replayscm.pools.files import read_pool
from tests.support.replayscm.records import (
    Change,
    both,
    check_refused,
    drop,
    official_file,
    official_record,
    put,
    read_text,
)

P, S, W = "problem.task.parameters", "problem.signature", "problem.worlds"
SUMMARY = f"{W}.1.interventionSummary"
W0, W1, W2 = ("worlds['train_00']", "worlds['train_01']", "worlds['train_02']")
BUILT0, BUILT1, BUILT2 = ("training['train_00']", "training['train_01']", "training['train_02']")
BLOCKS = put(f"{P}.scmPromptVariant", "partial_order")
OLDER = drop(f"{W}.0.interventionSummary")

OFFICIAL: dict[str, tuple[Change, str, str]] = {  # what is wrong: (how, the field that is named, words of the reason)
    "a row without quotes": (put(f"{W}.0.rows.1", 1001), f"{W0}.rows", "row 1 is 1001, not a quoted string"),
    "rows that are no list": (put(f"{W}.0.rows", "1110"), f"{W0}.rows", "expected a list"),
    "no rows": (drop(f"{W}.0.rows"), f"{W0}.rows", "exactly one"),
    "rows twice": (put(f"{W}.0.extra", {"rows": []}), f"{W0}.rows", "exactly one"),
    "a world without id": (drop(f"{W}.1.worldId"), "worldId", "missing"),
    "an unknown field of a world": (put(f"{W}.1.weight", 2), "worlds", "unknown field 'weight'"),
    "an unknown split": (put(f"{W}.1.split", "validation"), f"{W1}.split", "'validation'"),
    "an unknown observation mode": (put(f"{W}.1.observationMode", "partial"), f"{W1}.observationMode", "'partial'"),
    "an unknown mode": (put(f"{SUMMARY}.InterventionMode", "soft"), f"{W1}.InterventionMode", "unknown mode 'soft'"),
    "an unknown field of a summary": (put(f"{SUMMARY}.note", 1), f"{W1}.interventionSummary", "unknown field 'note'"),
    "a window of too many digits": (
        put(f"{P}.maxPredecessorsPerMechanism", 1 << 90), "maxPredecessorsPerMechanism", "of 91 bits; fewer than 64"
    ),
    "a slack of too many digits": (put(f"{P}.budgetDeltas", [0, 1 << 90]), "budgetDeltas", "an integer of 64 bits"),
    "no intervention with targets": (
        put(f"{SUMMARY}.InterventionMode", "none"), f"{W1}.InterventionMode", "does not go with targets X3"
    ),
    "a target that is neither": (
        put(f"{SUMMARY}.InterventionTargetsAll", ["X3", "X4"]), f"{W1}.InterventionTargetsAll", "constant ones plus"
    ),
    "a constant that is not listed": (
        put(f"{W}.2.interventionSummary.InterventionTargetsAll", ["X3"]), f"{W2}.InterventionTargetsAll", "constant"
    ),
    "a target of no variable": (
        both(put(f"{SUMMARY}.InterventionTargetsAll", ["Q"]), put(f"{SUMMARY}.InterventionTargetsAssigned", ["Q"])),
        f"{BUILT1}.assigned", "'Q' is not a variable",
    ),
    "a constant that is no bit": (
        put(f"{W}.2.interventionSummary.InterventionTargetsConstant", {"X1": "0"}),
        f"{W2}.InterventionTargetsConstant", "'X1': '0'",
    ),
    "two older interventions": (both(OLDER, put(f"{W}.0.interventions", [{}, {}])), f"{W0}.interventions", "2 int"),
    "an older intervention of another type": (
        both(OLDER, put(f"{W}.0.interventions", [{"type": "soft_do"}])), f"{W0}.intervention.type", "'soft_do'"
    ),
    "an older intervention that is no mapping": (
        both(OLDER, put(f"{W}.0.intervention", "do(X1=1)")), f"{W0}.intervention", "expected a mapping"
    ),
    "a level that is not a number": (put(f"{W}.0.envProfile.X1", float("nan")), f"{W0}.envProfile", "from 0 to 1"),
    "units that are no texts": (put("problem.panelUnits", [0, 1]), "panelUnits", "expected names, found 0"),
    "units that are no list": (put("problem.panelUnits", None), "panelUnits", "expected a list"),
    "own units that are no list": (put(f"{W}.0.domain", "ab"), f"{W0}.domain", "expected a list"),
    "a number of units that is wrong": (put(f"{W}.0.domainSize", 3), f"{W0}.domainSize", "differs from the 2 units"),
    "worlds that are no list": (put("problem.worlds", {}), "worlds", "expected a list"),
    "a world that is no mapping": (put(f"{W}.0", "train_00"), "worlds", "expected a mapping"),
    "a variable that repeats": (
        both(put(f"{S}.variables.3", "X3"), put(f"{P}.variables.3", "X3"), put(f"{P}.endogenousVariables", ["X3"])),
        "variables", "'X3' is listed twice",
    ),
    "other variables": (put(f"{P}.variables.3", "X5"), "task.parameters.variables", "in X4, X5"),
    "variables that are no names": (put(f"{S}.variables.3", 4), "variables", "expected names, found 4"),
    "domains that are not binary": (put(f"{S}.domains", {"X1": [0, 1, 2]}), "domains", "only binary"),
    "a root that is endogenous": (
        put(f"{P}.endogenousVariables", ["X2", "X3", "X4"]), "rootVariables", "do not partition"
    ),
    "an unknown variant": (put(f"{P}.scmPromptVariant", "secret"), "scmPromptVariant", "unknown variant 'secret'"),
    "no task": (drop("problem.task.taskName"), "taskName", "missing"),
    "operators that are no list": (put(f"{P}.allowedOperators", "not"), "allowedOperators", "expected a list"),
    "constants neither allowed nor not": (put(f"{P}.allowConstants", 0), "allowConstants", "true or false"),
    "slacks that are no numbers": (put(f"{P}.budgetDeltas", ["0"]), "budgetDeltas", "expected integers"),
    "no blocks": (BLOCKS, "topologicalLayers", "missing"),
    "blocks that are no lists": (
        both(BLOCKS, put(f"{P}.topologicalLayers", ["X1"])), "topologicalLayers", "expected lists"
    ),
    "gold that is no mapping": (put("problem.goldAnswer.scm.mechanisms", ["X3"]), "mechanisms", "expected a mapping"),
    "gold of a size that is a text": (put("problem.goldAnswer.scm.totalAst", "6"), "totalAst", "expected an integer"),
    "results that are no mapping": (put("modelResults", ["m"]), "modelResults", "expected a mapping"),
}  # fmt: skip


@pytest.mark.parametrize("what", OFFICIAL)
def test_an_official_record_is_refused(what: str, tmp_path: Path) -> None:
    change, field, words = OFFICIAL[what]
    record = official_record("I2")
    change(record)
    check_refused(official_file([official_record("I1"), record], tmp_path), "I2", field, words)


@pytest.mark.parametrize(
    ("name", "shown"),
    [(None, "record 1"), (7, "record 1"), ("", ""), ("two\nlines", "two\\nlines"), ("\x1b[2J", "\\x1b[2J")],
)
def test_a_record_without_a_proper_id_is_named_all_the_same(name: Any, shown: str, tmp_path: Path) -> None:
    record = official_record()
    record["problem"]["instanceId"] = name
    record["problem"]["worlds"][0]["split"] = "?"
    path = official_file([official_record(), record], tmp_path)
    with pytest.raises(Exception, match="split") as caught:
        read_pool(path)
    parts = [path.name, *([shown] if shown else []), "worlds['train_00'].split", "split '?'; known: train, heldout"]
    assert str(caught.value) == ": ".join(parts)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no pool: it is empty; expected JSON lines with a header, or YAML in the official format"),
        ("just a text", "no pool: it is 'just a text'; expected JSON lines"),
        ("[1, 2]", "no pool: it is .1, 2.; expected JSON lines"),
        ("metadata: {}", "missing"),
        ("problems: 3", "expected a list"),
        ("problems:\n- 3", "expected a mapping, found 3"),
        ("problems:\n- {}", "missing"),
        ("problems: []\nproblems: []", "a key occurs twice"),
        ("problems: [", "not readable YAML"),
        ("problems: []\nmetadata: 3", "expected a mapping"),
    ],
)
def test_a_text_that_is_no_pool_is_refused(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=words) as caught:
        read_text(text, tmp_path)
    assert str(caught.value).startswith("pool.txt: ")


def test_a_key_that_occurs_twice_in_a_record_is_refused(tmp_path: Path) -> None:
    path = official_file([official_record()], tmp_path)
    text = path.read_text(encoding="utf-8")
    doubled, number = re.subn(r"( *)totalAst: 6\n", r"\g<0>\1totalAst: 9\n", text)
    assert number == 1
    with pytest.raises(Exception, match="a key occurs twice below line"):
        read_text(doubled, tmp_path)


def test_a_window_of_a_million_digits_is_one_line(tmp_path: Path) -> None:
    """Hexadecimal YAML can say what Python refuses to print."""
    record = official_record()
    put(f"{P}.maxPredecessorsPerMechanism", 987654)(record)
    path = official_file([record], tmp_path)
    text = path.read_text(encoding="utf-8")
    assert text.count("987654") == 1
    path.write_text(text.replace("987654", f"0x{'f' * 1_000_000}"), encoding="utf-8")
    with pytest.raises(PoolError, match="maxPredecessorsPerMechanism: an integer of 4000000 bits"):
        read_pool(path)
