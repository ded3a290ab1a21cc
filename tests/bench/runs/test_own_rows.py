"""Rows that are not ours: classes in files, and what they may get wrong without touching anything else."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import calibrant
from calibrant.bench import protocols
from calibrant.bench.cli import main
from calibrant.bench.protocols import describe_protocol, left_out, make_protocol, with_installed
from calibrant.bench.runs.records import folder_records
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.replayscm.pools.files import write_pool
from tests.support.commands import CHECKOUT, called, command, refused
from tests.support.effort import effort
from tests.support.stub_protocols import small_pool

PAGE = (CHECKOUT / "docs" / "own_rows.md").read_text(encoding="utf-8")
EXAMPLE, _ = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

STUB = """
import sys
import calibrant

class Mine(calibrant.Protocol):
    name = "mine"
    mood: str = "well"

    def answer(self, task):
        found = calibrant.ProtocolResult("found", {{"mechanisms": {{"X3": "(and X1 X2)"}}}})
        if task.training.worlds[0].id != "good-1":
            return found
        print("on standard output")
        {behaviour}
"""

CRASHES = {
    "raises": ("raise RuntimeError('no idea')", "RuntimeError: no idea"),
    "exits": ("sys.exit(0)", "SystemExit: 0"),
    "gives nothing": ("return None", "TypeError: answer(task) gave None, not a ProtocolResult"),
    "gives an object": ("return {'mechanisms': {}}", "not a ProtocolResult"),
    "gives no JSON": ("return calibrant.ProtocolResult('found', {'mechanisms': {'X3': object()}})", "TypeError: "),
    "gives NaN": ("return calibrant.ProtocolResult('found', {'mechanisms': {'X3': [float('nan')]}})", "represent nan"),
    "gives a set": (
        "return calibrant.ProtocolResult('found', {}, provenance={'by': {1}})",
        "JSON cannot represent {1}",
    ),
    "gives bytes as size": ("return calibrant.ProtocolResult('found', {}, b'3')", "ValidationError: "),
    "an outcome of its own": ("return calibrant.ProtocolResult('great', {})", "ValidationError: "),
    "provenance": ("return calibrant.ProtocolResult('found', {}, provenance={'by': self.answer})", "TypeError: "),
    "an answer that is a list": ("return calibrant.ProtocolResult('found', [1])", "ValidationError: "),
}


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    path = tmp_path / "small.jsonl"
    write_pool(small_pool(["good", "good", "good"]), path)
    return path


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    def write(text: str, name: str = "my_search.py") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_method_that_kills_its_process_ends_neither_the_command_nor_other_items(
    pool: Path, written: Callable[..., Path]
) -> None:
    file, out = (
        written(STUB.format(behaviour="import os, signal; os.kill(os.getpid(), signal.SIGKILL)")),
        pool.parent / "out",
    )
    killed = command("run", f"{file}:Mine", pool, "--out", out)
    assert killed.returncode == 1, killed.stderr
    assert sorted(record.outcome for record in folder_records(out)) == ["crashed", "found", "found"]


@pytest.mark.soak
@pytest.mark.parametrize("workers", effort([2], [2, 1]))
def test_the_documented_example_has_a_row_beside_ours(pool: Path, written: Callable[..., Path], workers: int) -> None:
    """Two workers, to whom the class has to be sent; then in the one process of the command, and in a soak first."""
    file, out = written(EXAMPLE), pool.parent / "out"
    done = command("run", f"{file}:TwoRoots,exact", pool, "--out", out, "--workers", workers, "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["system"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows.keys() == {"two-roots", "exact"}
    assert rows["two-roots"]["heldout_exact"] == rows["exact"]["heldout_exact"]
    mine = [record for record in folder_records(out) if record.protocol == "two-roots"]
    assert [record.answer for record in mine] == [{"mechanisms": {"X3": "(and X1 X2)"}}] * 3
    assert mine[0].config["operators"] == ["and", "or", "xor"]
    again = called("run", file, pool, "--out", out, "--workers", 3 - workers)
    assert again.stderr.startswith("0 instances answered, 3 had a record already\n")


def test_rows_of_ones_own_are_in_tables_reports_and_pairs(pool: Path, written: Callable[..., Path]) -> None:
    out, report = pool.parent / "out", pool.parent / "report.md"
    calibrant.run(f"{written(EXAMPLE)}:TwoRoots", pool, out)
    calibrant.run("majority", pool, out)
    assert "two-roots" in called("table", out).stdout
    assert called("report", out, "--out", report).returncode == 0
    text = report.read_text(encoding="utf-8")
    assert "| Ordered | two-roots | small | 3 |" in text
    assert re.search(r"\| Ordered \| (majority \| two-roots|two-roots \| majority) \| small \| 3 \|", text)


@pytest.mark.parametrize("kind", CRASHES)
def test_what_goes_wrong_is_a_crash_of_that_item_alone(pool: Path, written: Callable[..., Path], kind: str) -> None:
    behaviour, reason = CRASHES[kind]
    out = pool.parent / "out"
    records = calibrant.run(f"{written(STUB.format(behaviour=behaviour))}:Mine", pool, out)
    assert [record.outcome for record in records] == ["found", "crashed", "found"]
    assert reason in records[1].provenance["error"]
    assert records[1].score["valid"] is False
    assert [record.score["correct"] for record in records] == [True, False, True]


def test_an_answer_to_an_episode_is_submitted_unless_an_action_did_so(tmp_path: Path) -> None:
    class Conjunction(calibrant.Protocol, frozen=True):
        name = "conjunction"
        benchmark = "blickets"
        acts: bool = False

        def answer(self, episode: Any) -> calibrant.ProtocolResult:
            answers = [{"rule": "conjunctive", "blickets": list(episode.task.objects[:n])} for n in (1, 2)]
            if self.acts:
                episode.act({"check": answers[1]})
            return calibrant.ProtocolResult("found", answers[0])

    items = calibrant.load_pool(calibrant.datasets.bundled_pool("blickets"), of="blickets")[:2]
    for acts in (False, True):
        for record in calibrant.run(Conjunction(acts), items, tmp_path / "out"):
            assert record.score["closed"] == "answered"
            assert len(record.score["answer"]["blickets"]) == 1 + acts


def test_options_of_lists_are_json(pool: Path, written: Callable[..., Path]) -> None:
    file, out = written(EXAMPLE), pool.parent / "out"
    run = ("run", file, pool, "--out", out, "-o")
    assert called(*run, """operators=["and","or"]""").returncode == 0
    assert {tuple(record.config["operators"]) for record in folder_records(out)} == {("and", "or")}
    refused = called(*run, "operators=and,or")
    assert refused.returncode == 2
    assert """expected a list, found a text (a list is JSON, such as '["a", "b"]')""" in refused.stderr


def test_a_crash_ends_with_exit_code_one_and_is_shown(pool: Path, written: Callable[..., Path]) -> None:
    file = written(STUB.format(behaviour="sys.exit(0)"))
    done = command("run", f"majority,{file}:Mine", pool, "--out", pool.parent / "out", "--workers", "1", "--json")
    assert done.returncode == 1
    assert "1 instance crashed" in done.stderr
    assert "on standard output" in done.stderr
    assert {row["system"]: row["crashed"] for row in json.loads(done.stdout)["rows"]} == {"majority": 0, "mine": 1}


def test_crashes_are_shown_by_the_names_of_tables(pool: Path, written: Callable[..., Path]) -> None:
    behaviour = """if self.mood != "well":
            raise ValueError("not today")
        return found"""
    file, out = written(STUB.format(behaviour=behaviour)), pool.parent / "out"
    for mood in ("well", "ill"):
        called("run", file, pool, "--out", out, "-o", f"mood={mood}")
    assert "mine (mood=ill)" in called("table", out).stdout
    instance = next(record.instance for record in folder_records(out) if record.outcome == "crashed")
    show = ("show", pool, instance, "--run", out, "--gold", "--system")
    crash = called(*show, "mine (mood=ill)")
    assert crash.returncode == 0
    assert crash.stdout.startswith(f"mine on {instance} crashed: ValueError: not today")
    answer = called(*show, "mine (mood=well)")
    assert (answer.returncode, "crashed" in answer.stdout + answer.stderr) == (0, False)
    assert called(*show, "mine (mood=odd)").stderr.endswith("there are answers of mine (mood=well)\n")


def test_an_answer_that_is_wrong_is_scored_and_nothing_found_is_not_valid(
    pool: Path, written: Callable[..., Path]
) -> None:
    behaviour = "return calibrant.ProtocolResult('found', {'mechanisms': {'X9': '(and'}, 'roots': 3})"
    records = calibrant.run(f"{written(STUB.format(behaviour=behaviour))}:Mine", pool, pool.parent / "out")
    assert [record.outcome for record in records] == ["found"] * 3
    assert records[1].score["stage"] == "keys"
    behaviour = "return calibrant.ProtocolResult('out_of_budget')"
    records = calibrant.run(f"{written(STUB.format(behaviour=behaviour), 'b.py')}:Mine", pool, pool.parent / "out")
    assert [record.outcome for record in records] == ["found", "out_of_budget", "found"]


def test_edited_code_is_another_row(pool: Path, written: Callable[..., Path]) -> None:
    out = pool.parent / "out"
    for operator in ("and", "or"):
        file = written(STUB.format(behaviour="return found").replace("(and X1", f"({operator} X1"))
        calibrant.run(str(file), pool, out)
    codes = {record.config["code"] for record in folder_records(out)}
    assert len(codes) == 2
    systems = {line.split()[1:3][0] for line in called("table", out).stdout.splitlines()[1:]}
    assert systems == {"mine"}
    assert all(f"code={code}" in called("table", out).stdout for code in codes)


def test_a_file_may_import_what_lies_beside_it_and_ours_is_not_shadowed(
    pool: Path, written: Callable[..., Path]
) -> None:
    written("FOUND = {'mechanisms': {'X3': '(and X1 X2)'}}\n", "my_answers.py")
    written("raise RuntimeError('not ours')\n", "typer.py")
    file = written(
        "import my_answers\n" + STUB.format(behaviour="return calibrant.ProtocolResult('found', my_answers.FOUND)")
    )
    done = command("run", f"{file}:Mine", pool, "--out", pool.parent / "out", "--workers", "2", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"][0]["train_exact"] == 1.0


def test_a_protocol_of_a_file_reaches_another_process_with_its_options(written: Callable[..., Path]) -> None:
    protocol = make_protocol({}, f"{written(STUB.format(behaviour='return found'))}:Mine", {"mood": "bad"})
    again = pickle.loads(pickle.dumps(protocol))
    assert again == protocol
    assert again.config["mood"] == "bad"


REFUSED = {
    "import nonsense_of_mine": "ModuleNotFoundError: No module named 'nonsense_of_mine'",
    "def f(:": "SyntaxError: invalid syntax",
    "import sys; sys.exit('no')": "SystemExit: no",
    "x = 1": "no class that subclasses calibrant.Protocol",
    STUB.format(behaviour="pass").replace('name = "mine"', 'name = "exact"'): "the name 'exact', which another",
    STUB.format(behaviour="pass").replace('name = "mine"', ""): "has the name ''; a row needs a short one",
    STUB.format(behaviour="pass").replace('name = "mine"', 'name = "a,b"'): "has the name 'a,b'; a row needs",
    STUB.format(behaviour="pass").replace('name = "mine"', 'name = "\x1b[31m"'): "a row needs a short one",
    STUB.format(behaviour="pass").replace("mood: str", "code: str"): "has an option 'code'",
    STUB.format(behaviour="pass").replace("def answer", "def reply"): "has no method answer(self, task)",
}


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_a_file_that_has_no_protocol_is_one_line(
    number: int, pool: Path, written: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    text, said = list(REFUSED.items())[number]
    line = refused(capsys, "run", written(text, f"broken_{number}.py"), pool, "--out", pool.parent / "out")
    assert said in line
    assert "\x1b" not in line


def test_a_class_that_is_not_there_is_one_line(
    pool: Path, written: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(STUB.format(behaviour="pass"))
    assert "no 'Yours' there; its protocols: Mine" in refused(capsys, "protocols", f"{file}:Yours")
    assert "cannot be read: No such file" in refused(capsys, "protocols", "nowhere.py:Yours")
    assert "a row needs" not in refused(capsys, "run", f"{file}:sys", pool, "--out", pool.parent / "out")


def test_protocols_lists_whatever_run_takes(
    pool: Path, written: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    text = STUB.format(behaviour="return found").replace('name = "mine"', 'name = "static"')  # a row of blickets
    file, taken = written(text), written(text.replace('"static"', '"exact"'), "taken.py")
    out = str(pool.parent / "out")
    for name in (str(file), f"{file}:Mine", f"staged-exact-search,{file}"):
        assert main(["run", name, str(pool), "--out", out, "--workers", "1"]) == 0
        capsys.readouterr()
        assert main(["protocols", name, "--json"]) == 0
        listed = json.loads(capsys.readouterr().out)
        assert [one["name"] for one in listed] == ["staged-exact-search", "static"][-len(name.split(",")) :]
        assert listed[-1]["options"] == {"mood": "well"}
    assert "the name 'exact', which another" in refused(capsys, "protocols", taken)
    assert "unknown protocol 'nothing'" in refused(capsys, "protocols", "exact,nothing")


# --- installed packages -------------------------------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Put a distribution `my-rows 1.2` on the path, with one file and these entry points."""

    def put(text: str, points: str) -> None:
        folder = tmp_path / "site"
        info = folder / "my_rows-1.2.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-rows\nVersion: 1.2\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[{protocols.GROUP}]\n{points}", encoding="utf-8")
        (folder / "my_rows_module.py").write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.delitem(__import__("sys").modules, "my_rows_module", raising=False)

    return put


def test_what_a_package_brings_is_known_by_name_with_its_version(
    pool: Path, installed: Callable[[str, str], None]
) -> None:
    installed(EXAMPLE, "any-name = my_rows_module:TwoRoots\n")
    known = calibrant.protocols()
    assert list(known)[-1] == "two-roots"
    assert describe_protocol(known["two-roots"])["code"] == "my-rows 1.2"
    (record, *_) = calibrant.run("two-roots", pool, pool.parent / "out")
    assert record.config["code"] == "my-rows 1.2"
    assert record.score["trainExact"] is True


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "raise RuntimeError('broken')",
            "my_rows_module:TwoRoots of my-rows 1.2 cannot be imported: RuntimeError: broken",
        ),
        ("import sys; sys.exit(3)", "cannot be imported: SystemExit: 3"),
        ("TwoRoots = 3", "my_rows_module:TwoRoots is no subclass of calibrant.Protocol"),
        (EXAMPLE.replace("two-roots", "exact"), "has the name 'exact', which another protocol has"),
    ],
)
def test_a_broken_package_is_named_and_costs_nothing_else(
    installed: Callable[[str, str], None], text: str, said: str
) -> None:
    installed(text, "mine = my_rows_module:TwoRoots\n")
    ours = calibrant.protocols()
    assert "mine" not in ours
    assert "exact" in ours
    assert said in left_out(ours)["mine"]
    with pytest.raises(CalibrantError, match="protocol 'mine': my_rows_module:TwoRoots"):
        make_protocol(ours, "mine", {})


def test_rows_are_asked_for_items_of_their_own_benchmark_only(installed: Callable[[str, str], None]) -> None:
    installed(
        EXAMPLE.replace('name = "two-roots"', 'name = "two-roots"\n    benchmark = "chess"'),
        "a = my_rows_module:TwoRoots\n",
    )
    nothing: dict[str, Any] = {}
    assert list(with_installed(nothing, "replayscm")) == []
    assert list(with_installed(nothing, "chess")) == ["two-roots"]


def test_a_protocol_that_cannot_start_is_described_and_left_out(
    pool: Path, installed: Callable[[str, str], None]
) -> None:
    installed(
        EXAMPLE + "\n    def require(self):\n        raise OSError('no licence')\n", "a = my_rows_module:TwoRoots\n"
    )
    assert left_out(calibrant.protocols())["two-roots"] == "OSError: no licence"
    with pytest.raises(CalibrantError, match="protocol 'two-roots' cannot start: OSError: no licence"):
        calibrant.run("two-roots", pool, pool.parent / "out")
