"""`calibrant audit`, `verify` and `separate`: exit codes, records, refusals, and the report as a page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from calibrant.audits.replayscm.items import AuditOptions, audit_instance
from calibrant.bench.cli import main
from calibrant.bench.replayscm import audit as audit_run
from calibrant.bench.replayscm.audit import audit_pool
from calibrant.bench.replayscm.audit.page import agreement_plot, profile_plot
from calibrant.bench.replayscm.audit.records import certificate_name
from calibrant.bench.replayscm.audit.text import short_count
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.files import write_pool
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm, scm
from tests.support.browser import Tab, needs_chromium, pressed
from tests.support.commands import called, refused
from tests.support.replayscm.pools import ALL_ROWS, FOUR_MEMBERS, TWO_MEMBERS, audited, two_bundled, written_pool
from tests.support.replayscm.written import written_problem, written_scm, written_world


# --- `calibrant audit`, `verify` and `separate`: exit codes, records, one-line refusals -------------------------------
# The small pool is X3 = X1 and X2. With all four rows exactly one function fits; without the row 11 there are two,
# `and` and the constant 0; without 01 and 11 there are four. Held-out worlds show all rows, so one member replays them.
@pytest.fixture
def pool(tmp_path: Path) -> Path:
    return written_pool(tmp_path / "small.jsonl", [ALL_ROWS, TWO_MEMBERS, FOUR_MEMBERS])


@pytest.fixture
def bundled(tmp_path: Path) -> Path:
    return two_bundled(tmp_path / "two.jsonl")


def test_counts_are_those_of_the_truth_table(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = audited(capsys, pool)
    assert [record["instance"] for record in records] == ["I0", "I1", "I2"]
    for record, members in zip(records, ("1", "2", "4"), strict=True):
        found = record["findings"]
        assert [counted["max_parents"] for counted in found["classes"]] == [2, 3, 4, 5]
        assert {counted["members"] for counted in found["classes"]} == {members}
        assert {counted["heldout_exact"] for counted in found["classes"]} == {"1"}
        assert sum(map(int, found["spectrum"]["by_size"].values())) == int(members)
        assert [row["scored_cells"] for row in found["exposure"]] == [found["num_rows"]]
        assert found["left_out"] == {}
        local = {finding["exact"] for finding in found["bounded"]["stronger"]}
        assert local == {str(int(members) - 1)}


@pytest.mark.parametrize("width", [60, 80, 100, 150, None])
def test_a_piped_table_fits_the_columns_that_are_stated(
    pool: Path, width: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without COLUMNS it has 80. The instance and its verdict are never left out, and what is left out is named."""
    monkeypatch.setenv("COLUMNS", str(width or ""))
    done = called("audit", pool)
    _, headings, *lines = done.stdout.split("\n\n", maxsplit=2)[1].splitlines()
    names = re.split(" {2,}", headings.strip())
    assert (names[0], names[-1], len(lines)) == ("Instance", "Verdict", 3)
    note = re.search(r"Left out to fit the width: (.*); --json has all", done.stderr)
    missing = note[1].split(", ") if note else []
    assert len(names) + len(missing) == 12
    assert not set(names) & set(missing)
    assert bool(missing) is ((width or 80) < 150)
    assert all(len(line) <= (width or 80) for line in (headings, *lines))


def test_one_parent_is_too_few_for_a_conjunction(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Class k1: nothing fits all rows; without 11 the constant; without 01 and 11 the constant 0 and X2."""
    records = audited(capsys, pool, "--max-parents", "1")
    assert [record["findings"]["classes"][0]["members"] for record in records] == ["0", "1", "2"]
    assert main(["audit", str(pool), "--max-parents", "1", "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    assert "With at most 1 functional parent, one SCM fits 1, several fit 1 and none fits 1 of 3 instances." in printed


def test_a_line_that_is_no_record_is_refused(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "audits.jsonl").write_text("{}\n", encoding="utf-8")
    assert "line 1: not a record of an audit" in refused(capsys, "audit", pool, "--out", tmp_path, "--workers", "1")


def test_a_crash_costs_one_instance_and_is_tried_again(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = audit_instance

    def crashes(problem: Any, options: Any) -> Any:
        if problem.id == "I1":
            raise RuntimeError("no idea")
        return honest(problem, options)

    line = ["audit", str(pool), "--out", str(tmp_path), "--workers", "1"]
    with monkeypatch.context() as patched:
        patched.setattr(audit_run, "audit_instance", crashes)
        assert main(line) == 1
    printed = capsys.readouterr()
    assert "I1: RuntimeError: no idea" in printed.err
    assert "one SCM fits 1 and several fit 1 of 2 instances.\nNo verdict on 1 instance: 1 crashed.\n" in printed.out
    assert main(line) == 0
    assert "1 instance audited, 2 had a record already" in capsys.readouterr().err


def test_an_instance_that_takes_too_long_is_no_success(pool: Path) -> None:
    line = ("audit", pool, "--only", "I0", "--budget", "0.001", "--workers", "1", "--fail-on", "ambiguous")
    done = called(*line)  # of one item: each that takes too long costs a process
    assert done.returncode == 1
    assert "No verdict on 1 instance: 1 out of budget." in done.stdout
    assert "I0: not done in 0.001 seconds" in done.stderr


def test_certificates_are_verified_and_forgeries_refused(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "certificates"
    assert main(["audit", str(pool), "--certificates", str(folder), "--workers", "1"]) == 0
    files = [folder / f"I{i}.json" for i in range(3)]
    capsys.readouterr()
    assert main(["verify", *map(str, files), str(pool)]) == 0
    assert [line.split(":")[2].split()[0] for line in capsys.readouterr().out.splitlines()] == ["1", "2", "4"]
    forged = json.loads(files[1].read_text(encoding="utf-8")) | {"count": "3"}
    files[1].write_text(json.dumps(forged), encoding="utf-8")
    files[2].write_text("{", encoding="utf-8")
    assert main(["verify", *map(str, files), str(pool), "--json"]) == 1
    fine, miscounted, broken = json.loads(capsys.readouterr().out)
    assert [v["verified"] for v in (fine, miscounted, broken)] == [True, False, False]
    assert miscounted["reason"] == "it claims 3 members; plain counting finds 2"
    assert broken["reason"].startswith("not JSON")
    other = written_pool(tmp_path / "other.jsonl", [TWO_MEMBERS])
    assert main(["verify", str(files[0]), str(other)]) == 1
    assert "it is about other evidence" in capsys.readouterr().out


def test_verify_wants_certificates_that_are_there_and_a_pool(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "give at least one certificate" in refused(capsys, "verify", pool)
    assert refused(capsys, "verify", pool.parent / "none.json", pool).endswith("none.json: No such file or directory")


def test_certificates_have_names_that_a_folder_can_hold() -> None:
    assert certificate_name("RPOOL_7") == "RPOOL_7.json"
    for hostile in ("../up", "a/b", ".hidden", "x" * 200, ""):
        name = certificate_name(hostile)
        assert name.startswith("id_")
        assert len(name) < 60
        assert "/" not in name


def test_separate_finds_every_separating_intervention(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And against or: fixing one argument leaves half of the assignments different; fixing X3 none."""
    answer = tmp_path / "or.json"
    answer.write_text(json.dumps({"mechanisms": {"X3": "(or X1 X2)"}}), encoding="utf-8")
    assert main(["separate", str(pool), "I0", "--against", str(answer), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["notes"] == ["or.json does not fit: X3 in world good-0"]
    (pair,) = made["pairs"]
    found = {tuple(s["experiment"]["assignments"].items()): s["disagreement_rate"] for s in pair["separating"]}
    assert found == {(("X1", 0),): 0.5, (("X1", 1),): 0.5, (("X2", 0),): 0.5, (("X2", 1),): 0.5}
    assert pair["best"]["experiment"]["assignments"] == {"X1": 0}
    assert pair["witness"] == {
        "rootAssignment": {"X1": 0, "X2": 1},
        "differences": [{"variable": "X3", "reference": 0, "alternative": 1}],
    }
    assert main(["separate", str(pool), "I0", "--against", str(answer)]) == 0
    assert "witness  do(X1=0), X1=0 X2=1: X3 is 0 | 1" in capsys.readouterr().out


def test_separate_tries_several_targets_at_once(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And against or differ where X1 and X2 differ: in half of the rows unless X3 is set; X1=0, X2=1 shows it."""
    answer = tmp_path / "or.json"
    answer.write_text(json.dumps({"mechanisms": {"X3": "(or X1 X2)"}}), encoding="utf-8")
    line = ["separate", str(pool), "I0", "--against", str(answer)]
    assert main([*line, "--targets", "2", "--json"]) == 0
    (pair,) = json.loads(capsys.readouterr().out)["pairs"]
    assert [found["targets"] for found in pair["target_sets"]] == [[], ["X1"], ["X2"], ["X1", "X2"]]
    assert {found["disagreement_rate"] for found in pair["target_sets"]} == {0.5}
    both = pair["target_sets"][-1]
    assert both["constants_rate"] == 1.0
    assert sorted(both["constants"].values()) == [0, 1]
    assert main([*line, "--targets", "2"]) == 0
    assert "{X1, X2}  0.5000" in capsys.readouterr().out
    assert main([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"][0]["target_sets"] == []


def test_separate_compares_members(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for instance, number, pairs in (("I0", "2", 0), ("I1", "2", 1), ("I2", "4", 6)):
        assert main(["separate", str(pool), instance, "--members", number, "--json"]) == 0
        made = json.loads(capsys.readouterr().out)
        assert len(made["pairs"]) == pairs
        assert not any(pair["same_meaning"] for pair in made["pairs"])
    assert main(["separate", str(pool), "I1"]) == 0
    assert "2 only members" in capsys.readouterr().out


def test_separate_ends_with_the_intervention_that_closes_most(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the functions 0, X2, X1 and X2, X2 without X1 every pair differs where X2 is 1, which do(X2=1) shows most."""

    def last(*more: str) -> str:
        assert main(["separate", str(pool), *more]) == 0
        return capsys.readouterr().out.splitlines()[-1]

    assert last("I2", "--members", "4") == "closes most: do(X2=1) separates 6 of 6 pairs, mean rate 0.6667"
    assert last("I1") == "closes most: do(X1=1), rate 0.5000"
    assert last("I1", "--targets", "2").startswith("closes most: ")
    same = tmp_path / "same.json"
    same.write_text(json.dumps({"mechanisms": {"X3": "(and X2 X1)"}}), encoding="utf-8")
    assert last("I0", "--against", str(same)) == "closes most: there is nothing to tell apart"


def test_separate_points_to_more_targets_where_one_does_not_suffice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """X2 or X3 against X2 xor X3, where both are the constant 0: only setting the two of them to 1 shows it."""
    zero = "(xor X1 X1)"
    gold = written_scm("X1", X2=zero, X3=zero, X4="(or X2 X3)")
    world = written_world("w", "X1 X2 X3 X4", "0000 1000")
    problem = written_problem(HiddenOrder(("X1", "X2", "X3", "X4"), ("X1",)), gold, [world])
    path, answer = tmp_path / "p.jsonl", tmp_path / "a.json"
    write_pool(Pool("p", (problem,)), path)
    answer.write_text(json.dumps({"mechanisms": {"X2": zero, "X3": zero, "X4": "(xor X2 X3)"}}), encoding="utf-8")
    line = ["separate", str(path), problem.id, "--against", str(answer)]
    assert main(line) == 0
    printed = capsys.readouterr().out
    assert "no single-variable intervention separates them; --targets 2 tries two at once" in printed
    hint = "--targets 2 tries so many variables at once"
    assert printed.splitlines()[-1] == f"closes most: nothing that was tried separates any pair; {hint}"
    assert main([*line, "--targets", "2"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "closes most: per-row values of X2, X3, rate 0.2500"


def test_audit_says_in_a_line_which_world_closes_most(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(pool), "--workers", "1"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("One more world")]
    assert line.startswith("One more world removes, at best, 50.0 to 75.0 % of the SCMs that fit (median 62.5 %, of 2 ")
    assert "removes 50.0 % in I1. Most: " in line
    assert line.endswith("removes 75.0 % in I2.")
    assert main(["audit", str(pool), "--only", "I0", "--workers", "1"]) == 0
    assert "One more world" not in capsys.readouterr().out  # one member: nothing to close


def test_ceilings_are_printed_on_request(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The answer comes first; ceilings, which few ask for, stay in JSON and on the page."""
    assert main(["audit", str(pool), "--workers", "1"]) == 0
    plain = capsys.readouterr().out
    assert plain.startswith("With at most 4 functional parents, one SCM fits 1 and several fit 2 of 3 instances.\n")
    assert "ceiling" not in plain.lower()
    assert "If uniform" not in plain
    assert main(["audit", str(pool), "--workers", "1", "--ceilings"]) == 0
    asked = capsys.readouterr().out
    assert asked.startswith(plain.splitlines()[0])
    assert "Ceiling: probability that the best possible answer is right" in " ".join(asked.split())
    assert "ceiling, uniform: mean " in asked


def test_separate_refuses_what_is_no_answer(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = tmp_path / "answer.json"
    for text, reason in [("{", "not JSON"), ("[]", "not a JSON object"), ('{"mechanisms": {"X3": "X9"}}', "X9")]:
        answer.write_text(text, encoding="utf-8")
        assert reason in refused(capsys, "separate", pool, "I0", "--against", answer)
    assert "exclude each other" in refused(capsys, "separate", pool, "I0", "--against", answer, "--members", "3")


def test_counts_are_short_but_never_rounded_up() -> None:
    assert short_count("999999999") == "999999999"
    assert short_count("9999999999") == "9.99e9"
    assert short_count("74190873300490645405696") == "7.41e22"


def test_outputs_that_would_destroy_something_are_refused_before_the_work(
    bundled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = bundled.read_bytes()
    out = tmp_path / "out.jsonl"
    for line in (
        ["audit", bundled, "--html", bundled],
        ["harden", bundled, "--out", bundled],
        ["harden", bundled, "--out", out, "--report", bundled],
        ["harden", bundled, "--out", out, "--report", tmp_path / "." / "out.jsonl"],
        ["generate", "--seed", "1", "--out", out, "--audits", out],
    ):
        assert refused(capsys, *line).endswith(" too")
    assert "give --certificates too" in refused(capsys, "audit", bundled, "--max-size", "5")
    assert bundled.read_bytes() == before
    assert not out.exists()


def test_a_constant_that_nothing_can_say_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool, folder = tmp_path / "p.jsonl", tmp_path / "certificates"
    task = {"kind": "CIND_A_SCM", "variables": ["A"], "units": ["u0"], "training": [{"id": "train_0", "rows": ["1"]}]}
    instance = {"id": "I1", **task, "disclosure": {"type": "hidden_order", "roots": []}, "sealed": {}}
    lines = [{"format": "calibrant-pool", "version": 1, "name": "p"}, instance]
    pool.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    assert main(["audit", str(pool), "--certificates", str(folder), "--workers", "1"]) in (0, 1)
    assert "no certificate of I1: 'A' is constant in a member" in capsys.readouterr().err
    assert "I1: 'A' is constant in a member" in refused(capsys, "separate", pool, "I1")


# --- The audit report: well-formed, self-contained, the same bytes for the same audits, and it works in a browser -----
VOID = {"meta", "input", "br", "link", "img", "hr", "wbr"}
SVG_SHAPES = {"rect", "line", "circle", "path", "polygon", "polyline"}
EVIDENCE = [ALL_ROWS, TWO_MEMBERS, FOUR_MEMBERS]


class Page(HTMLParser):
    """Everything a test asks of a page; an element that is not closed where it should be is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.tags: list[str] = []
        self.cells: list[list[str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes.append((tag, name, value or ""))
        values = {name: value or "" for name, value in attrs}
        self.ids += [values["id"]] if "id" in values else []
        self.links += [values["href"]] if "href" in values else []
        if tag == "tr":
            self.cells.append([])
        if tag == "td":
            self.cells[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SVG_SHAPES, tag
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open and self.open[-1] not in ("tr", "tbody"):
            self.cells[-1][-1] += data


def written_report(evidence_pool: Path, file: Path, *more: str) -> str:
    assert main(["audit", str(evidence_pool), "--html", str(file), "--workers", "1", *more]) == 0
    return file.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def evidence_pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_pool(tmp_path_factory.mktemp("evidence") / "small.jsonl", EVIDENCE)


@pytest.fixture(scope="module")
def text(evidence_pool: Path) -> str:
    return written_report(evidence_pool, evidence_pool.with_name("report.html"))


def rows(text: str) -> list[list[Any]]:
    """Return the rows of the list: place of the page, id, verdict, fit, reason, further cells."""
    packed = re.search(r'<script type="application/json" id="rows">(.*?)</script>', text, re.DOTALL)
    assert packed is not None
    listed: list[list[Any]] = json.loads(packed[1])
    return listed


def test_the_page_is_well_formed_and_its_links_lead_somewhere(text: str) -> None:
    assert text.lstrip().startswith("<!DOCTYPE html>")
    page = Page(text)
    assert len(set(page.ids)) == len(page.ids)
    assert {"index", "filter", "rows", "page-0", "page-1", "page-2"} <= set(page.ids)
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert [row[0] for row in rows(text)] == [0, 1, 2]
    assert page.tags.count("details") == page.tags.count("summary")
    # two plots, a reliability diagram for each prior, a spectrum for every instance, two graphs of each open one,
    # and one of the decided one
    assert page.tags.count("svg") == 2 + 3 + 3 + 2 * 2 + 1


def test_nothing_is_loaded_from_anywhere(text: str) -> None:
    page = Page(text)
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    assert not {"src", "srcset", "action", "poster", "data", "xlink:href"} & {name for _, name, _ in page.attributes}
    assert all(link.startswith("#") for link in page.links)
    outside = text.replace('xmlns="http://www.w3.org/2000/svg"', "").replace("url(#", "")  # of its own arrow heads
    assert re.findall(r"(?i)https?:|//[a-z]|@import|url\(|fetch\(|XMLHttp", outside) == []
    (policy,) = [value for tag, name, value in page.attributes if tag == "meta" and "default-src" in value]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def test_equal_audits_give_equal_bytes(evidence_pool: Path, tmp_path: Path, text: str) -> None:
    again = written_report(evidence_pool, tmp_path / "again.html", "--out", str(tmp_path / "records"), "--workers", "2")
    assert again == text
    assert written_report(evidence_pool, tmp_path / "resumed.html", "--out", str(tmp_path / "records")) == text


def test_the_table_says_what_the_truth_tables_say(text: str) -> None:
    listed = [row[1:] for row in rows(text)]
    assert [(row[0], row[1], row[2], row[8:12]) for row in listed] == [
        ("I0", "unique, k \u2264 4", "1", ["1"] * 4),
        ("I1", "ambiguous, k \u2264 4", "2", ["2"] * 4),
        ("I2", "ambiguous, k \u2264 4", "4", ["4"] * 4),
    ]
    assert [row[12] for row in listed] == ["1", "0.75", "0.5"]  # patterns of X1 and X2 that are shown
    assert [row[13] for row in listed] == ["1", "0.5", "0.25"]
    assert [row[16] for row in listed] == ["1", "0.5", "0.25"]  # every member has a behaviour of its own
    assert "<b>1</b> unique" in text
    assert "<b>2</b> ambiguous" in text
    assert listed[1][3].startswith("No row shows X3 with X1 = ")


def test_names_from_the_pool_are_text_and_nothing_else(tmp_path: Path) -> None:
    hostile = "<script>alert('1')</script>\"&"
    path = written_pool(tmp_path / "p.jsonl", [ALL_ROWS], id=hostile)
    text = written_report(path, tmp_path / "r.html")
    assert "<script>alert" not in text
    page = Page(text)
    assert page.tags.count("script") == 2
    assert [row[1] for row in rows(text)] == [hostile]


def _survivors(evidence_pool: Path, folder: Path) -> list[tuple[Problem, dict[str, Any] | None]]:
    assert main(["audit", str(evidence_pool), "--out", str(folder), "--workers", "1"]) == 0
    from calibrant.dsl.replayscm.pools.files import read_pool

    records = [json.loads(line) for line in (folder / "audits.jsonl").read_text().splitlines()]
    problems = read_pool(evidence_pool).problems
    return [(p, r["findings"]["survivors"]) for p, r in zip(problems, records, strict=True)]


def _truth(model: Scm, clamp: tuple[str, int], roots: dict[str, int]) -> dict[str, int]:
    """Values of all variables at one root assignment under one intervention, by the row-at-a-time reference."""
    values = {**roots} | ({clamp[0]: clamp[1]} if clamp[0] in roots else {})
    for variable in model.order:
        values[variable] = clamp[1] if variable == clamp[0] else evaluate(model.mechanisms[variable], values)
    return values


def test_survivors_fit_and_differ_as_stated(evidence_pool: Path, tmp_path: Path) -> None:
    """Recomputed row by row over all assignments of the roots."""
    seen = 0
    for problem, shown in _survivors(evidence_pool, tmp_path / "records"):
        if shown is None:
            continue
        grammar = problem.task.grammar
        pair = [scm(shown["roots"], {v: parse(t, grammar) for v, t in shown[m].items()}) for m in ("one", "other")]
        assert all(replays_exactly(model, problem.task.training.worlds) for model in pair)
        ((variable, value),) = shown["experiment"]["assignments"].items()
        rows = [{"X1": a & 1, "X2": a >> 1} for a in range(4)]
        values = [[_truth(model, (variable, value), row) for model in pair] for row in rows]
        differing = [one["X3"] != other["X3"] for one, other in values]
        assert sum(differing) / 4 == shown["disagreement_rate"]
        witness = shown["witness"]
        one, other = values[rows.index(witness["rootAssignment"])]
        assert witness["differences"] == [{"variable": "X3", "reference": one["X3"], "alternative": other["X3"]}]
        seen += 1
    assert seen == 2
    (_, unique), (_, two), (_, four) = _survivors(evidence_pool, tmp_path / "records")
    assert unique is None
    assert two is not None
    assert (two["looked_at"], two["disagreement_rate"], two["means_gold"] != "") == (2, 0.5, True)
    assert four is not None
    assert (four["looked_at"], four["disagreement_rate"]) == (4, 1.0)  # the constant 0 against X2, under do(X2=1)


def test_plots_have_a_point_for_every_count_in_the_right_order(evidence_pool: Path, tmp_path: Path) -> None:
    audited = audit_pool(evidence_pool, tmp_path / "records", AuditOptions(1, (1, 2)))
    anchors = {record.instance: f"i{record.index}" for record in audited.records}
    svg = profile_plot(audited.records, anchors).svg
    heights = {(title.split(":")[0], item): y for item, _, y, title in _points(svg)}
    assert len(heights) == 3 * 2
    of = {
        (item, bound): heights[f"{item.upper()}, parents <= {bound}", item]
        for item in anchors.values()
        for bound in (1, 2)
    }
    ticks = {text: float(y) - 4 for y, text in re.findall(r'y="([0-9.]+)" text-anchor="end">([^<]*)<', svg)}
    assert of["i0", 1] == ticks["empty"]  # nothing of one parent fits: below the scale
    assert of["i0", 2] == of["i1", 1] == ticks["0"] < ticks["empty"]  # 1 member: log10 is 0; y grows down
    assert of["i2", 2] < of["i1", 2] == of["i2", 1] < of["i0", 2]  # 4, 2, 1
    wider = audit_pool(evidence_pool, tmp_path / "records", AuditOptions(2, (2,)))
    points = {item: (x, y) for item, x, y, _ in _points(agreement_plot(wider.records, anchors).svg)}
    assert points["i0"][0] < points["i1"][0] < points["i2"][0]
    assert points["i0"][1] < points["i1"][1] < points["i2"][1]  # shares 1, 1/2, 1/4


def _points(svg: str) -> list[tuple[str, float, float, str]]:
    """Return instance, place and title of each point of a chart."""
    root = ElementTree.fromstring(svg)
    return [
        (mark.get("data-item", ""), float(mark.get("cx", "")), float(mark.get("cy", "")), "".join(mark.itertext()))
        for mark in root.iter("{http://www.w3.org/2000/svg}circle")
        if mark.get("data-item")
    ]


def test_an_instance_says_what_a_drawn_truth_means(text: str) -> None:
    """The sections of I2: its four members are 0, X2, X1 and X2, and X2 without X1, each with its own behaviour."""
    section = text[text.index('<template id="page-2">') :]
    section = section[section.index("<h2>What the audit measured") :]
    cells = Page(f"<div>{section[: section.index('</section>')]}</div>").cells
    assert ["a draw", "uniform", "functional parents <= 4, any formula size, Ordered", "0.25", ""] in cells
    (uniform,) = [row for row in cells if row[:2] == ["the best answer", "if uniform"]]
    assert uniform[3] == "0.25"
    assert next(row[:5] for row in cells if row[:1] == ["4"]) == ["4", "4", "1", "0.25", "0.60"]  # log10 of 4
    assert "It removes 0.7500 of them on average, and 0.7500 with gold's outcome." in section
    assert "Up to three targets: 1 set of 0, 2 sets of 1, 1 set of 2 separate them." in section
    assert "Local predecessor patterns that scored rows show: 2 of 4." in section
    assert ["X3", "1", "2", "0", "2 of 4"] in cells
    assert "local: gold size +2, at most 8, 50000 functions a size" in section


@needs_chromium
def test_sorting_filtering_and_points_work_in_a_browser(text: str, tmp_path: Path) -> None:
    """Headless Chromium runs the page with a script appended that presses what a reader would press."""
    presses = """
      const ids = () => [...document.querySelectorAll("#index tbody th")].map((head) => head.textContent).join(" ");
      said.push(ids());
      const heads = document.querySelectorAll("#index thead button");
      heads[2].click(); heads[2].click(); said.push(ids());
      for (const column of [12, 16, 17]) { heads[column].click(); said.push(ids()); }
      const filter = document.getElementById("filter");
      filter.value = "AMBIGUOUS"; filter.dispatchEvent(new Event("input")); said.push(ids());
      document.querySelector("circle[data-item=I2]").dispatchEvent(new MouseEvent("click", {bubbles: true}));
      said.push(decodeURIComponent(location.hash));
      said.push(performance.getEntriesByType("resource").length);
    """
    orders = ["I0 I1 I2", "I2 I1 I0", *["I2 I1 I0"] * 2, "I1 I2 I0", "I1 I2"]
    assert pressed(text, presses, tmp_path) == [*orders, "#I2", "0"]


@needs_chromium
def test_every_chart_has_its_room(text: str, tmp_path: Path) -> None:
    """On the screen and in print: a container without an inner width would collapse to nothing."""
    (tmp_path / "audit.html").write_text(text, encoding="utf-8")
    for medium, width in (("", 1280), ("", 390), ("print", 700)):
        with Tab() as tab:
            tab.emulate(width, medium=medium)
            tab.open((tmp_path / "audit.html").as_uri())
            rooms = "(svg) => Math.round(svg.parentElement.getBoundingClientRect().width)"
            widths = tab.evaluate(f"[...document.querySelectorAll('.audit svg')].map({rooms})")
            assert len(widths) == 2 + 3
            assert all(room > 300 for room in widths), (medium, width)
