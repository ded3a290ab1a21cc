"""Reports of many systems: whom they are compared with, how each is drawn, and what is said of rates of 0 and 1."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from math import dist
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from calibrant.baselines.replayscm.posterior.posterior import Posterior
from calibrant.bench.answers.frame import AnswerFrame
from calibrant.bench.answers.rates import paired_differences
from calibrant.bench.causalab import report as causalab_report
from calibrant.bench.causalab.report import LabGuide
from calibrant.bench.core.registry import benchmark, benchmark_of, bundled_sample
from calibrant.bench.core.scoring import EvaluatorCache
from calibrant.bench.pages.charts import looks
from calibrant.bench.replayscm import chance_and_best
from calibrant.bench.replayscm.figures import report_plots, spread_equal_points
from calibrant.bench.replayscm.paper import DIFFERENCES, HELDOUT_EXACT
from calibrant.bench.replayscm.report import compare_systems
from calibrant.bench.replayscm.verdict import REPLAY_METRICS
from calibrant.bench.report.comparisons import differences
from calibrant.bench.report.overview import contract
from calibrant.bench.runs.records import FILE_NAME, read_records
from tests.bench.answers.test_agreement import PEOPLE, POOLS, printed, printed_rows
from tests.support.commands import CHECKOUT, called, jsonl
from tests.support.report_rows import Answers, answer, ours, row_of, rows_of

HIT, MISS = answer(1, 1), answer(1, 0.5)


def test_a_rate_has_wilsons_interval_where_no_items_share_an_scm() -> None:
    """12 of 12: 1 / (1 + z^2 / 12) = 0.7575; 6 of 12: 0.5 -+ z sqrt(1 / 48 + z^2 / 576) / (1 + z^2 / 12); by hand."""
    whole = row_of([HIT] * 12)
    assert whole.interval(REPLAY_METRICS[0].key) == whole.interval(HELDOUT_EXACT.key)
    assert tuple(whole.interval(HELDOUT_EXACT.key) or ()) == pytest.approx((0.7575, 1.0), abs=1e-4)
    assert tuple(row_of([MISS] * 12).interval(HELDOUT_EXACT.key) or ()) == pytest.approx((0.0, 0.2425), abs=1e-4)
    half = row_of([HIT, MISS] * 6).interval(HELDOUT_EXACT.key)
    assert tuple(half or ()) == pytest.approx((0.2538, 0.7462), abs=1e-4)


def test_many_systems_without_exact_are_compared_with_the_best_one() -> None:
    rows = rows_of(*(Answers(f"m{k}", [HIT] * k + [MISS] * (9 - k)) for k in range(8)))
    table = ours(compare_systems(rows, ()))
    assert [(line["system"], line["other"]) for line in table] == [(f"m{k}", "m7") for k in range(7)]
    few = ours(compare_systems(rows[:3], ()))
    assert [(line["system"], line["other"]) for line in few] == list(combinations(["m0", "m1", "m2"], 2))


def test_differences_taken_together_are_those_taken_one_by_one() -> None:
    """HeldoutWorld is undefined for the invalid answer, so it is over other problems than the other two."""
    one, other = rows_of(Answers("a", [HIT] * 5 + [MISS] * 4), Answers("b", [MISS] * 8 + [{"valid": False}]))
    together = differences(one, other, AnswerFrame.item_means, [metric.key for metric in DIFFERENCES])
    cluster = {o.item: o.unit for row in (one, other) for o in row.observations}
    for column, found in zip(DIFFERENCES, together, strict=True):
        place = one.column_indices[column.key]  # one answer an item
        values = [{o.item: v for o in row.observations if (v := o.values[place]) is not None} for row in (one, other)]
        assert found == paired_differences([(values[0], values[1])], cluster)[0]
    assert [found.num_units for found in together] == [9, 8, 9]


def test_no_two_of_130_systems_look_alike_and_a_look_does_not_depend_on_order() -> None:
    names = [f"system {k}" for k in range(130)]
    drawn = looks(names)
    assert len(set(drawn.values())) == 130
    assert looks(reversed(names)) == drawn


def test_points_at_one_place_are_drawn_apart_and_the_first_stays() -> None:
    drawn = spread_equal_points([(1.0, 0.5)] * 20 + [(0.2, 0.2)])
    assert drawn[0] == (1.0, 0.5)
    assert drawn[-1] == (0.2, 0.2)
    assert min(dist(a, b) for a, b in combinations(drawn, 2)) > 0.01
    assert max(dist((1.0, 0.5), point) for point in drawn[:20]) < 0.07


def test_a_legend_has_every_name_whole_below_the_panels() -> None:
    names = [f"a model with a long name that says a lot, variant {k:02d}" for k in range(40)]
    rows = rows_of(*(Answers(name, [HIT] * 6 + [MISS] * 2) for name in names))
    (plot,) = [p for p in report_plots(rows, {}, with_paper=False, with_times=False) if p.name == "train-heldout"]
    svg = "{http://www.w3.org/2000/svg}"
    texts: dict[str, float] = {}
    for group in ElementTree.fromstring(plot.svg).iter(f"{svg}g"):
        top = float(re.findall(r"[\d.]+", group.get("transform", ""))[1])
        texts |= {node.text or "": top + float(node.get("y", "")) for node in group.iter(f"{svg}text")}
    assert set(names) <= texts.keys()
    assert max(y for text, y in texts.items() if text == "TrainExact") < min(texts[name] for name in names)


def test_a_report_of_more_systems_computes_no_more_of_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels once for each item and readings, printed tables and rates once: three systems that answer alike."""
    pool, runs = bundled_sample("causalab"), tmp_path / "runs"
    assert called("run", "total-effects", pool, "--limit", "4", "--out", runs).returncode == 0
    records = [*read_records(runs / FILE_NAME)]
    lines = [
        msgspec.json.encode(msgspec.structs.replace(record, protocol=name)) for name in "abc" for record in records
    ]
    (runs / FILE_NAME).write_bytes(b"".join(line + b"\n" for line in lines))
    counts: Counter[tuple[str, object]] = Counter()
    monkeypatch.setattr(contract, "_LEVELS", EvaluatorCache(16))  # other tests answer the same items

    def counted(owner: object, name: str, key: Callable[..., object]) -> None:
        function = getattr(owner, name)

        def count(*arguments: Any) -> object:
            counts[name, key(*arguments)] += 1
            return function(*arguments)

        monkeypatch.setattr(owner, name, count)

    counted(LabGuide, "levels", lambda guide, item, steps, score: (item.id, repr(steps)))
    counted(causalab_report, "paper_tables", lambda *arguments: None)
    page = tmp_path / "report.html"
    assert called("report", runs, "--pool", pool, "--attribution", "--out", page).returncode == 0
    assert sum(name == "levels" for name, _ in counts) == 4
    assert set(counts.values()) == {1}


@pytest.mark.parametrize(("share", "is_sampled"), [(0.4, True), (0.5, True), (0.6, False)])
def test_no_member_is_sampled_where_a_draw_is_right_in_more_than_half(
    monkeypatch: pytest.MonkeyPatch, share: float, is_sampled: bool
) -> None:
    calls: list[object] = []

    def sample(*arguments: object) -> Iterator[Any]:
        calls.append(arguments)
        yield from ()

    monkeypatch.setattr(chance_and_best, "_frequent_behaviours", sample)
    pool = bundled_sample("hidden_order")
    task, heldout = chance_and_best._canonical(benchmark_of(pool).items.read_pool(pool).items[0])
    assert chance_and_best._largest_share(Posterior(task), heldout, share) == share
    assert bool(calls) == is_sampled


# --- What counts as a system, wherever systems are counted ------------------------------------------------------------
def test_people_are_counted_once_in_tab_and_heading(tmp_path: Path) -> None:
    """A report of two benchmarks, with three participants and a model: two systems, wherever they are counted."""
    files = []
    for name, response in (("causim", "{}"), ("logic", '{"model": []}')):
        pool = CHECKOUT / "bench" / POOLS[name]
        ids = [item.id for item in benchmark(name).items.read_pool(pool).items[:2]]
        lines = [{"id": key, "model": model, "response": response} for key in ids for model in (*PEOPLE[:3], "m")]
        jsonl(tmp_path / "p.jsonl", *lines)
        files.append(tmp_path / f"{name}.jsonl")
        printed("score", pool, tmp_path / "p.jsonl", "--out", files[-1], "--workers", "1")
    printed("report", *files, "--no-times", "--out", tmp_path / "report.html")
    texts = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", (tmp_path / "report.html").read_text("utf-8"))).split())
    assert "All 2 systems" in texts
    assert "2 systems on 2 benchmarks" in texts


def test_a_run_and_its_records_scored_again_are_two_systems_of_the_same_coverage(tmp_path: Path) -> None:
    pool, runs, scored = bundled_sample("blickets"), tmp_path / "runs", tmp_path / "scored.jsonl"
    printed("run", "static", pool, "--limit", 2, "--out", runs, "--workers", 1)
    printed("score", pool, runs / "records.jsonl", "--out", scored)
    rows = printed_rows("table", runs, scored, "--json")
    names = {name: [row for row in rows if row["system"] == name] for name in ("static", "static (scored)")}
    (num_total,) = {row["coverage"] for row in printed_rows("table", runs, "--json")}
    assert num_total == 2 / len(benchmark_of(pool).items.read_pool(pool).items)
    for of_name in names.values():
        assert sum(row["n"] for row in of_name) == 2
        assert {row["coverage"] for row in of_name} == {num_total}


def test_a_name_that_ends_like_ours_is_a_system_of_its_own(tmp_path: Path) -> None:
    """Two models with the same answer; nothing is a tie rule's, so no line explains one."""
    pool = CHECKOUT / "docs/examples/switches.jsonl"
    lines = [{"id": "lamp", "model": name, "response": '{"mechanisms": {"X3": "X1"}}'} for name in ("a", "a (chosen)")]
    jsonl(tmp_path / "p.jsonl", *lines)
    printed("score", pool, tmp_path / "p.jsonl", "--out", tmp_path / "s.jsonl")
    done = called("table", tmp_path / "s.jsonl")
    assert [line.split("  ")[1] for line in done.stdout.splitlines()[1:3]] == ["a", "a (chosen)"]
    assert "tie rule" not in done.stderr
