"""Deeply nested inputs, and TOML files: what is refused before it is parsed, in which time and memory."""

from __future__ import annotations

import json
import time
import tomllib
import tracemalloc
from collections.abc import Iterator
from itertools import cycle, product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calibrant.bench.cli import main
from calibrant.bench.commands.guard import Reads, path_roles
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.registry import benchmarks, bundled_pool, bundled_sample
from calibrant.bench.play.study.config import StudyFile
from calibrant.bench.play.study.pages import QuestionPage
from calibrant.bench.suites.manifest import SuiteSpec
from calibrant.bench.suites.submissions import Card
from calibrant.bench.toml_file import MAX_TOML_DEPTH, read_toml
from calibrant.dsl.errors import CalibrantError
from tests.bench.test_inputs_kept import ALL, Command, arguments
from tests.support.effort import effort

# Files that nest without end: every command that reads a file refuses them in one line, or does not look that deep
HEADER = '{"format":"calibrant-pool","version":1,"benchmark":"%s","name":"n"}\n'
DEEP_OBJECT = '{"a":' * 1_000 + "1" + "}" * 1_000
PREDICTION = '{"instanceId":"CAL_hs_n6_easy_calibration_20000000","model":"m","response":%s}\n'
FILES = {
    "item": ("a.jsonl", HEADER % "logic" + DEEP_OBJECT + "\n"),
    "item of blickets": ("a.jsonl", HEADER % "blickets" + DEEP_OBJECT + "\n"),
    "header": ("a.jsonl", DEEP_OBJECT + "\n"),
    "field": ("a.jsonl", PREDICTION % DEEP_OBJECT),
    "less deep field": ("a.jsonl", PREDICTION % ("[" * 300 + "]" * 300)),  # which both parsers can read
    "text": ("a.json", "[" * 100_000),
    "state": ("state.json", '{"scms": ' + DEEP_OBJECT + "}"),
    "yaml": ("a.yaml", "[" * 5_000 + "]" * 5_000),
    "toml": ("suite.toml", ".".join("a" * 5_000) + " = 1\n"),
    "record": ("records.jsonl", '{"instance":' + DEEP_OBJECT + ',"version":1}\n'),
}
IN_FOLDERS = (
    *("records.jsonl", "audits.jsonl", "state.json", "pool.json", "suite.toml", "study.toml", "card.toml"),
    *("public/suite.json", "public/commitments.json", "address.json"),
)


def readers() -> Iterator[Any]:
    for one in ALL:
        for name, role in path_roles(one.callback).items():
            if isinstance(role, Reads):
                yield one, name


READERS = [
    pytest.param(one, name, index, id=f"{'-'.join(one.name)}:{name}") for index, (one, name) in enumerate(readers())
]
MIN_REFUSED = effort(1, len(FILES) + 1)  # refusals of a parameter after which its other files are left to the soak


def _refuses(one: Command, read: str, given: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> bool:
    needed = {p.name for p in one.parameters if p.param_type_name == "argument" or p.required}
    roles = path_roles(one.callback)
    pool = folder.parent / "pool.jsonl"
    pool.write_text("".join(bundled_pool("hidden-order").read_text("utf-8").splitlines(keepends=True)[:2]), "utf-8")
    paths = {
        name: pool if isinstance(role, Reads) else folder / f"out_{name}"
        for name, role in roles.items()
        if name in needed
    }
    code = main(arguments(one, paths | {read: given}))
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    assert code in {0, 1, 2}
    error = [line for line in printed.err.splitlines() if line.startswith("error  ")]
    assert len(error) == (1 if code == 2 else 0), printed.err
    return code == 2


def _write_files(tmp_path: Path) -> list[tuple[Path, Path]]:
    """Return each file, or the folder of all that folders are read for, with the folder that it is in."""
    written = []
    for index, (name, content) in enumerate(FILES.values()):
        folder = tmp_path / str(index)
        folder.mkdir()
        (folder / name).write_text(content, encoding="utf-8")
        written.append((folder / name, folder))
    folder = tmp_path / "folder"
    for name in IN_FOLDERS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(FILES["toml"][1] if name.endswith(".toml") else DEEP_OBJECT, encoding="utf-8")
    return [*written, (folder, folder)]


@pytest.mark.soak
@pytest.mark.parametrize(("one", "read", "number"), READERS)
def test_no_command_ends_in_a_traceback_over_a_file_that_nests(
    one: Command,
    read: str,
    number: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every parameter that reads meets files until it refuses one, beginning with another kind each; all in a soak."""
    monkeypatch.chdir(tmp_path)
    files = _write_files(tmp_path)
    refused = 0
    for k in range(len(files)):
        path, folder = files[(k + number) % len(files)]
        refused += _refuses(one, read, path, folder, capsys)
        if refused == MIN_REFUSED:
            break
    assert refused, "each of these files is accepted"


def test_the_refusal_names_line_and_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = tmp_path / "deep.jsonl"
    for benchmark in ("replayscm", "blickets", "causim", "causalab", "logic"):
        header = HEADER % benchmark if benchmark != "replayscm" else '{"format":"calibrant-pool","version":1}\n'
        pool.write_text(header + DEEP_OBJECT + "\n", encoding="utf-8")
        for command in ("list", "audit", "pool check", "pool stats", "prompts", "show x"):
            words = command.split()
            words.insert(2 if words[0] == "pool" else 1, str(pool))
            assert main(words) == 2, (benchmark, command)
            error = capsys.readouterr().err
            assert "deep.jsonl: line 2: nested more than 200 deep" in error, (benchmark, command, error)


@pytest.mark.parametrize("benchmark", benchmarks(), ids=lambda one: one.name)
def test_a_response_that_nests_is_an_invalid_answer_and_other_lines_are_scored(
    benchmark: Benchmark[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The object counts as its own text does; what a system wrote stops no file."""
    pool = bundled_sample(benchmark.bundled[0])
    item = json.loads(pool.read_text("utf-8").splitlines()[1])
    instance = next(item[name] for name in ("instanceId", "id", "item") if name in item)
    predictions, scores = tmp_path / "p.jsonl", tmp_path / "scores.jsonl"
    deepest = 100_000  # 8 MB of stack, had a parser 80 bytes a level
    with predictions.open("w", encoding="utf-8") as file:
        for field, depth in (*product(("response", "extractedAnswer", "answer"), (250, 1_000)), ("response", deepest)):
            nested = '{"mechanisms": ' + "[" * depth + '"]}"' + "]" * depth + "}"
            head = f'{{"instanceId": {json.dumps(instance)}, "metadata": {nested}'
            for model, value in (("object", nested), ("text", json.dumps(nested)), ("other", '"none"')):
                file.write(f'{head}, "model": "{model} {field} {depth}", "{field}": {value}}}\n')
    assert main(["score", str(pool), str(predictions), "--out", str(scores)]) == 0
    error = capsys.readouterr().err
    assert "no answer that can be read (first: " in error or "is not an object of the schema" in error, error
    verdicts = {line.pop("model"): line for line in map(json.loads, scores.read_text("utf-8").splitlines())}
    assert len(verdicts) == 3 * 7
    for model, verdict in verdicts.items():
        assert verdict == verdicts[model.replace("object", "text")]
        assert not verdict.get("valid")
        assert not verdict.get("correct")


def test_a_line_that_nests_outside_its_members_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = bundled_pool("hidden-order")
    predictions = tmp_path / "p.jsonl"
    for depth in (201, 1_000, 100_000):
        for line in ("[" * depth + "]" * depth, '{"response": ' + "[" * depth, "[" + PREDICTION[:-1] % ("[" * depth)):
            predictions.write_text(f"{PREDICTION % json.dumps('')}{line}\n", encoding="utf-8")
            assert main(["score", str(pool), str(predictions)]) == 2
            assert "line 2: nested more than 200 deep" in capsys.readouterr().err


# --- TOML files: what is refused before it is parsed, in which time and memory ----------------------------------------
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


@pytest.mark.parametrize(("bomb", "kind"), list(zip(BOMBS, cycle((SuiteSpec, Card, StudyFile, QuestionPage)))))
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
