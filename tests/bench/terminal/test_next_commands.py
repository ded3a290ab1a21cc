"""What commands name as next, and hints after errors: pasted, none of them exits with 2."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from calibrant.bench.cli import main
from calibrant.bench.terminal import NextCommand, print_next, unused_path
from tests.bench.commands.lines import BENCHMARKS, SUITES, Files
from tests.support.commands import NEXT, jsonl, refusal

PASTED = re.compile(r"calibrant .*$")


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=BENCHMARKS)
def files(request: pytest.FixtureRequest, files_of: Callable[[str], Files]) -> Files:
    return files_of(request.param)


def paste(errors: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Run what is named as next; the commands. Certificates that were just written hold."""
    commands = [PASTED.findall(line)[0] for line in NEXT.findall(errors)]
    for command in commands:
        allowed = (0,) if shlex.split(command)[1] == "verify" else (0, 1)
        assert main(shlex.split(command)[1:]) in allowed, (command, capsys.readouterr().err)
        assert capsys.readouterr()
    return [shlex.split(command)[1] for command in commands]


def test_what_a_command_names_as_next_works_when_it_is_pasted(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """In the folder where the command ran, with paths that it has just written."""
    generate = ["--benchmark", files.benchmark, "--seed", "1", "--per-stratum", "1", "--out", "a pool.jsonl"]
    lines: list[tuple[list[object], list[str]]] = [
        (["score", files.pool, files.predictions, "--out", "scores.jsonl"], ["report", "table", "list"]),
        (["score", files.pool, files.predictions], ["score"]),
        (["audit", files.pool], ["show", "list"]),
        (["audit", files.pool, "--html", "audit.html", "--certificates", "c"], ["show", "verify"]),
        (["generate", *generate, "--strata", SUITES[files.benchmark]], ["list", "prompts", "run"]),
    ]
    for line, named in lines:
        assert main(list(map(str, line))) == 0
        used = paste(capsys.readouterr().err, capsys)
        assert used == [name for name in named if name in used]
        assert set(named) - set(used) <= {"verify"}  # nothing is counted of some items


def test_score_names_a_list_that_has_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files_of: Callable[[str], Files]
) -> None:
    """No class of answers, for it may be empty, and a pool that was answered, which the first was not."""
    files = files_of("causim")
    first, second = json.loads(files.predictions.read_text("utf-8").splitlines()[1]), files.second
    jsonl(tmp_path / "answers.jsonl", first)  # second.jsonl lacks this item
    assert main(["score", str(second), str(files.pool), "answers.jsonl", "--out", "scores.jsonl"]) == 0
    listing = PASTED.findall(NEXT.findall(capsys.readouterr().err)[2])[0]
    assert shlex.split(listing) == ["calibrant", "list", str(files.pool), "--scores", "scores.jsonl"]
    assert main(shlex.split(listing)[1:]) == 0
    assert first["id"] in capsys.readouterr().out


def test_a_run_names_what_can_be_done_with_its_records(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "exact", str(files.pool), "--out", "a run", "--limit", "1", "--workers", "1"]) == 0
    assert paste(capsys.readouterr().err, capsys) == ["report", "table", "table"]


TABLE = "X1,X2,X3,set\n0,0,0,\n1,1,1,\n0,1,1,X2\n1,0,0,X2\n"


@pytest.mark.parametrize(
    ("line", "code", "named"),
    [
        ("fit a.csv --do set", 0, ["fit", "fit"]),
        ("fit a.csv --do set --target X3 --html w.html --out p.jsonl", 0, ["audit"]),
        ("fit a.csv --do set --target X3 --out p.jsonl --certificates c", 0, ["fit", "audit", "verify"]),
        ("fit a.csv --do set --target X3 --max-parents 1", 1, ["fit", "fit", "fit"]),
        ("fit a.csv --do set --roots X1,X2 --max-parents 1 --errors front", 1, ["fit", "fit"]),
        ("fit b.csv", 1, ["fit", "fit"]),
        ("fit b.csv --roots X1", 1, ["fit", "fit"]),
        ("fit b.csv --assume k.txt", 1, ["fit", "fit"]),
        ("fit a.csv --do set --score bde", 0, ["fit", "fit"]),
        ("training POOL --out t.jsonl", 0, ["schema", "training", "prompts"]),
        ("training POOL --curriculum block --out blocks", 0, ["prompts"]),
        ("harden POOL --out h.jsonl --certificates c", 0, ["verify", "prompts", "run"]),
    ],
)
def test_fits_worked_solutions_and_harder_pools_name_what_is_next(
    line: str, code: int, named: list[str], capsys: pytest.CaptureFixture[str], files_of: Callable[[str], Files]
) -> None:
    files = files_of("causim")
    Path("b.csv").write_text("X1,X2\n0,0\n0,1\n1,0\n1,1\n", encoding="utf-8")  # neither is a function of the other
    Path("k.txt").write_text("forbid X1 -> X2\n", encoding="utf-8")
    Path("a.csv").write_text(TABLE if code == 0 else TABLE.replace("0,1,1", "0,1,0"), encoding="utf-8")
    capsys.readouterr()
    assert main([str(files.pool) if word == "POOL" else word for word in line.split()]) == code
    assert paste(capsys.readouterr().err, capsys) == named


@pytest.mark.parametrize("line", ["score POOL PREDICTIONS --out s.jsonl", "audit POOL", "run copy POOL --out runs"])
def test_with_json_nothing_is_named_and_standard_output_is_json(
    line: str, capsys: pytest.CaptureFixture[str], files_of: Callable[[str], Files]
) -> None:
    files = files_of("causim")
    capsys.readouterr()
    words = line.replace("POOL", str(files.pool)).replace("PREDICTIONS", str(files.predictions))
    assert main([*shlex.split(words), "--json"]) == 0
    printed = capsys.readouterr()
    assert NEXT.findall(printed.err) == []
    for text in printed.out.splitlines() if line.startswith("score") else [printed.out]:
        json.loads(text)


def test_a_path_that_exists_is_not_named_again(tmp_path: Path) -> None:
    for name in ("why.html", "why-2.html", "suite-1.0"):
        Path(name).touch()
    assert unused_path("suite-1.0") == Path("suite-1.0-2")
    assert unused_path("why.html") == Path("why-3.html")
    assert unused_path(".") == tmp_path.resolve() / "new-2"
    assert unused_path("..") == tmp_path.parent.resolve() / "new-2"


def test_a_command_that_would_have_to_be_escaped_is_not_named(capsys: pytest.CaptureFixture[str]) -> None:
    print_next([NextCommand(("show", "a\x1b[2J"), "first"), NextCommand(("show", "it's"), "second")])
    assert capsys.readouterr().err == "next  second  calibrant show 'it'\"'\"'s'\n"


@pytest.mark.parametrize(
    ("line", "error", "hint"),
    [
        ("score PREDICTIONS POOL", "no pool", "calibrant score POOL PREDICTIONS"),
        ("show ID POOL", "cannot be read", "calibrant show POOL ID"),
        ("run POOL static --out runs", "cannot be read", "calibrant run static POOL --out runs"),
        ("verify POOL nothing.json", "cannot be read", "calibrant verify nothing.json POOL"),
        ("show POOL CLOSE", "no instance", "calibrant show POOL ID"),
        ("show POOL zzz", "no instance", "calibrant list POOL"),
        ("run greedy POOL --out runs", "it exists for ", "calibrant protocols --benchmark blickets"),
        ("run statik POOL --out runs", "unknown protocol 'statik'", "calibrant run static POOL --out runs"),
        ("score POOL TASKS", "its field 'about' names one", "calibrant score POOL TASKS --id-field about"),
        ("score POOL META", "--id-field names the one", "calibrant score POOL META --id-field meta.item"),
        ("score POOL SOMEBODY", "--skip-unknown passes over", ""),
        ("score POOL NOBODY", "; no line of nobody.jsonl is about an instance of these pools; --on-error", ""),
        ("score POOL PREDICTIONS PREDICTIONS", "one file of predictions is scored at a time", ""),
        ("score POOL ANSWERS_CSV PREDICTIONS", "one file of predictions is scored at a time", ""),
        ("score . PREDICTIONS", ".: cannot be read", ""),
        ("show POOL ID --run VERDICTS", "give the predictions it scored", ""),
        ("show POOL ID --run VERDICTS --gold", "give the predictions it scored", ""),
        ("table POOL", "a pool of items", "calibrant run exact POOL --out runs"),
        ("difficulty POOL --runs OTHER_RUN", "No such option: --runs", "calibrant difficulty --help"),
        ("report POOL", "a pool of items", "calibrant run exact POOL --out runs"),
        ("list POOL --class lucky", "give --scores", "calibrant list --help"),
        ("list POOL --scores OTHER_RUN", "no answer in", ""),
    ],
)
def test_an_error_has_a_hint_that_works(
    line: str,
    error: str,
    hint: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    files_of: Callable[[str], Files],
) -> None:
    files = files_of("blickets")
    answer = '{"rule": "conjunctive", "blickets": ["A"]}'
    request = {"custom_id": "request-1", "about": files.ids[0], "response": answer}
    nested = {"meta": {"item": files.ids[0]}, "response": answer}
    places = {
        "POOL": files.pool,
        "PREDICTIONS": files.predictions,
        "ID": files.ids[0],
        "CLOSE": files.ids[0][:-1],
        "TASKS": jsonl(tmp_path / "tasks.jsonl", request),
        "META": jsonl(tmp_path / "meta.jsonl", nested),
        "NOBODY": jsonl(tmp_path / "nobody.jsonl", {"id": "nobody", "response": answer}),
        "SOMEBODY": jsonl(
            tmp_path / "some.jsonl", {"id": "nobody", "response": answer}, {**request, "id": files.ids[0]}
        ),
        "ANSWERS_CSV": tmp_path / "answers.csv",
        "VERDICTS": tmp_path / "new" / "folder" / "verdicts.jsonl",
        "OTHER_RUN": files.second_run,
    }
    (tmp_path / "answers.csv").write_text("id,response\n", encoding="utf-8")
    if "VERDICTS" in line:
        assert main(["score", str(files.pool), str(files.predictions), "--out", str(places["VERDICTS"])]) == 0
    capsys.readouterr()
    words = [str(places.get(word, word)) for word in line.split()]
    printed_error, printed_hint = refusal(capsys, *words)
    assert error in printed_error
    assert shlex.split(printed_hint) == [str(places.get(word, word)) for word in hint.split()]
    if hint and "nothing.json" not in hint:
        assert main(shlex.split(printed_hint)[1:]) in (0, 1)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("fit t.csv --target z --consistency 0,8", "calibrant fit t.csv --target z --consistency 0.8"),
        ("fit t.csv --target z --rates=0,1", "calibrant fit t.csv --target z --rates=0.1"),
        ("fit t.csv --score bde --iss 0,5", "calibrant fit t.csv --score bde --iss 0.5"),
        ("fit t.csv --score bde --seconds ,5", "calibrant fit t.csv --score bde --seconds 0.5"),
        ("fit t.csv --errors 1,5 --target z", ""),
        ("fit t.csv --max-parents 2,5", "calibrant fit --help"),
    ],
)
def test_a_number_with_a_decimal_comma_is_hinted_with_a_point(
    line: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("t.csv").write_text("x,z\n0,0\n1,1\n", encoding="utf-8")
    assert refusal(capsys, *line.split())[1] == hint
    if hint:
        assert main(shlex.split(hint)[1:]) in (0, 1)


def test_a_report_of_several_files_of_predictions_names_a_command_for_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files_of: Callable[[str], Files]
) -> None:
    files = files_of("causim")
    line = json.loads(files.predictions.read_text("utf-8").splitlines()[0])
    other = jsonl(tmp_path / "other.jsonl", {**line, "model": "another"})
    words = ["report", "--pool", files.pool, "--predictions", files.predictions, "--predictions", other]
    assert main([*map(str, words), "--out", "report.md"]) == 0
    printed = capsys.readouterr().err
    for number, path in enumerate((files.predictions, other), 1):
        assert f"calibrant score {files.pool} {path} --out scores-{number}.jsonl" in printed


def test_pools_that_are_missing_are_looked_for_by_name_and_digest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = Files.made("causim", tmp_path)
    header = json.loads(files.pool.read_text("utf-8").splitlines()[0])
    beside = tmp_path / f"{header['name']}.jsonl"
    files.pool.rename(beside)
    capsys.readouterr()
    _, hint = refusal(capsys, "table", files.run, "--attribution")
    assert hint == f"calibrant table {files.run} --attribution --pool {beside.name}"
    assert main(shlex.split(hint)[1:]) == 0
    capsys.readouterr()
    beside.write_text(beside.read_text("utf-8") + "\n", "utf-8")  # another digest
    assert refusal(capsys, "table", files.run, "--attribution")[1] == ""
