"""Micro-benchmarks, the history of their ratios, and curves of cost against size."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from signal import SIGKILL
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from calibrant.bench.cli import main as command
from calibrant.bench.core.registry import bundled_pool
from calibrant.bench.lab.limits import sweep as sweeping
from calibrant.bench.lab.limits.__main__ import TOPICS, _sweeps
from calibrant.bench.lab.limits.__main__ import main as measure_limits
from calibrant.bench.lab.limits.sweep import Ask, Curve, Point, Sweep, plot, points, table
from calibrant.bench.lab.speed import report
from calibrant.bench.lab.speed.__main__ import BENCHMARKS, main
from calibrant.bench.lab.speed.__main__ import main as speed
from calibrant.bench.lab.speed.memory import OURS, Cost, command_cost
from calibrant.bench.lab.speed.replayscm import noise, replay, scoring, structures, synthesis, tables
from calibrant.bench.lab.speed.replayscm.loading import write_official_file
from calibrant.bench.lab.speed.replayscm.replay import CLoop, NoCompilerError, compiled_loop, parse_nested
from calibrant.bench.lab.speed.report import (
    Comparison,
    Discipline,
    Rival,
    Row,
    append_release,
    by_stratum,
    measure,
    plot_history,
    print_report,
    read_history,
)
from calibrant.bench.lab.speed.report import main as print_history
from calibrant.bench.replayscm.rows.rates import RowwisePanels, gold_of, median_problem, random_candidates
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.formulas.formula import OPERATORS
from calibrant.dsl.formulas.table import PartialTable, TruthTable, full_mask, num_rows
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.evaluator import Candidate, compile_formulas
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.dsl.replayscm.world import Panel, World, pack_panels
from tests.support.commands import CHECKOUT
from tests.support.effort import SOAKING
from tests.support.replayscm.brute_force import counts
from tests.support.replayscm.strategies import arbitrary_worlds, scms, simulated_worlds
from tests.support.shared import shared_file


# --- Micro-benchmarks: the rivals do the same work as the code they are compared with, and the suite runs -------------
@pytest.fixture(scope="module")
def pool() -> tuple[Problem, ...]:
    return tuple(read_pool(bundled_pool("hidden-order")).problems)


@pytest.fixture(scope="module")
def loop() -> Iterator[CLoop]:
    try:
        with compiled_loop() as compiled:
            yield compiled
    except NoCompilerError as error:
        pytest.skip(str(error))


# --- replay -----------------------------------------------------------------------------------------------------------


@st.composite
def replays(draw: st.DrawFn) -> tuple[Scm, list[tuple[World, ...]]]:
    """Return a model and the worlds of two panels, which it explains or not."""
    model = draw(scms(operators=tuple(OPERATORS)))
    return model, [draw(draw(st.sampled_from([arbitrary_worlds, simulated_worlds]))(model)) for _ in range(2)]


def _expected(model: Scm, panels: list[tuple[World, ...]]) -> list[list[int]]:
    found = [counts(model, worlds, model.order) for worlds in panels]
    return [[count.cells, len(count.wrong), count.worlds, count.exact_worlds] for count in found]


@given(replays())
def test_rowwise_replay_counts_what_the_oracle_counts(case: tuple[Scm, list[tuple[World, ...]]]) -> None:
    model, worlds = case
    rowwise = RowwisePanels(Panel(model.variables, some) for some in worlds)
    assert rowwise.replay(Candidate(model.mechanisms, model.order)).tolist() == _expected(model, worlds)


@settings(deadline=None)  # the first example compiles the loop
@given(replays())
def test_the_c_loop_counts_what_the_oracle_counts(loop: CLoop, case: tuple[Scm, list[tuple[World, ...]]]) -> None:
    model, worlds = case
    wrong = scm(model.roots, {v: parse(f"(not {model.roots[0]})") for v in model.mechanisms})
    models = [model, wrong, model]
    programs = compile_formulas([Candidate(m.mechanisms, m.order) for m in models], model.variables)
    packed = pack_panels([Panel(model.variables, some) for some in worlds])
    assert loop.replay(programs, packed).tolist() == [_expected(m, worlds) for m in models]


def test_without_a_compiler_the_c_loop_is_left_out_visibly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = tmp_path / "one.jsonl"
    pool.write_text("".join(bundled_pool("ordered").read_text("utf-8").splitlines(keepends=True)[:2]), "utf-8")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert main(["replay", "--quick", "--json", "--pool", str(pool)]) == 0
    found = json.loads(capsys.readouterr().out)["rows"]
    assert [row["note"] for row in found if row["rival"] == "C loop"] == ["left out: no C compiler 'cc' on the path"]


def test_a_compiler_that_fails_is_no_compiler() -> None:
    with pytest.raises(NoCompilerError, match=r"'false .*' failed"), compiled_loop("false"):
        pass


def test_random_candidates_are_different_and_mention_earlier_variables_only(pool: tuple[Problem, ...]) -> None:
    for problem in (pool[0], pool[-1]):
        gold = gold_of(problem)
        candidates = random_candidates(problem, 50, seed=1)
        assert len({tuple(map(str, candidate.mechanisms.values())) for candidate in candidates}) > 25
        for candidate in candidates:
            known = set(gold.roots)
            for variable in candidate.order:
                assert candidate.mechanisms[variable].mentioned <= known
                assert candidate.mechanisms[variable].size == gold.mechanisms[variable].size
                known.add(variable)
            assert known == set(problem.task.variables)


def test_the_typical_problem_has_the_median_size(pool: tuple[Problem, ...]) -> None:
    size = gold_of(median_problem(pool)).size
    sizes = [gold_of(problem).size for problem in pool]
    assert sum(other < size for other in sizes) <= len(pool) / 2
    assert sum(other > size for other in sizes) <= len(pool) / 2


# --- texts ------------------------------------------------------------------------------------------------------------


def test_the_unchecked_reader_nests_what_it_reads() -> None:
    assert parse_nested("X1") == "X1"
    assert parse_nested("(and X1 (not X2)(xor X3 X4 X5 ) )") == ["and", "X1", ["not", "X2"], ["xor", "X3", "X4", "X5"]]


@pytest.mark.parametrize("setting", ["ordered", "hidden-roots"])
def test_other_spellings_are_correct_answers_and_different(setting: str) -> None:
    problem = read_pool(bundled_pool(setting)).problems[-1]
    answers = scoring.spellings(problem, 20)
    assert len({json.dumps(answer) for answer in answers}) == 20
    for answer in answers:
        score = Evaluator(problem).score_answer(answer)
        assert score.correct
        assert score.model is not None
        assert score.model.equivalent(gold_of(problem))


# --- tables -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_vars", [4, 6, 10])
def test_table_rivals_give_the_same_functions(num_vars: int) -> None:
    calls = [make(num_vars) for make in (tables.table_calls, tables.array_calls, tables.list_calls)]
    for operation in calls[0]:
        ours, array, listed = (call[operation]() for call in calls)
        assert np.asarray(array).tolist() == list(listed), operation  # type: ignore[call-overload]
        assert (tables.bits(ours) if isinstance(ours, TruthTable) else ours) == listed, operation


def test_table_operands_leave_something_to_find() -> None:
    for num_vars in tables.NUM_VARS:
        _, second = tables.operands(num_vars)
        assert tables.list_support(tables.bits(second)[: num_rows(num_vars)], num_vars) == tuple(range(num_vars - 1))


# --- synthesis --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("digits", "size"),
    [(0xAA, 1), (0x55, 2), (0x88, 3), (0x96, 4), (0x80, 4), (0x81, 4), (0x7F, 5)],
)
def test_bottom_up_enumeration_finds_sizes_known_by_hand(digits: int, size: int) -> None:
    """Projection, not, and, parity, and3, all-equal, nand3."""
    table = PartialTable(3, full_mask(3), digits)
    assert synthesis.enumerated_size(table)[0] == synthesis.least_size(table)[0] == size


@pytest.mark.parametrize("num_parents", [2, 3])
def test_enumeration_and_solver_agree_on_planted_tables(num_parents: int) -> None:
    planted = synthesis.planted_tables(num_parents, 10)
    assert planted == synthesis.planted_tables(num_parents, 10)
    for columns in planted:
        assert synthesis.least_size(columns)[0] == synthesis.enumerated_size(columns)[0]


# --- the large file ---------------------------------------------------------------------------------------------------


def test_the_large_file_is_a_pool_of_copies_with_model_results(tmp_path: Path) -> None:
    source = shared_file("pool_dev_t1_hidden_roots.runtime.yaml")
    target = tmp_path / "large.yaml"
    wanted = 5_000_000
    count = write_official_file(source, target, wanted)
    assert 0.9 * wanted < target.stat().st_size < 1.1 * wanted
    copies, originals = read_pool(target).problems, read_pool(source).problems
    assert len(copies) == count > len(originals)
    assert len({problem.id for problem in copies}) == count
    for index, problem in enumerate(copies):
        assert problem.task == originals[index % len(originals)].task
    results = copies[-1].results()
    assert len(results) == 9
    for result in results:
        score = Evaluator(copies[-1]).score_text(result.raw_response or "")
        assert score.correct
        assert result.extracted_answer == score.answer
        assert result.evaluation["trainExact"] is True


def test_a_file_of_another_layout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CalibrantError, match="block-style YAML"):
        write_official_file(bundled_pool("ordered"), tmp_path / "large.yaml", 1_000_000)


# --- measuring --------------------------------------------------------------------------------------------------------


def test_rivals_take_turns_and_ratios_are_formed_within_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0, 1, 10, 16, 20, 22, 30, 34, 40, 44, 50, 58])  # 1, 6 | 2, 4 | 4, 8 seconds
    monkeypatch.setattr(time, "process_time", lambda: next(clock))
    calls: list[str] = []
    rivals = [
        Rival("ours", lambda: calls.append("ours"), 4, least_times_published=1),
        Rival("theirs", lambda: calls.append("theirs"), 2, least_ratio=5),
    ]
    comparison = Comparison("topic", "case", "item", rivals, published=4.0, counts={"rows": 8})
    ours, theirs = measure(comparison, Discipline(3, 0.0))
    assert calls == ["ours", "theirs"] * 3
    assert (ours.per_second, ours.ratio, ours.times_published, ours.counts) == (2, None, 0.5, {"rows": 8})
    assert (theirs.low, theirs.ratio, theirs.high) == (4, 4, 12)  # per item: 1/4, 3 | 1/2, 2 | 1, 4
    assert (theirs.per_second, theirs.times_published) == (1 / 3, 1 / 12)
    assert (ours.at_least, ours.met, theirs.at_least, theirs.met) == (1, False, 5, False)


@pytest.mark.parametrize(("target", "met"), [(3.9, True), (4.0, True), (4.1, False)])
def test_a_target_is_judged_by_the_median(monkeypatch: pytest.MonkeyPatch, target: float, met: bool) -> None:
    clock = iter([0, 1, 1, 3, 3, 4, 4, 8, 8, 9, 9, 109])
    monkeypatch.setattr(time, "process_time", lambda: next(clock))
    rivals = [Rival("ours", lambda: None), Rival("theirs", lambda: None, least_ratio=target)]
    _, theirs = measure(Comparison("topic", "case", "item", rivals), Discipline(3, 0.0))
    assert theirs.met is met


def test_a_turn_is_filled_with_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0, 2, 2, 12])  # a call takes 2 seconds and 9 are asked for: 5 calls
    monkeypatch.setattr(time, "process_time", lambda: next(clock))
    calls: list[int] = []
    (row,) = measure(Comparison("topic", "case", "item", [Rival("ours", lambda: calls.append(1))]), Discipline(1, 9.0))
    assert len(calls) == 1 + 1 + 5
    assert row.per_second == 0.5


def test_published_rates_are_those_of_the_reference_document() -> None:
    text = shared_file("REFERENCE_SPEED.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| (\S+) \|" + r" (\d+) \|" * 4 + "$", text, re.MULTILINE)
    assert {name: tuple(map(int, rates)) for name, *rates in lines} == replay.SUBMISSIONS_PER_STRATUM
    assert f"**{replay.EXPRESSIONS:,} expressions/s**" in text
    medians = re.search(r"median of the 8\*\* \|" + r" \*\*(\d+)\*\* \|" * 4, text)
    assert medians is not None
    for setting, rounded in zip(replay.SETTINGS, medians.groups(), strict=True):
        assert replay.submissions(setting) == pytest.approx(int(rounded), abs=0.5)
    assert replay.submissions("Alt-Ordered") is None
    assert replay.submissions("Ordered", "no such stratum") is None


# --- the command ------------------------------------------------------------------------------------------------------


def _rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["--quick", "--json", *arguments]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {"processor", "python", "numpy", "numba"} <= report["machine"].keys()
    rows: list[dict[str, Any]] = report["rows"]
    return rows


MEASURED_FROM_OUTSIDE = ("memory", "startup", "replayscm.audits", "replayscm.scoring")


def cost_in_this_process(_: Path, *arguments: str, folder: Path, **_options: object) -> Cost:
    """Of a command that has to end with 0; what is measured here is a process that has started long ago."""
    printed, said = io.StringIO(), io.StringIO()
    start = time.process_time()
    with chdir(folder), redirect_stdout(printed), redirect_stderr(said):
        code = command(list(arguments))
    assert code == 0, f"{arguments}: {said.getvalue()}"
    return Cost(time.process_time() - start + 1e-6, 1.0, 1)


def test_a_command_is_measured_from_outside(tmp_path: Path) -> None:
    pool = str(bundled_pool("block"))
    cost = command_cost(OURS, "pool", "stats", pool, folder=tmp_path)
    assert 0.02 < cost.processor < 60
    assert 10e6 < cost.peak < 2e9
    assert cost.wall > 0
    assert "sample_block" in (tmp_path / "printed.txt").read_text(encoding="utf-8")
    with pytest.raises(CalibrantError, match=r"-m calibrant.bench\.cli pool: error  .*gone"):
        command_cost(OURS, "pool", "stats", "gone.jsonl", folder=tmp_path)
    with pytest.raises(CalibrantError, match="pool: not done in 0 s"):
        command_cost(OURS, "pool", "stats", pool, folder=tmp_path, budget=0.01)


@pytest.mark.soak
def test_every_benchmark_runs_in_a_tiny_mode(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call once, where a rival that ends with an error or answers otherwise shows; in a soak warmed and timed.

    Commands that are measured as processes run here, where they need not start 40 times; in a soak they do.
    """
    if not SOAKING:
        once = Discipline(1, 0.0)
        for place in ("report", "startup"):
            monkeypatch.setattr(f"calibrant.bench.lab.speed.{place}.QUICK", once)
        for place in MEASURED_FROM_OUTSIDE:
            monkeypatch.setattr(f"calibrant.bench.lab.speed.{place}.command_cost", cost_in_this_process)
        # row by row, 16 variables take a second; `test_tables_are_printed_for_people` has them
        monkeypatch.setattr(tables, "NUM_VARS", [number for number in tables.NUM_VARS if number < 16])
        # episodes of ten variables take seconds; those of six are the same calls
        monkeypatch.setattr(noise, "SHAPES", dict.fromkeys(noise.SHAPES, noise.SHAPES[6]))
        monkeypatch.setattr(structures, "SOME", 10)  # scores, which the libraries take milliseconds for
        monkeypatch.setattr("calibrant.bench.lab.speed.responses.REWARDED_ITEMS", 2)
        monkeypatch.setattr("calibrant.bench.lab.speed.memory.ITEMS", 500)
        monkeypatch.setattr("calibrant.bench.lab.speed.memory.OFFICIAL_ITEMS", 500)
    rows = _rows(capsys, "--pool", str(bundled_pool("block")))
    assert list(dict.fromkeys(row["topic"] for row in rows)) == list(BENCHMARKS)
    assert {row["topic"] for row in rows if "per_second" not in row and "times_published" not in row} <= {
        "load",
        "replay",
        "structures",
        "inspect",  # needs its package
        "large",  # needs highspy; agreement is no rate
        "audits",  # what starting costs is none
        "startup",
    }
    agreements = [row for row in rows if row["topic"] == "structures" and ", same " in row["case"]]
    assert {row["rival"] for row in agreements} == {"pgmpy", "causal-learn", "pyAgrum"}
    assert not any(row.get("met") is False for row in agreements)
    assert all("peak MB" in row["counts"] for row in rows if row["topic"] == "memory")  # no command has failed
    assert all(row["per_second"] > 0 for row in rows if "per_second" in row)
    strata = by_stratum(read_pool(bundled_pool("block")).problems)
    for topic in ("score", "solve"):
        cases = {row["case"] for row in rows if row["topic"] == topic}
        assert {f"Block, {stratum}" for stratum in strata} < cases
        assert len(cases) == len(strata) + 1


def test_loading_runs_on_an_official_file(capsys: pytest.CaptureFixture[str]) -> None:
    rows = _rows(capsys, "load", "--pool", str(shared_file("pool_dev_t1_ordered.runtime.yaml")))
    assert len(rows) == 6
    assert all(row["ratio"] > 0 for row in rows[1:])


def test_tables_are_printed_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tables", "parse", "--quick", "--pool", *(str(bundled_pool(s)) for s in ("ordered", "block"))]) == 0
    printed = capsys.readouterr().out
    for text in ("16 variables, from_formula", "list of bools", "Block", "recursive descent", "x published", "numba"):
        assert text in printed
    assert "target" not in printed  # neither benchmark has one


def test_brackets_of_a_note_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_report([Row("load", "a case", "ours", note="pip install 'calibrant[hub]'")], Console(width=120))
    assert "'calibrant[hub]'" in capsys.readouterr().out


def test_check_fails_when_a_target_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["score", "--quick", "--json", "--check", "--pool", str(bundled_pool("ordered"))]
    monkeypatch.setattr(scoring, "TIMES_PUBLISHED", 1e9)
    assert main(arguments) == 1
    monkeypatch.setattr(scoring, "TIMES_PUBLISHED", 1e-9)
    assert main(arguments) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bogus"], "unknown benchmark 'bogus'; known: replay, parse, score, bulk, tables, synthesis, solve, load"),
        (["parse", "--pool", "no/such/file"], "file: cannot be read"),
        (["--bogus"], "unrecognized arguments: --bogus"),
    ],
)
def test_bad_usage_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code: Any = main(arguments)
    except SystemExit as stop:  # argparse
        code = stop.code
    assert code == 2
    assert message in capsys.readouterr().err


# --- The history of ratios: runs are appended, the last of a version counts, anything else is refused in one line -----
ROWS = (Row("replay", "one", "ours"), Row("replay", "one", "NumPy", ratio=3.5))


def test_the_last_run_of_a_version_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "history.jsonl"
    for version, ratio in (("0.1.0", 3.0), ("0.2.0", 4.0), ("0.1.0", 5.0)):
        monkeypatch.setattr(report, "machine", lambda version=version: {"calibrant": version})
        append_release(path, [ROWS[0], Row("replay", "one", "NumPy", ratio=ratio)])
    ratios = {version: release.ratios for version, release in read_history(path).items()}
    assert ratios == {"0.1.0": {"replay / one / NumPy": 5.0}, "0.2.0": {"replay / one / NumPy": 4.0}}


def test_a_run_is_measured_and_appended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "history.jsonl"
    assert speed(["parse", "--quick", "--json", "--append", str(path)]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    (release,) = read_history(path).values()
    assert release.ratios == {f"{r['topic']} / {r['case']} / {r['rival']}": r["ratio"] for r in rows if "ratio" in r}
    assert release.ratios


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the history is empty"),
        ("no JSON\n", "line 1: not a line of a history of speed"),
        ('{"machine": {}, "ratios": {}}\n', "line 1: not a line of a history of speed"),
        ('{"machine": {"calibrant": "1"}, "ratios": {"a": "fast"}}\n', "line 1: not a line of a history of speed"),
    ],
)
def test_what_is_no_history_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, reason: str
) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(text)
    assert speed(["parse", "--append", str(path)]) == 2
    assert print_history([str(path), "--out", str(tmp_path / "plot.svg")]) == 2
    printed = capsys.readouterr().err.splitlines()
    assert len(printed) == 2
    assert all(reason in line for line in printed)
    assert path.read_text() == text


def test_the_kept_history_is_plotted(tmp_path: Path) -> None:
    """Each ratio of the newest release stands in the plot's legend; the page shows such a plot."""
    kept = read_history(CHECKOUT / "bench/lab/speed/history.jsonl")
    *_, newest = kept.values()
    svg = plot_history(kept, "Ordered")
    assert all(name.rpartition(" / ")[2] in svg for name in newest.ratios if "Ordered" in name)
    with pytest.raises(CalibrantError, match="no ratio of the history has 'Random' in its name"):
        plot_history(kept, "Random")
    assert (CHECKOUT / "docs/images/speed_history.svg").read_text(encoding="utf-8").startswith("<svg")


# --- `python -m calibrant.bench.lab.limits`: a curve ends where it takes too long or is refused, and the page says
# so
FAR = float("inf")


def answers(x: int, seed: int) -> Ask:
    return lambda: None


def refuses_above_2(x: int, seed: int) -> Ask:
    return lambda: "too large" if x > 2 else None


def refuses_odd_seeds(x: int, seed: int) -> Ask:
    return lambda: "no luck" if seed % 2 else None


def test_a_curve_ends_where_every_problem_is_refused() -> None:
    found = list(points(Sweep("key", "title", "size", [Curve("one", (1, 2, 3, 4), refuses_above_2)]), range(3), FAR))
    assert [(point.x, point.answered, point.stop) for point in found] == [(1, 3, ""), (2, 3, ""), (3, 0, "too large")]


def test_some_refused_problems_do_not_end_it() -> None:
    found = list(points(Sweep("key", "title", "size", [Curve("one", (1, 2), refuses_odd_seeds)]), range(4), FAR))
    assert [(point.problems, point.answered, point.stop) for point in found] == [(4, 2, ""), (4, 2, "")]


def test_a_curve_ends_where_a_problem_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "seconds", lambda call, repeat: 31.0)
    (point,) = points(Sweep("key", "title", "size", [Curve("one", (1, 2), answers)]), range(2), FAR)
    assert point.stop == "a problem took over 30 s"


def test_what_does_not_end_is_interrupted_and_the_others_are_asked() -> None:
    def goes_on(x: int, seed: int) -> Ask:
        def ask() -> str | None:
            while seed == 1:
                pass
            return None

        return ask

    sweep = Sweep("key", "title", "size", [Curve("one", (1, 2), goes_on)], max_seconds=0.02)
    few = [(point.x, point.answered, point.stop) for point in points(sweep, (0, 0, 1), FAR)]
    assert few == [(1, 2, ""), (2, 2, "")]
    most = [(point.x, point.problems, point.answered, point.stop) for point in points(sweep, (0, 1, 1), FAR)]
    assert most == [(1, 3, 1, "a problem took over 0 s")]


def test_what_only_the_system_can_end_is_in_a_process_of_its_own() -> None:
    def gone(x: int, seed: int) -> Ask:
        return lambda: "too large" if seed == 1 else os.kill(os.getpid(), SIGKILL) if seed == 2 else None

    sweep = Sweep("key", "title", "size", [Curve("one", (1,), gone)], max_seconds=0.5, apart=True)
    (point,) = points(sweep, (0, 1, 2), FAR)
    assert (point.problems, point.answered, point.maximum) == (3, 1, 1.0)


def test_a_problem_that_crashes_is_no_late_one(capfd: pytest.CaptureFixture[str]) -> None:
    def crashed(x: int, seed: int) -> Ask:
        return lambda: str(1 // seed)

    sweep = Sweep("key", "title", "size", [Curve("one", (1,), crashed)], max_seconds=0.5, apart=True)
    with pytest.raises(CalibrantError, match="its process crashed"):
        list(points(sweep, (0,), FAR))
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_no_further_size_is_begun_when_time_is_up() -> None:
    assert not list(points(Sweep("key", "title", "size", [Curve("one", (1, 2), answers)]), range(2), 0.0))


POINTS = (
    Point("key", "one", 1, 3, 3, 0.0002, 0.5),
    Point("key", "one", 2, 3, 0, 0.1, 0.1, "too large"),
    Point("key", "other", 2, 3, 2, 1.5, 40.0),
)
SHOWN = Sweep("key", "title", "size", [Curve("one", (1, 2), answers), Curve("other", (2,), answers)])


def test_the_table_says_what_was_answered_and_where_curves_end() -> None:
    assert table(SHOWN, POINTS) == (
        "| size | one | other |\n|--:|--:|--:|\n"
        "| 1 | 0.2 ms (500 ms) |  |\n"
        "| 2 | not answered | 1.5 s (40 s, 2 of 3) |\n\n"
        "- one ends at 2: too large\n"
    )


def test_the_plot_is_the_same_bytes_and_names_every_curve() -> None:
    drawn = plot(SHOWN, POINTS)
    assert drawn == plot(SHOWN, POINTS)
    assert all(f">{text}</text>" in drawn for text in ("one", "other", "size", "title"))


def test_every_curve_of_every_benchmark_answers_its_smallest_size() -> None:
    """Each once: nothing else runs them, so a renamed solver shows here alone. Most of the time is loading kernels."""
    for name in TOPICS:
        for sweep in _sweeps(name):
            for curve in sweep.curves:
                assert curve.prepare(curve.xs[0], 0)() is None, (sweep.key, curve.name)


def test_the_command_writes_figures_and_a_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert measure_limits(["causalab", "--out", str(tmp_path), "--minutes", "0.001"]) == 0
    assert json.loads((tmp_path / "causalab.json").read_text())[0]["curve"] == "graphs counted"
    assert (tmp_path / "causalab.svg").read_text().startswith("<svg")
    assert "### linear mechanisms" in capsys.readouterr().out


def test_an_unknown_sweep_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert measure_limits(["caualab"]) == 2
    assert "unknown sweep 'caualab'; known: least-variables" in capsys.readouterr().err
