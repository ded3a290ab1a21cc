"""CauSim pools under the commands, and questions drawn."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.causim.benchmark import BENCHMARK
from calibrant.bench.causim.items import question_picture
from calibrant.bench.causim.pictures import Mark, layered_svg, layered_text
from calibrant.bench.cli import main
from calibrant.bench.core.metrics import ObservationReader
from calibrant.bench.pages.page import standalone_svg
from calibrant.bench.protocols import protocols_of
from calibrant.bench.runs.records import Record, folder_records
from calibrant.dsl.causim.item import CausimItem, Labels, Sealed, Task
from calibrant.dsl.causim.question import Question
from calibrant.dsl.causim.records import write_pool
from calibrant.dsl.causim.reference import work_out
from tests.support.browser import needs_chromium, pressed
from tests.support.commands import jsonl, refused

# --- CauSim pools under the commands: drawn, run, tabled, shown, audited, refused where there is nothing for them -----
DRAWN = ["generate", "--benchmark", "causim", "--seed", "5", "--strata", "chain,inverted_star", "--per-stratum", "12"]
PROGRAM = """
import random

def U_A():
    return random.choice(["x", "y"])

def U_B():
    return random.choice(["x", "y"])

def U_C():
    return random.choice([0, 1, 1])

def f_A(u):
    return u

def f_B(a, u):
    return u

def f_C(a, u):
    return u if a == "x" else 2

def run_once(seed=None):
    u_a = U_A()
    a = f_A(u_a)
    u_b = U_B()
    b = f_B(a, u_b)
    u_c = U_C()
    c = f_C(a, u_c)
    return {"a": a, "b": b, "c": c}
"""
NOISE = ("U_A", "U_B", "U_C")
SEEN = {"A": '"y"', "B": '"x"', "C": "2"}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("causim") / "pool.jsonl"
    assert main([*DRAWN, "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def items(pool: Path) -> dict[str, CausimItem]:
    return {item.id: item for item in BENCHMARK.items.read_pool(pool).items}


@pytest.fixture(scope="module")
def records(pool: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    out = tmp_path_factory.mktemp("runs")
    assert main(["run", "all", str(pool), "--out", str(out), "--workers", "1"]) == 0
    return list(folder_records(out))


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """By hand: the edge A -> B does nothing, do(B) changes nothing else, and do(A = x) leaves C as 0 or 1."""
    asked = Question("counterfactual", unknown=NOISE, do={"A": '"x"'}, observed=SEEN)
    idle = replace(asked, do={"B": '"y"'})
    path = tmp_path / "wrong.jsonl"
    said = CausimItem("said-one", Task(PROGRAM, asked, "deterministic"), Labels(1, False, True, True, False))
    nothing = CausimItem("idle", Task(PROGRAM, idle, "deterministic"), Labels(1, False, False, False, True))
    none = replace(asked, observed={**SEEN, "C": "0"})
    never = CausimItem("never", Task(PROGRAM, none, "impossible"), Labels(0, False, copy=False))
    write_pool(path, [said, nothing, never], name="wrong")
    return path


def test_an_answer_is_right_exactly_where_some_world_gives_it(
    records: list[Record], items: dict[str, CausimItem]
) -> None:
    seen = set()
    known = {name: work_out(item.task.model, item.task.question) for name, item in items.items()}
    for record in records:
        item, worked = items[record.instance], known[record.instance]
        meaning = record.score["meaning"]
        assert record.score["correct"] is (meaning in worked.answers)
        assert record.score["answered"] is (record.outcome == "found")
        flags = [record.score[key] for key in ("copyable", "vacuous")]
        assert flags == [worked.copy, None if worked.effect_some is None else not worked.effect_some]
        assert record.setting == f"{item.task.question.type}-{worked.scenario}"
        seen.add((record.protocol, record.score["correct"]))
    drawn = {("resampled_noise", False)}  # wrong only where what it draws differs from the world that was seen
    assert seen | drawn == {(name, right) for name in protocols_of(BENCHMARK) for right in (True, False)} - {
        (name, False) for name in ("exact", "most_probable_noise", "most_probable_answer", "truncated")
    }


def test_reasons_say_what_a_row_does_wrong(records: list[Record]) -> None:
    wrong = [r for r in records if r.protocol == "no_do" and not r.score["correct"]]
    assert wrong
    assert {reason for r in wrong for reason in r.score["nodes"]} == {"ok", "do ignored"}
    assert {r.score["first"] for r in wrong} == {"do ignored"}
    drawn = [r for r in records if r.protocol == "run_once" and r.setting.startswith("counterfactual")]
    assert {r.score["first"] for r in drawn} == {None, "wrong noise"}


def test_a_run_does_not_depend_on_workers_and_goes_on(
    pool: Path, tmp_path: Path, records: list[Record], capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["run", "run_once,copy", str(pool), "--out", str(tmp_path / "two")]
    assert main([*line, "--limit", "9", "--workers", "2"]) == 0
    capsys.readouterr()
    assert main([*line, "--json", "--workers", "1"]) == 0
    printed = capsys.readouterr()
    assert "15 instances answered, 9 had a record already" in printed.err
    one = {r.key: (r.answer, r.score, r.setting) for r in records if r.protocol in ("run_once", "copy")}
    assert {r.key: (r.answer, r.score, r.setting) for r in folder_records(tmp_path / "two")} == one
    rows = [row for row in json.loads(printed.out)["rows"] if row["system"] == "copy"]
    assert [row["setting"].partition("-")[0] for row in rows] == sorted(
        (row["setting"].partition("-")[0] for row in rows), key=BENCHMARK.metrics.settings.index
    )
    assert sum(row["n"] for row in rows) == 24
    assert {row["benchmark"] for row in rows} == {"causim"}


def test_explained_counts_answers_and_not_what_is_unanswered() -> None:
    """With C alone observed, two noises are open together and no node has a reason: such an answer is unexplained."""
    reader = ObservationReader(BENCHMARK.metrics)
    index = [metric.key for metric in reader.columns].index("explained")
    asked = Question("counterfactual", unknown=NOISE, do={"A": '"x"'}, observed=SEEN)
    answers: list[dict[str, Any]] = [{"a": "x", "b": "x", "c": 2}, {"other keys": 1}]
    values = []
    for question in (asked, replace(asked, observed={"C": "2"})):
        item = CausimItem("one", Task(PROGRAM, question, "stochastic"), Labels(2, False, False, True, False))
        for answer in answers:
            score = BENCHMARK.scoring.score(item, answer, ())
            values += [reader.read_values(f"{kind}-x", score)[0][index] for kind in ("counterfactual", "abduction")]
    assert values == [1, None, None, None, 0, None, None, None]


def test_what_was_decided_is_told_of_questions_with_one_answer(
    wrong: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["run", "exact,copy", str(wrong), "--out", str(out), "--workers", "1"]) == 0
    capsys.readouterr()
    assert main(["table", str(out), "--attribution", "--pool", str(wrong), "--json"]) == 0
    rows = {(row["setting"], row["system"]): row for row in json.loads(capsys.readouterr().out)["rows"]}
    kinds = ("earned", "missed", "lucky", "short")
    # two questions are said to have one answer: said-one has two, so that luck decides; idle has one, which is the copy
    assert [rows["counterfactual-deterministic", "exact"][kind] for kind in kinds] == [0.5, 0, 0.5, 0]
    assert [rows["counterfactual-deterministic", "copy"][kind] for kind in kinds] == [0.5, 0, 0, 0.5]
    # no evidence is counted; what was no answer is in a share all the same
    assert [rows["counterfactual-impossible", "exact"][kind] for kind in kinds] == [0, 0, 0, 0]
    shares = (*kinds, "uncounted", "invalid", "no_answer")
    assert sum(rows["counterfactual-impossible", "exact"][share] for share in shares) == 1


def test_no_answer_is_right_nowhere(items: dict[str, CausimItem]) -> None:
    nothing_asked = Question("abduction", fixed={"U_A": '"y"', "U_B": '"x"', "U_C": "0"}, observed=SEEN)
    item = CausimItem("told", Task(PROGRAM, nothing_asked, "deterministic"), Labels(1, True))
    assert BENCHMARK.scoring.score(item, {}, ())["correct"] is True
    for one in (item, *items.values()):
        assert BENCHMARK.scoring.score(one, BENCHMARK.scoring.no_answer(one), ())["correct"] is False


def test_findings_of_an_item_made_by_hand_are_these(wrong: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(wrong), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    told = {(f["instance"], f["kind"], f["verdict"], f["certificate"]["claim"]) for f in found if f["certificate"]}
    edges = {(name, "vacuous", "proved", "vacuous_edge") for name in ("said-one", "idle", "never")}
    assert told == edges | {
        ("said-one", "wrong_label", "proved", "answer_count"),
        ("said-one", "ambiguous", "proved", "answer_count"),
        ("idle", "copyable", "proved", "copyable"),
        ("idle", "vacuous", "proved", "vacuous_intervention"),
        ("idle", "ambiguous", "refuted", "unique_answer"),
        ("never", "unwinnable", "proved", "answer_count"),
    }
    assert len(found) == len(told)
    assert main(["audit", str(wrong), "--fail-on", "unwinnable"]) == 1
    assert main(["audit", str(wrong), "--fail-on", "unwinnable", "--only", "idle"]) == 0


def test_certificates_hold_until_they_are_touched(
    pool: Path, tmp_path: Path, items: dict[str, CausimItem], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", str(pool), "--certificates", str(tmp_path)]) == 0
    files = sorted(tmp_path.glob("*.claim.json"))
    made = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    assert {one["certificate"]["claim"] for one in made} == {"unique_answer", "copyable", "vacuous_intervention"}
    assert main(["verify", *map(str, files), str(pool)]) == 0
    one = next(one for one in made if one["certificate"]["claim"] == "unique_answer")
    other = next(name for name in items if name != one["instance"])
    jsonl(tmp_path / "moved.json", {**one, "instance": other})
    certificate: dict[str, Any] = one["certificate"]
    changed = dict.fromkeys(certificate["data"]["answer"], "nothing")
    jsonl(tmp_path / "changed.json", {**one, "certificate": {**certificate, "data": {"answer": changed}}})
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "moved.json"), str(tmp_path / "changed.json"), str(pool), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [one["verified"] for one in told] == [False, False]
    assert told[0]["reason"] == "made for other evidence"


def test_hardened_questions_have_one_answer_and_certificates_that_hold(
    pool: Path, tmp_path: Path, items: dict[str, CausimItem], capsys: pytest.CaptureFixture[str]
) -> None:
    out, certificates = tmp_path / "hard.jsonl", tmp_path / "certs"
    line = ["harden", str(pool), "--out", str(out), "--certificates", str(certificates)]
    assert main([*line, "--report", str(tmp_path / "report.jsonl")]) == 1
    reports = [json.loads(text) for text in (tmp_path / "report.jsonl").read_text(encoding="utf-8").splitlines()]
    made = {item.id: item for item in BENCHMARK.items.read_pool(out).items}
    assert [report["instance"] for report in reports] == list(items)
    assert [report["made"] for report in reports] == list(made)
    for report in reports:
        before, after = items[report["instance"]], made[report["made"]]
        if report["outcome"] == "reached":
            assert len(work_out(after.task.model, after.task.question).answers) == 1
            assert bool(report["told"]) is (before.labels.size > 1)
        else:
            assert report["outcome"] == "impossible"
            assert (before.task.question.type, after) == ("abduction", before)
    assert {report["outcome"] for report in reports} == {"reached", "impossible"}
    files = sorted(certificates.iterdir())
    assert (
        len(files) == sum(report["certified"] for report in reports) == sum(r["outcome"] == "reached" for r in reports)
    )
    assert main(["verify", *map(str, files), str(pool)]) == 0
    assert main(["harden", str(pool), "--out", str(tmp_path / "two.jsonl"), "--workers", "2"]) == 1
    assert (tmp_path / "two.jsonl").read_bytes() == out.read_bytes()
    one = next(report["instance"] for report in reports if report["outcome"] == "reached")
    assert main(["harden", str(pool), "--out", str(tmp_path / "one.jsonl"), "--only", one]) == 0


def test_an_item_without_its_world_is_written_unchanged(
    wrong: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["harden", str(wrong), "--out", str(tmp_path / "hard.jsonl")]) == 1
    assert capsys.readouterr().err.count("failed: ") == 3
    assert BENCHMARK.items.read_pool(tmp_path / "hard.jsonl").items == BENCHMARK.items.read_pool(wrong).items


def test_training_data_are_written_in_the_order_of_the_curriculum(
    pool: Path, wrong: Path, tmp_path: Path, items: dict[str, CausimItem], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "training.jsonl"
    assert main(["training", str(pool), "--order", "version", "--out", str(out)]) == 0
    header, *lines = (json.loads(line) for line in out.read_text(encoding="utf-8").splitlines())
    assert header["order"] == "version"
    versions = [line["level"]["version"] for line in lines]
    assert versions == sorted(versions)
    assert len(lines) == len(items)
    for line in lines:
        verdict = BENCHMARK.scoring.score(
            items[line["id"]], BENCHMARK.scoring.extract(items[line["id"]], line["solution"]), ()
        )
        assert verdict["correct"] is True
    main(["schema", "training"])
    capsys.readouterr()
    assert main(["training", str(wrong), "--out", str(tmp_path / "some.jsonl")]) == 0
    assert "2 examples written" in (said := capsys.readouterr().err)
    assert "left out, without a solution: 1 instance" in said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (("harden", "POOL", "--out", "OUT", "--only", "nothing"), "no instance 'nothing'"),
        (("training", "POOL", "--out", "OUT", "--order", "hardest"), "unknown order 'hardest'"),
        (("training", "POOL", "--out", "OUT", "--only", "nothing"), "no instance 'nothing'"),
        (("generate", "--benchmark", "causim", "--seed", "1", "--strata", "ring", "--out", "OUT"), "unknown suite"),
        (("run", "exact", "POOL", "--out", "OUT", "-o", "max_worlds=3"), "max_worlds"),
        (("run", "static", "POOL", "--out", "OUT"), "static"),
    ],
)
def test_what_is_not_for_causim_is_refused_in_one_line(
    line: tuple[str, ...], said: str, pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"POOL": str(pool), "OUT": str(tmp_path / "out")}
    assert said in refused(capsys, *(places.get(word, word) for word in line))
    assert not (tmp_path / "out").exists()


def _sum_modulo_two(nodes: int, parents: int) -> str:
    """Each node is the sum of its noise and the nodes before it, a few of them picked by arithmetic."""
    parts, driver, outputs = ["import random"], ["def run_once(seed=None):"], []
    for i in range(nodes):
        above = sorted({(i * 7 + 13 * k) % i for k in range(parents)}) if i else []
        names = ", ".join([*(f"p{k}" for k in above), "u"])
        total = " + ".join(f"p{k}" for k in above) or "0"
        parts.append(f"def U_N{i}():\n    return random.choice([0, 1])\ndef f_N{i}({names}):")
        parts.append(f"    return ({total} + u) % 2")
        given = ", ".join([*(f"n{k}" for k in above), f"u{i}"])
        driver += [f"    u{i} = U_N{i}()", f"    n{i} = f_N{i}({given})"]
        outputs.append(f"'N{i}': n{i}")
    return "\n".join([*parts, *driver, f"    return {{{', '.join(outputs)}}}"]) + "\n"


@pytest.mark.parametrize("nodes", [40, 60])
def test_pool_check_of_a_dense_counterfactual_ends_and_says_what_it_did_not_check(
    nodes: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calibrant.audits.causim.items.MAX_WORK", 20_000_000)  # a fifteenth, for the time of this test
    noise = tuple(sorted(f"U_N{i}" for i in range(nodes)))
    seen = {f"N{i}": "0" for i in range(nodes - 6, nodes)}
    asked = Question("counterfactual", unknown=noise, do={"N0": "1"}, observed=seen)
    source = _sum_modulo_two(nodes, 4)
    item = CausimItem("dense", Task(source, asked, "stochastic"), Labels(4, False), version=nodes)
    path = tmp_path / "dense.jsonl"
    write_pool(path, [item], name="dense")
    started = time.process_time()
    code = main(["pool", "check", str(path)])
    assert time.process_time() - started < 60
    out = capsys.readouterr().out
    assert "ok      stated labels" not in out
    assert ("not checked: size" in out and code == 0) or ("size 4, found at least 5" in out and code == 1)


def test_pool_check_refuses_a_false_number_of_nodes_and_a_topology_that_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    item = CausimItem("open", Task(PROGRAM, Question("deduction", unknown=NOISE), "stochastic"), Labels(6, False))
    ways = {"right": ("tree", 3), "many": ("tree", 7), "fruit": ("banana", 3), "line": ("chain", 3)}
    items = [replace(item, id=name, topology=topology, version=v) for name, (topology, v) in ways.items()]
    path = tmp_path / "pool.jsonl"
    write_pool(path, items, name="ways")
    assert main(["pool", "check", str(path), "--json"]) == 1
    (report,) = json.loads(capsys.readouterr().out)
    failures = {(found["instance"], found["check"]): found["reason"] for found in report["failures"]}
    assert failures == {
        ("many", "v is the number of nodes"): "v 7, but the program has 3 nodes",
        ("fruit", "the topology is that of the graph"): "unknown topology 'banana'; known: chain, star, inverted_star, "
        "tree, layered, poly_tree, asia, cancer, survey, nihss",
        ("line", "the topology is that of the graph"): "the graph is no chain",
    }


# --- A question drawn: who is set, reached and changed, worked out by hand; the page as a browser lays it out ---------
DRAWN_PROGRAM = """
import random

def U_A():
    return random.choice(["hot", "<b>"])

def U_B():
    return random.choice([0, 1, 2])

def U_C():
    return random.choice([0, 1])

def U_D():
    return random.choice([0, 1])

def f_A(u):
    return u

def f_B(a, u):
    return u if a == "hot" else 5

def f_C(u):
    return u

def f_D(a, b, c, u):
    return b + c + u if a == "hot" else c + u

def run_once(seed=None):
    u_a = U_A()
    a = f_A(u_a)
    u_b = U_B()
    b = f_B(a, u_b)
    u_c = U_C()
    c = f_C(u_c)
    u_d = U_D()
    d = f_D(a, b, c, u_d)
    return {"a": a, "b": b, "c": c, "d": d}
"""
WORLD = {"U_A": '"hot"', "U_B": "0", "U_C": "1", "U_D": "1"}
# A = hot, B = 0, C = 1, D = 0 + 1 + 1; under do(B := 2) D is 4, under do(A := "<b>") B is 5 and D stays 2
DRAWN_VALUES = {"A": '"hot"', "B": "0", "C": "1", "D": "2"}
DRAWN_NOISE = tuple(WORLD)
SET_B = Question("counterfactual", {"U_C": "1"}, ("U_A", "U_B", "U_D"), {"B": "2"}, DRAWN_VALUES)
SET_A = Question("counterfactual", {}, DRAWN_NOISE, {"A": '"<b>"'}, DRAWN_VALUES)
SEEN_ONLY = Question("abduction", {}, DRAWN_NOISE, {}, DRAWN_VALUES)
TEXT = """\
set-b
counterfactual-deterministic; program of 4 nodes; U ? n: unknown noise with n values; 12 worlds agree with the fixed \
noise, 1 fit; answers: 1 right

node   from     noise    seen   do    noise was  value  under do  changed
A      -        U_A ? 2  "hot"        "hot"      "hot"  "hot"
. B    A        U_B ? 3  0      := 2  0          0      2         yes
C      -        U_C = 1  1            1          1      1
. . D  A, B, C  U_D ? 2  2            1          2      4         yes"""


def item(name: str, question: Question, *, world: bool = True) -> CausimItem:
    return CausimItem(
        name, Task(DRAWN_PROGRAM, question, "deterministic"), Labels(1, False), Sealed(WORLD if world else {})
    )


def marks(question: Question, *, reveal_sealed: bool) -> dict[str, set[Mark]]:
    return {
        node.name: set(node.marks)
        for node in question_picture(item("x", question), reveal_sealed=reveal_sealed).nodes
        if node.marks
    }


def test_what_is_set_reached_and_changed_is_marked() -> None:
    assert marks(SET_B, reveal_sealed=False) == {"B": {Mark.SET}, "D": {Mark.REACHED}}
    assert marks(SET_B, reveal_sealed=True) == {"B": {Mark.SET}, "D": {Mark.REACHED, Mark.CHANGED}}
    assert marks(SET_A, reveal_sealed=True) == {"A": {Mark.SET}, "B": {Mark.REACHED, Mark.CHANGED}, "D": {Mark.REACHED}}
    assert marks(SEEN_ONLY, reveal_sealed=True) == {}


def test_the_text_has_graph_noise_do_and_change() -> None:
    assert layered_text(question_picture(item("set-b", SET_B), reveal_sealed=True)) == TEXT


def test_without_gold_no_value_is_shown_that_the_question_does_not_tell() -> None:
    text = layered_text(question_picture(item("x", SET_A), reveal_sealed=False))
    assert text.splitlines()[3].split() == ["node", "from", "noise", "seen", "do"]
    assert "fit" not in text.splitlines()[1]
    plain = question_picture(item("x", SET_A), reveal_sealed=False)
    assert [node.value for node in plain.nodes] == [':= "<b>"', "0", "1", "2"]
    assert {key for node in plain.nodes for key in node.facts or {}} == {"seen", "do"}


def test_where_the_world_is_not_known_one_that_fits_is_shown() -> None:
    alone = question_picture(item("x", SET_B, world=False), reveal_sealed=True)
    assert [(node.facts or {})["value"] for node in alone.nodes] == ['"hot"', "0", "1", "2"]
    never = Question("counterfactual", {}, DRAWN_NOISE, {"B": "2"}, {**DRAWN_VALUES, "D": "9"})
    assert "value" not in (question_picture(item("x", never, world=False), reveal_sealed=True).nodes[0].facts or {})


@pytest.fixture
def drawn_pool(tmp_path: Path) -> Path:
    path = tmp_path / "pool.jsonl"
    write_pool(path, [item("set-b", SET_B), item("set-a", SET_A)])
    return path


def test_show_draws_above_the_prompt(drawn_pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(drawn_pool), "set-b", "--gold"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(TEXT + "\n\nA system of variables is described below.")
    assert json.loads(printed[printed.index('\n{\n "sealed"') :])["sealed"]["world"]["U_A"] == "hot"
    assert main(["show", str(drawn_pool), "set-b"]) == 0
    assert "under do" not in capsys.readouterr().out


def test_a_page_is_made_of_a_question(drawn_pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(drawn_pool), "set-a", "--html", str(tmp_path / "p.html")]) == 0
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "<b>&quot;" not in page
    assert "&lt;b&gt;" in page
    assert "The sealed world" not in page
    assert "//" not in page.replace("http://www.w3.org/2000/svg", "")
    assert main(["show", str(drawn_pool), "set-a", "--gold", "--html", str(tmp_path / "gold.html")]) == 0
    assert "The sealed world" in (tmp_path / "gold.html").read_text(encoding="utf-8")


LAID_OUT = """
const boxes = [...document.querySelectorAll('.node .box')].map(box => box.getBoundingClientRect());
const noise = [...document.querySelectorAll('.noise rect')].map(box => box.getBoundingClientRect());
const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
const all = [...boxes, ...noise];
said.push(boxes.length, noise.length, document.querySelectorAll('path.arrow').length);
said.push(document.querySelectorAll('.arrow.cut').length);
said.push(all.filter((a, i) => all.some((b, j) => i < j && meet(a, b))).length);
said.push(all.filter(a => a.left < 0 || a.right > document.documentElement.clientWidth).length);
const texts = [...document.querySelectorAll('.node')].flatMap(node => {
  const box = node.querySelector('.box').getBoundingClientRect();
  return [...node.querySelectorAll('.name, .value')].filter(text => {
    const own = text.getBoundingClientRect();
    return own.left < box.left || own.right > box.right || own.top < box.top || own.bottom > box.bottom;
  });
});
said.push(texts.length);
said.push([...document.querySelectorAll('.changed .name')].map(name => name.textContent).join(' '));
said.push(document.documentElement.scrollWidth > document.documentElement.clientWidth);
"""


def measured(drawn: CausimItem, folder: Path) -> list[str]:
    """Measure a picture in a page that shows it no wider than itself."""
    drawing = standalone_svg(layered_svg(question_picture(drawn, reveal_sealed=True)))
    style = "<style>svg{max-width:100%;height:auto}body{margin:8px}</style>"
    return pressed(f"<!DOCTYPE html><html><head>{style}</head><body>{drawing}</body></html>", LAID_OUT, folder)


@needs_chromium
def test_the_page_draws_every_node_inside_itself_and_marks_what_changes(drawn_pool: Path, tmp_path: Path) -> None:
    # nodes, noises, edges, cut ones; overlaps, outside, texts beyond boxes; changed; wider than the window
    assert measured(item("set-a", SET_A), tmp_path) == ["4", "4", "4", "0", "0", "0", "0", "B", "false"]
    assert measured(item("set-b", SET_B), tmp_path)[3:8] == ["1", "0", "0", "0", "D"]


@needs_chromium
@pytest.mark.parametrize("topology", ["inverted_star", "poly_tree"])
def test_generated_programs_of_ten_nodes_fit_the_page(topology: str, tmp_path: Path) -> None:
    drawn = [one for one in BENCHMARK.suites.draw([topology], 5, 20) if one.version == 10][-1]
    said = measured(drawn, tmp_path)
    assert said[:2] == ["10", "10"]
    assert said[2] == str(sum(len(node.parents) for node in drawn.task.model.nodes))
    assert (said[4:7], said[8]) == (["0", "0", "0"], "false")
