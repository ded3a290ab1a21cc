"""Hostile programs and replies: a verdict or one line, and nothing outside the interpreter is touched."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from calibrant.dsl.causim.bundle import load_source, module_text
from calibrant.dsl.causim.language.driver import statements
from calibrant.dsl.causim.language.randomness import Unsupported
from tests.support.causim.vectors import bundles

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
