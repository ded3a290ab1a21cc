"""`calibrant report`: one file that needs no network, the same bytes for equal answers, and it works in a browser."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from calibrant.bench.cli import main
from calibrant.bench.commands.demo import written_report
from calibrant.bench.core.registry import bundled_pool
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from tests.support.browser import needs_chromium, pressed
from tests.support.commands import jsonl, refused
from tests.support.replayscm.pools import ALL_ROWS, FOUR_MEMBERS, written_pool
from tests.support.report_rows import Answers, answer, write_run
from tests.support.stub_protocols import small_pool

VOID = {"meta", "input", "wbr"}
HIT, MISS = answer(1, 1, 1.0), answer(1, 0.5, 0.5)
ANSWERS = tuple(
    Answers(system, [HIT] * hits + [MISS] * (8 - hits), setting=setting, pool=f"{setting}.pool")
    for system, hits in (("alpha", 7), ("beta", 1))
    for setting in ("Ordered", "Block", "Hidden-order")
)


class Page(HTMLParser):
    """Elements of a page; one that is not closed where it should be is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def made(out: Path, *arguments: object) -> str:
    assert main(["report", *map(str, arguments), "--out", str(out)]) == 0
    return out.read_bytes().decode("utf-8")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", *ANSWERS)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("page")
    return made(folder / "report.html", write_run(folder / "run", *ANSWERS))


def test_the_page_is_well_formed_and_its_links_lead_somewhere(text: str) -> None:
    page = Page(text)
    assert len(set(page.ids)) == len(page.ids)
    links = [value.removeprefix("#") for tag, name, value in page.attributes if (tag, name) == ("a", "href")]
    assert {link for link in links if "/" not in link} <= set(page.ids)  # the others are read by the page's script
    assert {"replayscm-right", "table-1", "table-d-1", "table-paired", "replayscm-intervals"} <= set(links)
    assert {"replayscm/Block/alpha", "replayscm/Hidden-order/beta"} <= set(links)


def test_nothing_is_loaded_from_anywhere(text: str) -> None:
    page = Page(text)
    assert not {"link", "img", "iframe", "object", "embed", "base", "form", "image"} & set(page.tags)
    assert not {"src", "srcset", "action", "poster", "data"} & {name for _, name, _ in page.attributes}
    assert all(value.startswith("#") for _, name, value in page.attributes if name in ("href", "xlink:href"))
    assert re.findall(r"(?i)https?:|//[a-z]|@import|url\((?!#)|fetch\(|XMLHttp", text) == []
    (policy,) = [value for tag, _, value in page.attributes if tag == "meta" and "default-src" in value]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


@pytest.mark.parametrize("suffix", [".html", ".md", ".csv", ".tex", ".txt"])
def test_the_bytes_depend_on_the_answers_alone(tmp_path: Path, run: Path, suffix: str) -> None:
    """Not on the order of records, in how many folders they are, or when they were made."""
    once = made(tmp_path / f"one{suffix}", run)
    parts = {"b": ANSWERS[3:], "a": ANSWERS[:3]}
    late = "2031-12-31T23:59:59Z"
    shuffled = [write_run(tmp_path / name, *reversed(part), order=5, started=late) for name, part in parts.items()]
    assert made(tmp_path / f"two{suffix}", *shuffled) == once
    if suffix not in (".html", ".txt"):  # the texts have the times of one table: seen where it is printed
        return
    slower = write_run(tmp_path / "slower", *(one._replace(seconds=9.0) for one in ANSWERS))
    assert made(tmp_path / f"three{suffix}", slower) != once
    alone = made(tmp_path / f"four{suffix}", run, "--no-times")
    assert made(tmp_path / f"five{suffix}", slower, "--no-times") == alone


def test_formats_go_by_name_or_by_option(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert made(tmp_path / "r.tex", run).startswith(r"\begin{table}")
    assert made(tmp_path / "r.md", run, "--format", "csv").startswith("table,source,setting,")
    assert main(["report", str(run), "--table", "H.2", "--no-paper"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Table H.2. Calibration rows\nSetting ")
    assert "paper" not in printed


def test_searches_that_the_paper_has_are_named_as_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool, runs = tmp_path / "pool.jsonl", str(tmp_path / "runs")
    write_pool(small_pool(["good"] * 2), pool)
    assert main(["run", "staged-exact-search,exact", str(pool), "--out", runs, "--workers", "1"]) == 0
    capsys.readouterr()
    named = {}
    for paper in ("--paper", "--no-paper"):
        assert main(["report", runs, "--table", "H.2", paper, "--format", "csv"]) == 0
        rows = [*csv.DictReader(io.StringIO(capsys.readouterr().out))]
        named[paper] = {row["system"] for row in rows if row["pool"] != "paper"}
    assert named == {"--paper": {"exact", "symbolic exact-search"}, "--no-paper": {"exact", "staged-exact-search"}}
    assert main(["report", runs, "--table", "H.2", "--paper"]) == 0
    assert "Methods under the paper's names: staged-exact-search is symbolic exact-search." in capsys.readouterr().out


def test_plots_are_written_as_files_too(run: Path, tmp_path: Path) -> None:
    made(tmp_path / "r.csv", run, "--plots", tmp_path / "plots")
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {
        "ladder.svg",
        "train-heldout.svg",
        "time-size.svg",
    }
    assert "<svg" in (tmp_path / "plots" / "ladder.svg").read_text(encoding="utf-8")


def test_names_are_text_and_nothing_else(tmp_path: Path) -> None:
    hostile = "<script>alert('1')</script>\"&"
    folder = write_run(
        tmp_path / "h", *(one._replace(system=hostile, pool=f"{hostile}{one.setting}") for one in ANSWERS[:3])
    )
    text = made(tmp_path / "r.html", folder)
    assert "<script>alert" not in text
    assert Page(text).tags.count("script") == 3  # the page's own, and two that hold data


def test_audits_add_ceilings_and_the_ambiguity_plot(tmp_path: Path) -> None:
    """X3 = X1 and X2: one function fits all rows, four fit two of them, and one of the four replays the rest."""
    pool = written_pool(tmp_path / "p.jsonl", [ALL_ROWS] * 6 + [FOUR_MEMBERS] * 6)
    assert main(["audit", str(pool), "--out", str(tmp_path / "audits"), "--workers", "1"]) == 0
    assert main(["run", "exact", str(pool), "--out", str(tmp_path / "run"), "--workers", "1"]) == 0
    csv = made(tmp_path / "r.csv", tmp_path / "run", "--audits", tmp_path / "audits", "--table", "ceiling")
    (draw,) = [line.split(",") for line in csv.splitlines() if ",draw," in line]
    assert draw[8] == "0.625"  # six times 1 and six times 1/4
    (alike,) = [line.split(",") for line in csv.splitlines() if ",ceiling_if_alike," in line]
    assert alike[8] == "0.625"  # the four differ on held-out rows, so none of them can be better than one in four
    plots = tmp_path / "plots"
    made(tmp_path / "r.html", tmp_path / "run", "--audits", tmp_path / "audits", "--plots", plots)
    assert (plots / "ambiguity.svg").is_file()


def test_raw_predictions_become_rows(tmp_path: Path) -> None:
    """Gold itself on six of 24 instances, and no formula at all on two."""
    pool = bundled_pool("ordered")
    problems = read_pool(pool).problems[:8]
    golds = [{v: render(f) for v, f in p.sealed.gold.mechanisms.items()} for p in problems if p.sealed.gold]
    lines = [
        {"instanceId": p.id, "model": "GPT", "response": json.dumps({"mechanisms": gold})}
        for p, gold in zip(problems, golds, strict=True)
    ]
    lines[6:] = [line | {"response": "sorry"} for line in lines[6:]]
    file = jsonl(tmp_path / "predictions.jsonl", *lines)
    arguments = ["--predictions", file, "--pools", pool, "--table", "1", "--table", "F.12", "--no-paper"]
    csv = [line.split(",") for line in made(tmp_path / "r.csv", *arguments).splitlines()]
    found = {line[7]: line[8] for line in csv}
    assert (found["valid"], found["train_exact"], found["heldout_exact"]) == ("0.750", "0.750", "0.750")
    assert (found["num_train_exact"], found["num_alternatives"]) == ("6", "0")
    assert {(line[6], line[-1]) for line in csv[1:]} == {("8", "8 of 24")}


def test_bad_input_is_refused_in_one_line(tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    pool = bundled_pool("ordered")
    stray = jsonl(tmp_path / "stray.jsonl", {"instanceId": "nobody", "model": "m", "response": "{}"})
    assert "no records.jsonl there" in refused(capsys, "report", tmp_path / "empty")
    assert "no audits.jsonl there" in refused(capsys, "report", run, "--audits", run)
    assert "unknown table 'Z.9'; known: 1, 2, " in refused(capsys, "report", run, "--table", "Z.9")
    assert "give them with --pool" in refused(capsys, "report", "--predictions", stray)
    unknown = refused(capsys, "report", "--predictions", stray, "--pools", pool)
    assert "stray.jsonl: line 1: sample_ordered has no instance 'nobody'" in unknown
    twice = jsonl(
        tmp_path / "twice.jsonl", {"instanceId": read_pool(pool).problems[0].id, "model": "m", "response": "{}"}
    )
    said = refused(capsys, "report", "--predictions", twice, "--predictions", twice, "--pools", pool)
    assert said.endswith("of sample_ordered is given twice")
    verdicts = tmp_path / "verdicts.jsonl"
    assert main(["score", str(pool), str(twice), "--out", str(verdicts)]) == 0
    capsys.readouterr()
    said = refused(capsys, "report", verdicts, "--predictions", twice, "--pools", pool)
    assert f"is given twice; leave out {verdicts}: predictions with their pool are scored again" in said
    assert "folders of runs, --predictions or --official" in refused(capsys, "report")


def test_the_report_of_the_demo_has_plots_beside_it(tmp_path: Path, run: Path) -> None:
    written = written_report(run, tmp_path / "demo")
    assert written == {"report": tmp_path / "demo" / "report.html", "plot": tmp_path / "demo" / "ladder.svg"}
    assert {*written.values()} <= {*(tmp_path / "demo").iterdir()}


@needs_chromium
def test_sorting_and_the_switch_work_in_a_browser(text: str, tmp_path: Path) -> None:
    """Headless Chromium runs the page with a script appended that presses what a reader would press."""
    presses = """
      const visible = (row) => row.getClientRects().length > 0;
      const rows = (id) => [...document.querySelectorAll(`#${id} tbody tr:not(.group-title)`)];
      location.hash = "table-h-2"; dispatchEvent(new HashChangeEvent("hashchange"));
      said.push(rows("table-h-2").map((row) => `${row.cells[0].textContent} ${row.cells[1].textContent}`).join(","));
      const heads = [...document.querySelectorAll("#table-h-2 th button")];
      heads.find((head) => head.textContent === "HeldoutExact").click();
      said.push(rows("table-h-2").map((row) => row.cells[1].textContent).join(","));
      const printed = () => rows("table-h-2-paper").filter(visible).length;
      said.push(printed());
      document.getElementById("paper").click();
      said.push(printed());
      said.push(performance.getEntriesByType("resource").length);
    """
    assert pressed(text, presses, tmp_path) == [
        "Ordered alpha,Ordered beta,Block alpha,Block beta,Hidden-order alpha,Hidden-order beta",
        "beta,beta,beta,alpha,alpha,alpha",
        "6",
        "12",  # two of the paper for each of three settings
        "0",
    ]
