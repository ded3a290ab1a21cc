"""Files made to hurt: nesting, aliases, numbers without end. Each is refused in one line, and soon."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from calibrant.dsl.errors import PoolError
from calibrant.dsl.parse_limits import MAX_DEPTH, check_nesting
from calibrant.dsl.replayscm.item import Pool
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from tests.support.commands import CHECKOUT
from tests.support.replayscm.records import (
    HEADER,
    native_file,
    native_record,
    official_file,
    official_record,
    put,
    read_text,
)

DEEP = 100_000
LAUGHS = "l0: &l0 [x, x]\n" + "".join(f"l{i}: &l{i} [*l{i - 1}, *l{i - 1}]\n" for i in range(1, 60))

HOSTILE = {
    "open brackets": "problems: " + "[" * DEEP,
    "brackets": "problems: " + "[" * DEEP + "]" * DEEP,
    "braces": "problems: " + "{a: " * DEEP + "}" * DEEP,
    "brackets that quoted ones seem to close": "problems: " + "[']', " * DEEP + "]" * DEEP,
    "brackets after a text that seems to close them": f"a: '{']' * DEEP}'\nproblems: " + "[" * DEEP + "]" * DEEP,
    "braces that begin the file": "{" * DEEP,
    "sequences in one line": "- " * DEEP + "x",
    "sequences in one line, tabs between": "-\t" * DEEP + "x",
    "sequences in the line after a mark": "\ufeff" + "- " * DEEP + "x",
    "sequences after another line break": "a: b\u2028" + "- " * DEEP + "x",
    "keys in one line": "? " * DEEP + "x",
    "keys and sequences": "? - " * DEEP + "x",
    "blocks in blocks": "".join(" " * i + "a:\n" for i in range(1_500)),
    "a list of itself": "problems: &a [*a]",
    "a mapping of itself": "problems: &a\n  worlds: *a",
    "billion laughs": LAUGHS + "problems: *l59",
    "billion laughs elsewhere": LAUGHS + "problems: []",
    "a tagged number without digits": "problems: !!int ''",
    "a tagged fraction without digits": "problems: !!float ''",
    "a tagged truth value": "problems: !!bool maybe",
    "a tagged time": "problems: !!timestamp now",
    "a tagged object": "problems: !!python/object/apply:os.getcwd []",
    "a date that is none": "problems: 2024-13-45",
    "a key that is a list": "problems: {[a]: b}",
    "a mark without name": "problems: *",
    "a null character": "problems: \0",
    "a number without end": "problems: " + "9" * DEEP,
    "nested lists of a native file": HEADER + "\n" + "[" * DEEP,
    "nested objects of a native file": HEADER + "\n" + '{"id":' * DEEP,
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


PROGRAM = """
import sys
from calibrant.dsl.errors import PoolError
from calibrant.dsl.replayscm.pools.files import read_pool
try:
    read_pool(sys.argv[1])
except PoolError:
    print("refused")
"""


@pytest.mark.parametrize(
    "what", ["sequences in one line", "keys and sequences", "brackets that quoted ones seem to close"]
)
def test_no_nesting_ends_the_interpreter(what: str, tmp_path: Path) -> None:
    """Depth is checked before libyaml, which recurses in C: a segmentation fault would end this process too."""
    path = tmp_path / "pool.yaml"
    path.write_text(HOSTILE[what], encoding="utf-8")
    command = [sys.executable, "-c", PROGRAM, str(path)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "refused\n")


FIELDS = [
    "modelResults",
    "problemDescription.seed",
    "problemDescription",
    "subslice",
    "problem.instanceId",
    "problem.panelUnits",
    "problem.panelUnits.0",
    "problem.worlds",
    "problem.worlds.0",
    "problem.worlds.0.worldId",
    "problem.worlds.0.split",
    "problem.worlds.0.rows",
    "problem.worlds.0.rows.0",
    "problem.worlds.0.domain",
    "problem.worlds.0.domainSize",
    "problem.worlds.0.envProfile.X1",
    "problem.worlds.0.interventionSummary.InterventionMode",
    "problem.worlds.2.interventionSummary.InterventionTargetsConstant.X1",
    "problem.signature.domains",
    "problem.signature.variables.0",
    "problem.task.taskName",
    "problem.task.parameters.scmPromptVariant",
    "problem.task.parameters.allowConstants",
    "problem.task.parameters.allowedOperators.0",
    "problem.task.parameters.difficulty",
    "problem.task.parameters.rootVariables.0",
    "problem.task.parameters.maxPredecessorsPerMechanism",
    "problem.goldAnswer.scm.totalAst",
    "problem.goldAnswer.scm.mechanisms.X3",
]


ENDLESS = "0x" + "f" * 5_000  # hexadecimal digits are read; the interpreter refuses to write so many decimal ones


@pytest.mark.parametrize("value", [ENDLESS, ".nan", "~", "[]", "{}", "[[]]", "2001-01-01", "!!set {a}"])
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


@pytest.mark.parametrize(("depth", "fits"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False)])
def test_the_depth_that_is_read(depth: int, fits: bool) -> None:
    value: Any = []
    for number in range(depth - 1):
        value = [value] if number % 2 else {"a": value, "b": 1}
    if fits:
        check_nesting(value, max_items=10_000)
        return
    with pytest.raises(PoolError, match="nested more than"):
        check_nesting(value, max_items=10_000)


def test_shared_parts_count_wherever_they_occur() -> None:
    shared = [1, 2, 3]
    check_nesting([shared, shared], max_items=8)
    with pytest.raises(PoolError, match="aliases"):
        check_nesting([shared, shared], max_items=7)
    check_nesting("text", max_items=0)
    check_nesting(json.loads("[1, 2]"), max_items=2)
