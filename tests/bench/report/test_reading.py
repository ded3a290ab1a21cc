"""How responses were read, in reports and tables: rates by each reader, and responses without an answer by reason."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

import calibrant
from calibrant.bench.core.metrics import UNDEFINED
from calibrant.bench.core.registry import benchmark
from calibrant.bench.report.sources import Sources, scored_answers, share_equal
from calibrant.datasets import bundled_pool
from calibrant.dsl.errors import CalibrantError
from tests.bench.commands.lines import BENCHMARKS
from tests.support.accessibility import DESKTOP, PHONE, THEMES, measure, needs_axe
from tests.support.commands import called

NOT_READ = "none of this is an answer"


def _pool(name: str) -> Path:
    return bundled_pool("ordered" if name == "replayscm" else name)


def _lines(name: str, *, with_faults: bool = True) -> list[dict[str, Any]]:
    """Return responses of two systems to two items: right ones, one in another form, and three without an answer."""
    bench, items = benchmark(name), list(calibrant.load_pool(_pool(name)))[:2]
    first, second = (json.dumps(bench.training.gold(item)) for item in items)
    if name == "causalab":  # its paper's rule needs a frequency or a hypothesis at the top
        first, second = (json.dumps({"answer": {"answer": json.loads(text)}}) for text in (first, second))
    lines = [
        {"instanceId": items[0].id, "model": "form", "response": first},
        {"instanceId": items[1].id, "model": "form", "response": json.dumps(second)},
    ]
    faults: list[dict[str, Any]] = [
        {"instanceId": items[0].id, "model": "faults", "error": {"code": "server_error"}},
        {"instanceId": items[0].id, "model": "faults", "response": None, "error": "batch_expired"},
        {"instanceId": items[1].id, "model": "faults", "response": NOT_READ, "finish_reason": "content_filter"},
        {"instanceId": items[1].id, "model": "faults", "response": NOT_READ, "finish_reason": "length"},
    ]
    return lines + (faults if with_faults else [])


def _write(lines: list[dict[str, Any]], folder: Path) -> Path:
    file = folder / "responses.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return file


def _run(*arguments: object) -> CompletedProcess[str]:
    result = called(*arguments)
    assert result.returncode == 0, result.stderr
    return result


def _cells(text: str) -> dict[tuple[str, str], dict[str, str]]:
    """Return the table of readings in a report as CSV: by setting and system, figures by column."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for row in csv.DictReader(io.StringIO(text)):
        if row["table"] == "reading":
            cells.setdefault((row["setting"], row["system"]), {})[row["column"].removeprefix("reason:")] = (
                row["value"] or UNDEFINED
            )
    return cells


@pytest.mark.parametrize("name", BENCHMARKS)
def test_report_and_table_have_the_same_figures(name: str, tmp_path: Path) -> None:
    """The report reads predictions, and verdicts of `score`; each counts the same."""
    pool, file, verdicts = _pool(name), _write(_lines(name), tmp_path), tmp_path / "verdicts.jsonl"
    _run("score", pool, file, "--out", verdicts)
    of_predictions = _run("report", "--predictions", file, "--pool", pool, "--format", "csv", "--table", "reading")
    of_verdicts = _run("report", verdicts, "--format", "csv", "--table", "reading")
    cells = _cells(of_predictions.stdout)
    assert cells == _cells(of_verdicts.stdout)
    rows = json.loads(_run("table", verdicts, "--json").stdout)["rows"]
    for row in rows:
        row_cells = cells[row["setting"], row["system"]]
        for key in ("published", "lenient"):
            assert row_cells.get(key, UNDEFINED) == (UNDEFINED if row.get(key) is None else f"{row[key]:.3f}")
        assert {reason: int(row_cells[reason]) for reason in row.get("reasons", {})} == row.get("reasons", {})
    counts = {
        key: sum(int(c[key]) for c in cells.values() if c.get(key, UNDEFINED) != UNDEFINED)
        for key in ("refused", "cut_off")
    }
    assert counts == {"refused": 1, "cut_off": 1}
    failed = [c for c in cells.values() if c.get("not_run") == "1" and c.get("infrastructure_error") == "1"]
    assert len(failed) == 1
    for result in (of_predictions, of_verdicts):
        assert "2 responses" in result.stderr
        assert "not_run 1, infrastructure_error 1" in result.stderr


def test_a_row_of_failed_requests_alone_is_in_the_table(tmp_path: Path) -> None:
    pool, file, verdicts = _pool("causim"), _write(_lines("causim")[:4], tmp_path), tmp_path / "verdicts.jsonl"
    _run("score", pool, file, "--out", verdicts)
    lines = _run("table", verdicts, "--columns", "n,not_run").stdout.splitlines()
    assert [line.split()[-2:] for line in lines if " faults " in line] == [["0", "2"]]


def test_lenient_less_correct_is_what_form_costs(tmp_path: Path) -> None:
    """By hand: the first answer as it has to be, the second a JSON text of one, which the lenient reader unwraps."""
    pool, file = _pool("causim"), _write(_lines("causim", with_faults=False), tmp_path)
    options = ("--pool", pool, "--by", "setting", "--format", "csv", "--table", "reading")
    cells = _cells(_run("report", "--predictions", file, *options).stdout)
    sums = {key: sum(float(c[key]) for c in cells.values()) for key in ("chosen", "lenient")}
    assert sums == {"chosen": len(cells) - 1, "lenient": len(cells)}
    lenient = _cells(_run("report", "--predictions", file, *options, "--extractor", "lenient").stdout)
    assert {c["chosen"] for c in lenient.values()} == {"1.000"}


def test_without_a_difference_there_is_no_table(tmp_path: Path) -> None:
    file = _write(_lines("causim")[:1], tmp_path)
    text = _run("report", "--predictions", file, "--pool", _pool("causim")).stdout
    assert "How responses were read" not in text
    assert "Systems by type" in text


def test_a_report_takes_the_options_on_lines_that_score_takes(tmp_path: Path) -> None:
    """A broken line is left out, a line that is there twice counts once, the model is named."""
    lines = _lines("causim", with_faults=False)
    file = _write([lines[0], lines[0], {"instanceId": "no such item", "response": "x"}], tmp_path)
    options = ("--on-error", "skip", "--duplicates", "drop", "--model", "named")
    report = _run("report", "--predictions", file, "--pool", _pool("causim"), *options, "--format", "csv")
    assert {row["system"] for row in csv.DictReader(io.StringIO(report.stdout)) if row["source"] == "ours"} == {"named"}
    score = _run("score", _pool("causim"), file, *options)
    for line in ("skipped line 3: ", "3 lines read, 1 skipped, 1 answer scored", "duplicate 1 (first: line 2"):
        assert line in report.stderr
        assert line in score.stderr


@needs_axe
def test_the_page_states_what_is_in_no_rate_and_links_to_the_table(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    _run("report", "--predictions", _write(_lines("logic"), tmp_path), "--pool", _pool("logic"), "--out", page)
    text = page.read_text(encoding="utf-8")
    assert "2 responses are in no rate: not run, or the request failed; " in text
    assert 'href="#table-reading"' in text
    assert 'id="table-reading"' in text
    for theme in THEMES:
        for width in (DESKTOP, PHONE):
            measured = measure(text, tmp_path, theme=theme, width=width)
            assert (measured.violations, measured.requests) == ([], [])
            assert measured.scroll_width <= width


def test_a_system_whose_requests_failed_is_in_the_json_of_a_table(tmp_path: Path) -> None:
    pool = _pool("logic")
    first, *_ = calibrant.load_pool(pool)
    stated = [
        {"instanceId": first.id, "model": "a", "response": "none"},
        {"instanceId": first.id, "model": "b", "response": None, "error": "timeout"},
    ]
    file, verdicts = tmp_path / "a.jsonl", tmp_path / "verdicts.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in stated), encoding="utf-8")
    _run("score", pool, file, "--out", verdicts)
    rows = {row["system"]: row for row in json.loads(_run("table", verdicts, "--json").stdout)["rows"]}
    assert (rows["b"]["n"], rows["b"]["reasons"]) == (0, {"infrastructure_error": 1})
    assert rows["b"].keys() >= rows["a"].keys()
    assert rows["b"]["accuracy"] is None
    collected = Sources(runs=[verdicts])
    for _ in range(2):  # read again, the failed response counts once
        collected.answers()
        assert [reason for _, reason in collected.excluded] == ["infrastructure_error"]


def test_verdicts_share_what_is_equal_and_lack_what_records_lack(tmp_path: Path) -> None:
    """A report holds all answers at once; the two kinds of parts are those that lines have and records do not."""
    lines, verdicts = _lines("replayscm", with_faults=False), tmp_path / "verdicts.jsonl"
    again = [{**line, "model": "again"} for line in lines]
    _run("score", _pool("replayscm"), _write([*lines, *again], tmp_path), "--out", verdicts)
    plain = list(scored_answers([verdicts]))
    shared = list(share_equal(scored_answers([verdicts])))
    assert len(plain) == 4
    assert plain[0][1]["perVariableTrainAccuracy"]
    for (context, score), (same_context, slim) in zip(plain, shared, strict=True):
        expected = json.loads(json.dumps(score))
        for key in ("perVariableTrainAccuracy", "perVariableHeldoutAccuracy"):
            expected.pop(key, None)
        for key in ("perVariable", "parentsByVar"):
            expected.get("candidateStats", {}).pop(key, None)
        assert (same_context, slim) == (context, expected)
    funnels = [len({id(score["funnel"]) for _, score in listed}) for listed in (plain, shared)]
    assert funnels == [4, len({json.dumps(score["funnel"]) for _, score in plain})]
    assert len({id(context.pool) for context, _ in plain}) == 1


@pytest.mark.parametrize("number", ["1.5", str(1 << 70), "NaN"])
def test_a_verdict_that_is_there_twice_counts_once_unless_it_differs(number: str, tmp_path: Path) -> None:
    """Keys may be in another order; numbers may have more than 64 bits."""
    verdicts, again = tmp_path / "verdicts.jsonl", tmp_path / "again.jsonl"
    _run("score", _pool("replayscm"), _write(_lines("replayscm", with_faults=False)[:1], tmp_path), "--out", verdicts)
    members = [(key, json.dumps(value)) for key, value in json.loads(verdicts.read_text(encoding="utf-8")).items()]

    def write(path: Path, listed: list[tuple[str, str]]) -> None:
        path.write_text("{" + ", ".join(f'"{key}": {value}' for key, value in listed) + "}\n", encoding="utf-8")

    write(verdicts, [*members, ("note", number)])
    write(again, [("note", number), *members])
    assert len(list(scored_answers([verdicts, again]))) == 1
    write(again, [*members, ("note", "0")])
    with pytest.raises(CalibrantError, match="differs"):
        list(scored_answers([verdicts, again]))
