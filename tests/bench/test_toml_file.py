"""TOML files: what is refused before it is parsed, in which time and memory."""

from __future__ import annotations

import time
import tomllib
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calibrant.bench.play.study.config import StudyFile
from calibrant.bench.play.study.pages import QuestionPage
from calibrant.bench.suites.specification import SuiteSpec
from calibrant.bench.suites.submissions import Card
from calibrant.bench.toml_file import MAX_TOML_DEPTH, read_toml
from calibrant.dsl.errors import CalibrantError


class AnyTable(msgspec.Struct):
    a: Any = None
    b: Any = None


def dotted(parts: int, joint: str = ".", part: str = "a") -> str:
    return joint.join([part] * parts)


BOMBS = {
    "dotted key": f"{dotted(32_000)} = 1\n",
    "spaces and quotes": dotted(9_000, " \t. ", '"a"') + " = 1\n",
    "literal quotes": dotted(9_000, ".", "'a'") + " = 1\n",
    "header": f"[{dotted(32_000)}]\n",
    "header of a list": f"[[{dotted(32_000)}]]\n",
    "key of an inline table": f"a = {{ {dotted(32_000)} = 1 }}\n",
    "key after a text with quotes": f'b = """a "" b""""" \n{dotted(32_000)} = 1\n',
    "key after a text with an escape": f'b = "\\""\n{dotted(32_000)} = 1\n',
    "lists": "a = " + "[" * 32_000 + "]" * 32_000 + "\n",
    "tables": "a = " + "{ a = " * 9_000 + "1" + "}" * 9_000 + "\n",
    "unclosed texts": 'a = """' + '\\"""' * 16_000,
    "unclosed lines": 'a = "' + '\\"' * 32_000,
}


@pytest.mark.parametrize("kind", [SuiteSpec, Card, StudyFile, QuestionPage])
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_file_that_would_take_gigabytes_is_refused_at_once(bomb: str, kind: type, tmp_path: Path) -> None:
    file = tmp_path / "suite.toml"
    file.write_text(BOMBS[bomb], encoding="utf-8")
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(CalibrantError, match=r"^suite\.toml: (line [12]: |not TOML: )"):
            read_toml(file, kind)
        assert time.process_time() - start < 1  # 23 s as it was, and 4 GB
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_a_number_of_too_many_digits_is_a_line_for_readers(tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text(f"a = {'1_' * 20_000}1\n", encoding="utf-8")
    with pytest.raises(CalibrantError, match=r"^suite\.toml: .* value has 20001 digits$"):
        read_toml(tmp_path / "suite.toml", AnyTable)


@pytest.mark.parametrize("parts", [MAX_TOML_DEPTH, MAX_TOML_DEPTH + 1])
def test_the_limit_is_that_of_keys_and_brackets_alone(parts: int, tmp_path: Path) -> None:
    file = tmp_path / "any.toml"
    is_read = parts <= MAX_TOML_DEPTH
    for content in (f"{dotted(parts)} = 1", "a = " + "[" * parts + "]" * parts, f"[b]\nc = 1.5\n{dotted(parts)} = 2"):
        file.write_text(content, encoding="utf-8")
        if is_read:
            assert read_toml(file, AnyTable) == msgspec.convert(tomllib.loads(content), AnyTable)
        else:
            with pytest.raises(CalibrantError, match=f"more than {MAX_TOML_DEPTH}"):
                read_toml(file, AnyTable)


def test_texts_and_comments_may_hold_what_keys_may_not(tmp_path: Path) -> None:
    file = tmp_path / "any.toml"
    long = dotted(99) + "[" * 99
    texts = f'"{long}", """\n{long}""", \'\'\'{long}\'\'\''
    content = f"# {long}\na = '{long}'\nb = [{texts}, {', '.join(['1.5'] * 99)}]\n"
    file.write_text(content, encoding="utf-8")
    assert read_toml(file, AnyTable) == msgspec.convert(tomllib.loads(content), AnyTable)
