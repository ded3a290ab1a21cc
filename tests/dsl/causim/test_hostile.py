"""Hostile programs and replies: a verdict or one line, and nothing outside the interpreter is touched."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from calibrant.dsl.causim.bundle import load_source, module_text
from calibrant.dsl.causim.language import execution_limits as work
from calibrant.dsl.causim.language.driver import statements
from calibrant.dsl.causim.language.randomness import Unsupported
from calibrant.dsl.causim.model import ModelError
from tests.support.causim.bombs import BOMBS, chain, wide
from tests.support.causim.models import bundles
from tests.support.effort import effort

CHECKOUT = Path(__file__).resolve().parents[3]


def test_under_an_audit_hook_no_import_file_socket_process_or_execution_is_seen() -> None:
    """In a fresh interpreter, because a hook cannot be taken back; `campaign` of 100,000 is run by hand."""
    command = [sys.executable, "-W", "error", "-m", "tests.support.causim.hostile_programs", "1500", "7"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["touched"] == []
    assert found["loaded"] + found["refused"] == found["programs"] == 1500
    assert min(found["loaded"], found["refused"], found["answered"]) > 10


QUOTE = '"' * 3


@pytest.mark.parametrize(
    "source",
    [
        QUOTE + f"\\{QUOTE}" * 40_000,
        QUOTE * 60_001,
        "(" * 199_000,
        "'" * 199_001,
        "\\\n" * 90_000,
        "x\n" * 90_000,
        "def f():\n" + " return 1\n" * 19_000,
        "if 1:\n pass\nel" + "if 1:\n pass\nel" * 10_000,
        "x = " + "[" * 199_000,
        "#" * 199_000,
        "\u0131" * 90_000,
        "\x00",
        "a" * 200_001,
    ],
)
def test_large_sources_are_settled_soon(source: str) -> None:
    started = time.process_time()
    with pytest.raises(Unsupported) as refusal:
        load_source(source)
    assert str(refusal.value).isprintable()
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "source",
    [
        'def f():\n    x = """a\ndef g():\n    b"""\n    return x\n\n# note\ndef h(\n    a,\n):\n    return (a,\nb)\n',
        "x = 'a' ; y = 2\nz = \\\n3\n",
        'import random\r\n\r\ndef f():\r\n\treturn "#"  # a "quote\r\n',
        "\ufeffdef f():\n    return 'it''s' + \"(\"\n\n\n",
        "def \u00e9(): return 1\n",
        "",
    ],
)
def test_modules_parse_to_what_python_parses_them_to(source: str) -> None:
    expected = ast.parse(source.removeprefix("\ufeff")).body
    assert [ast.dump(node) for node in statements(source)] == [ast.dump(node) for node in expected]


def test_the_modules_of_the_vectors_parse_to_what_python_parses_them_to() -> None:
    for bundle in bundles().values():
        text = module_text(bundle)
        assert [ast.dump(node) for node in statements(text)] == [ast.dump(node) for node in ast.parse(text).body]


# --- Programs that ask for too much: one line within seconds and a gigabyte, whatever part of them it is --------------
WORK = effort(work.MAX_WORK // 5, work.MAX_WORK)
"""Steps that a program may take: a fifth, which a bomb reaches all the same, and in a soak what holds for users."""

MAX_SECONDS = 5  # where a program may take all its steps, and of fewer the same share
MUST_BE_REFUSED = (
    "float in range", "string in range", "slices list held", "string slices held", "wide tables", "wide tables 2",
    "sampler 65536", "growing domains", "coins 3000", "sample 100", "thresholds", "thresholds if", "loop of coins",
    "sum range", "power", "set copies", "dict copies", "nested comp", "state explosion", "support of long strings",
)  # fmt: skip


LOADED = sorted({*MUST_BE_REFUSED, *list(BOMBS)[:: effort(3, 1)]}, key=list(BOMBS).index)
"""A third of the programs, and those that took most before they were refused; in a soak all of them."""


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Any]:
    """Return the outcome of every program, in a process of its own with a limit on its memory."""
    # A process begins with the peak of the one that starts it, 1.1 GB in a long run of tests: a shell between them.
    shell = ["/bin/sh", "-c", '"$@"; exit $?', "sh"]
    command = [*shell, sys.executable, "-W", "error", "-m", "tests.support.causim.bombs", f"--work={WORK}", *LOADED]
    environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PATH": ""}
    done = subprocess.run(
        command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines.pop()["peak"] < 1 << 30
    return {line["name"]: line for line in lines}


def test_there_are_bombs_of_every_kind(outcomes: dict[str, Any]) -> None:
    assert list(outcomes) == LOADED
    assert set(BOMBS) >= {*LOADED, *MUST_BE_REFUSED}
    assert len(BOMBS) >= 60


@pytest.mark.soak
@pytest.mark.parametrize("name", LOADED)
def test_a_bomb_is_refused_in_one_line_or_harmless(name: str, outcomes: dict[str, Any]) -> None:
    outcome, seconds = outcomes[name]["outcome"], outcomes[name]["seconds"]
    assert outcome.startswith(("refused: ", "loaded ")), outcome
    assert outcome.isprintable()
    assert "MemoryError" not in outcome
    assert seconds < MAX_SECONDS * outcomes[name]["steps"] / work.MAX_WORK
    if name in MUST_BE_REFUSED:
        assert outcome.startswith("refused: ")


def test_the_budget_is_of_the_whole_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes that are read for themselves are refused together."""
    few, many = (chain(n, "return random.choice(range(60))", "return u % 2", "return (p + u) % 2") for n in (2, 40))
    monkeypatch.setattr(work, "MAX_WORK", 40_000)
    assert len(load_source(few)) == 2
    with pytest.raises(Unsupported, match="reading the program takes more than 40000 steps"):
        load_source(many)


def test_tables_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (wide(2, n, "return random.choice(range(50))", "return 1 if p0 == p1 and u else 0") for n in (1, 2))
    monkeypatch.setattr(work, "MAX_ENTRIES", 8_000)  # a child's table has 5,000
    assert len(load_source(one)) == 3
    with pytest.raises(Unsupported, match="8000 combinations of arguments together"):
        load_source(two)


def test_each_intervention_has_the_budget_again_and_is_refused_beyond_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values outside the domain take tables of their own, of which no number adds up."""
    slow = "n = 0\nfor i in range(p if p > 1 else 0):\n    n += 1\nreturn (n + u) % 2"
    model = load_source(chain(3, "return random.choice([0, 1])", "return u", slow))
    monkeypatch.setattr(work, "MAX_WORK", 10_000)
    for value in range(2, 60):
        assert len(model.under({"N0": str(value)})) == 3
    with pytest.raises(ModelError, match="steps"):
        model.under({"N0": "9000"})
