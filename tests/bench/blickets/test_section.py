"""The section of a report on blickets, with its plot of earned, missed, lucky and short answers."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import msgspec
import pytest

from calibrant.audits.attribution import Kind
from calibrant.baselines.blickets.context import first_firings
from calibrant.bench.blickets.report import KINDS
from calibrant.bench.blickets.scoring import METRICS
from calibrant.bench.cli import main
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.report.rows import Answer, Grouping, Row, section_rows
from calibrant.bench.report.sections import attribution_plot, kind_shares
from calibrant.bench.runs.records import Record, folder_records
from calibrant.dsl.blickets.records import read_pool
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import short_repr
from tests.support.commands import refused
from tests.support.report_rows import Answers, answer, blicket_record, graded, write_records, write_run

# --- `calibrant report` on blickets: by condition with intervals, beside the paper's rows, in every format ------------
FOUR = (
    graded(exposed="RE", steps=4),
    graded(exposed="RE", steps=6),
    graded(correct=False, exposed="exactly-N", steps=8),
    graded(steps=10),
)


def _records(stratum: str = "easy-3", **changes: object) -> list[Record]:
    return [blicket_record(i, score, stratum=stratum, **changes) for i, score in enumerate(FOUR)]


def made(out: Path, *arguments: object) -> str:
    out.unlink(missing_ok=True)
    assert main(["report", *map(str, arguments), "--out", str(out)]) == 0
    return out.read_text(encoding="utf-8")


def _figures(text: str) -> dict[tuple[str, str, str, str], tuple[str, str, str]]:
    rows = csv.DictReader(io.StringIO(text))
    return {
        (row["table"], row["source"], row["system"], row["column"]): (row["value"], row["low"], row["high"])
        for row in rows
    }


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_records(tmp_path / "run", _records())


def test_blickets_have_tables_of_their_own_and_none_of_another_benchmark(run: Path, tmp_path: Path) -> None:
    tables = [line.split(",")[0] for line in made(tmp_path / "r.csv", run).splitlines()[1:]]
    assert list(dict.fromkeys(tables)) == ["standing", "evidence", "errors", "attribution", "5a", "5b", "7"]
    for word in ("TrainExact", "Valid", "HeldoutExact", "latent SCM"):
        assert word not in made(tmp_path / "r.html", run)


def test_shares_have_score_intervals_and_means_students(run: Path, tmp_path: Path) -> None:
    """Three of four: (3/4 + z²/8 ± z sqrt(3/64 + z²/64)) / (1 + z²/4) with z² = 3.8415; 4 to 10: 7 ± 3.182 * 1.291."""
    found = _figures(made(tmp_path / "r.csv", run))
    assert found["standing", "ours", "static", "accuracy"] == ("0.750", "0.301", "0.954")
    assert found["standing", "ours", "static", "steps"] == ("7.0", "2.9", "11.1")
    assert found["standing", "ours", "static", "exactly_n_rate"][0] == "0.250"
    assert found["standing", "ours", "static", "eligible_accuracy"] == ("*", "", "")  # over two
    assert found["evidence", "ours", "static", "activations"] == ("1.0", "", "")  # all alike: no interval from that
    assert found["errors", "ours", "static", "mixed"] == ("0.250", "0.046", "0.699")
    kinds = [found["attribution", "ours", "static", kind][0] for kind in ("earned", "missed", "lucky", "short")]
    assert kinds == ["0.750", "0.000", "0.000", "0.250"]


def test_the_papers_rows_stand_beside_ours_under_the_same_condition(run: Path, tmp_path: Path) -> None:
    found = _figures(made(tmp_path / "r.csv", run, "--paper"))
    assert found["5a", "paper", "Base", "accuracy"] == ("87.3", "", "")
    assert found["5a", "ours", "static", "accuracy"] == ("75.0", "30.1", "95.4")
    assert found["5a", "ours", "static", "switched_accuracy"][0] == "66.7"
    alone = made(tmp_path / "alone.csv", run)
    assert ",paper," not in alone
    assert _figures(alone)["5a", "ours", "static", "accuracy"] == ("75.0", "30.1", "95.4")
    elsewhere = write_records(tmp_path / "elsewhere", _records("of my own"))
    assert {key[0] for key in _figures(made(tmp_path / "e.csv", elsewhere))} == {
        "standing",
        "evidence",
        "errors",
        "attribution",
    }


def test_the_items_decide_on_the_condition_where_their_pool_is_given(tmp_path: Path) -> None:
    pool, renamed = tmp_path / "pool.jsonl", tmp_path / "renamed.jsonl"
    drawn = ["generate", "--benchmark", "blickets", "--seed", "1", "--strata", "hard-3", "--per-stratum", "2"]
    assert main([*drawn, "--out", str(pool)]) == 0
    renamed.write_text(pool.read_text().replace('"stratum":"hard-3"', '"stratum":"easy-3"'))
    assert main(["run", "static", str(renamed), "--out", str(tmp_path / "run"), "--workers", "1"]) == 0
    believed = _figures(made(tmp_path / "a.csv", tmp_path / "run"))
    known = _figures(made(tmp_path / "b.csv", tmp_path / "run", "--pools", renamed))
    assert ("5a" in {key[0] for key in believed}, "6" in {key[0] for key in believed}) == (True, False)
    assert ("5a" in {key[0] for key in known}, "6" in {key[0] for key in known}) == (False, True)
    assert "is read off their stratum" in made(tmp_path / "a.md", tmp_path / "run")
    assert "is read off their stratum" not in made(tmp_path / "b.md", tmp_path / "run", "--pools", renamed)


def test_table_nine_counts_what_the_records_say_of_db4(tmp_path: Path) -> None:
    """Two RE and correct, of which one with DB4; at exactly N, wrong, with DB4; before the switch, with DB1 alone."""
    fired: tuple[dict[str, int], ...] = ({"DB4": 12}, {}, {"DB3": 9, "DB4": 14}, {"DB1": 6})
    watched = [
        msgspec.structs.replace(record, protocol="cg+db", provenance={"fired": behaviours})
        for record, behaviours in zip(_records(), fired, strict=True)
    ]
    found = _figures(made(tmp_path / "r.csv", write_records(tmp_path / "watched", watched)))
    ours = {column: value[0] for (table, source, _, column), value in found.items() if (table, source) == ("9", "ours")}
    assert ours == {
        "switched": "3",
        "firings": "2",
        "true": "1",
        "false": "1",
        "missed": "1",
        "sensitivity": "50.0",
        "precision": "50.0",
    }
    old = made(tmp_path / "old.csv", write_records(tmp_path / "old", _records()))
    assert not any(line.startswith("9,") for line in old.splitlines())  # they do not say what fired


def test_a_run_records_which_behaviours_fired(tmp_path: Path) -> None:
    pool, out = tmp_path / "pool.jsonl", tmp_path / "run"
    drawn = ["generate", "--benchmark", "blickets", "--seed", "1", "--strata", "stochastic", "--per-stratum", "3"]
    assert main([*drawn, "--out", str(pool)]) == 0
    for protocol in ("cg+db", "cg"):
        assert main(["run", protocol, str(pool), "--out", str(out), "--workers", "1"]) == 0
    said = {(record.protocol, record.instance): record.provenance for record in folder_records(out)}
    items = {item.id: item for item in read_pool(pool).items}
    for record in folder_records(out):
        steps = [Step(step.action, step.reading, step.refused, step.cost) for step in record.steps or []]
        fired = first_firings(items[record.instance].task, steps)
        assert said[record.protocol, record.instance] == ({"fired": fired} if record.protocol == "cg+db" else {})
    assert any("DB3" in provenance.get("fired", {}) for provenance in said.values())


@pytest.mark.parametrize("suffix", [".html", ".md", ".csv", ".tex", ".txt"])
def test_the_bytes_depend_on_the_answers_alone(tmp_path: Path, suffix: str) -> None:
    records = [*_records(), *_records(protocol="quiet"), *_records("hard-3", pool_digest="e" * 64)]
    one = made(tmp_path / f"one{suffix}", write_records(tmp_path / "one", records))
    assert made(tmp_path / f"two{suffix}", write_records(tmp_path / "two", reversed(records))) == one


@pytest.mark.parametrize("suffix", [".md", ".tex", ".txt"])
def test_in_a_mixed_folder_one_benchmark_comes_after_the_other(run: Path, tmp_path: Path, suffix: str) -> None:
    other = write_run(tmp_path / "other", Answers("alpha", [answer(1, 1, 1.0)] * 8))
    alone, blickets = made(tmp_path / f"a{suffix}", other), made(tmp_path / f"b{suffix}", run)
    for order in ([other, run], [run, other]):
        both = made(tmp_path / f"both{suffix}", *order)
        assert both.startswith(alone.rstrip("\n"))
        assert both.endswith(blickets)
        assert len(both) - len(alone) - len(blickets) in (0, 1)


def test_a_mixed_page_has_a_heading_for_each_and_every_id_once(run: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other", Answers("alpha", [answer(1, 1, 1.0)] * 8))
    page = made(tmp_path / "both.html", other, run)
    assert page.index('id="tab-replayscm"') < page.index('id="tab-blickets"')
    assert page.count('role="tabpanel"') == 3
    assert page.index('id="table-1"') < page.index('id="table-standing"')


def test_systems_that_differ_in_options_and_pools_of_one_name_are_told_apart(tmp_path: Path) -> None:
    records = [*_records(config={"order": 1}), *_records(config={"order": 2}), *_records(pool_digest="e" * 64)]
    text = made(tmp_path / "r.md", write_records(tmp_path / "run", records), "--table", "standing")
    assert "static (order=1)" in text
    assert "static (order=2)" in text
    assert "p (dddddddd)" in text
    assert "p (eeeeeeee)" in text


def test_what_is_missing_or_crashed_is_said(tmp_path: Path) -> None:
    first, second, *_ = _records()
    crashed = blicket_record(1, graded(correct=False), outcome="crashed")
    text = made(tmp_path / "r.txt", write_records(tmp_path / "run", [first, crashed]), "--table", "standing")
    assert "static: 2 of 4 items of p; rates are over those." in text.replace("\n", " ")
    assert "1 of 2 answers of static to p are crashes" in text.replace("\n", " ")
    assert "crashes" not in made(tmp_path / "s.txt", write_records(tmp_path / "other", [first, second]))


def test_names_are_text_and_nothing_else(tmp_path: Path) -> None:
    hostile = "<script>alert('1')</script>\"&"
    records = _records(hostile, protocol=hostile, pool=hostile, setting=hostile)
    page = made(tmp_path / "r.html", write_records(tmp_path / "run", records))
    assert "<script>alert" not in page
    assert page.count("<script>") == 1


def test_bad_input_is_refused_in_one_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no answers that belong into table 1" in refused(capsys, "report", run, "--table", "1")
    assert "no answers that belong into table 11" in refused(capsys, "report", run, "--table", "11")
    known = refused(capsys, "report", run, "--table", "Z.9")
    assert known.startswith("unknown table 'Z.9'; known: 1, 2, ")
    ids = ["standing", "evidence", "errors", "attribution", "5a", "5b", "6", "7", "8", "9", "10", "11"]
    assert set(ids) <= set(known.partition("known: ")[2].split(", "))
    broken = blicket_record(0, graded() | {"class": "nonsense"})
    said = refused(capsys, "report", write_records(tmp_path / "broken", [broken]))
    assert said.startswith(f"static on {short_repr('I0')} of p: not a score of blickets: ")
    odd = blicket_record(0, graded(), provenance={"fired": ["DB4"]})
    said = refused(capsys, "report", write_records(tmp_path / "odd", [odd]))
    assert said.startswith(f"static on {short_repr('I0')} of p: not a score of blickets: ")


# --- The plot of earned, missed, lucky and short answers: the shares that it shows, and the file that it is -----------
def _answers(system: str, stratum: str, kinds: str) -> list[Answer]:
    return [
        (
            AnswerContext(system, "p", "d", 4, f"I{i}", "moderator", stratum, benchmark="blickets"),
            graded() | {"attribution": {"kind": kind, "decided": kind in ("earned", "missed"), "fits": True}},
        )
        for i, kind in enumerate(kinds.split())
    ]


def _rows(*answers: list[Answer]) -> list[Row]:
    return section_rows([one for group in answers for one in group], METRICS, Grouping.SETTING)


def test_shares_are_of_the_answers_under_each_condition() -> None:
    rows = _rows(_answers("a", "easy-3", "earned earned lucky short"), _answers("b", "hard-3", "missed earned"))
    found = kind_shares(rows, KINDS)
    assert list(found) == ["moderator, easy-3", "moderator, hard-3"]
    assert found["moderator, easy-3"] == {
        "a": {Kind.EARNED: 0.5, Kind.MISSED: 0, Kind.LUCKY: 0.25, Kind.SHORT: 0.25},
    }
    assert found["moderator, hard-3"]["b"][Kind.MISSED] == 0.5


def test_answers_without_attribution_give_no_plot() -> None:
    assert attribution_plot(_rows([(run, graded()) for run, _ in _answers("a", "easy-3", "earned")]), KINDS) is None


def test_the_plot_names_systems_conditions_and_kinds_as_text() -> None:
    plot = attribution_plot(_rows(_answers("<b>$x$", "easy-3", "earned lucky")), KINDS)
    assert plot is not None
    for text in ("&lt;b&gt;$x$", "moderator, easy-3", "earned", "missed", "lucky", "short"):
        assert text in plot.svg
    assert "<b>" not in plot.svg


def test_the_plot_is_a_file_and_the_page_has_its_figures(tmp_path: Path) -> None:
    run = write_records(tmp_path / "run", [blicket_record(i, graded(correct=i < 3)) for i in range(4)])
    assert main(["report", str(run), "--out", str(tmp_path / "r.html"), "--plots", str(tmp_path / "plots")]) == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert 'id="plot-attribution"' not in page  # its first screen has the same shares as bars
    assert "static: 3 earned, 1 short of 4" in page
    svg = (tmp_path / "plots" / "attribution.svg").read_text(encoding="utf-8")
    assert "moderator, easy-3" in svg
    assert "static" in svg
