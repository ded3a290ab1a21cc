"""Tidy frames of answers and rates: against records, against each other, and against what `calibrant table` prints."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import calibrant
from calibrant.bench.core.options import describe_fields
from calibrant.bench.core.registry import benchmarks, bundled_pool, bundled_sample
from calibrant.bench.report.tidy import AnswerColumns, Framed, RateColumns, column_types
from tests.support.commands import CHECKOUT, called
from tests.support.packages import needs

needs("narwhals", "pandas")

POOLS = {name: bundled_sample(name) for name in ("blickets", "causalab", "causim", "logic")}
POOLS["replayscm"] = bundled_pool("ordered")
METHODS = {"replayscm": "copy-parent", "blickets": "static", "causalab": "exact", "causim": "exact", "logic": "exact"}
NUM_ITEMS = 12
SKILLS = {metric.key for each in benchmarks() for metric in each.metrics.columns if metric.skill_of}


@pytest.fixture(scope="module", params=sorted(POOLS))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out: Path = tmp_path_factory.mktemp("runs") / request.param
    calibrant.run(METHODS[request.param], calibrant.load_pool(POOLS[request.param])[:NUM_ITEMS], out)
    return out


def records_of(folder: Path) -> calibrant.Records:
    """Return the records of a run that is complete: nothing is done again."""
    return calibrant.run(METHODS[folder.name], calibrant.load_pool(POOLS[folder.name])[:NUM_ITEMS], folder)


def test_no_metric_has_the_name_of_a_first_column() -> None:
    names = AnswerColumns.__struct_fields__
    for each in benchmarks():
        assert {metric.key for metric in each.metrics.columns}.isdisjoint(names)


def test_a_frame_of_records_has_what_the_file_has(folder: Path) -> None:
    lines = [json.loads(line) for line in (folder / "records.jsonl").read_text(encoding="utf-8").splitlines()]
    frame = records_of(folder).to_frame()
    assert len(frame) == len(lines) == NUM_ITEMS
    assert list(frame["item"]) == [line["instance"] for line in lines]
    assert list(frame["system"]) == [line["protocol"] for line in lines]
    assert list(frame["outcome"]) == [line["outcome"] for line in lines]
    assert list(frame["seconds"]) == [line["timing"]["seconds"] for line in lines]
    assert [json.loads(text) for text in frame["options"]] == [line["config"] for line in lines]
    assert list(frame["stratum"]) == [line["stratum"] for line in lines]
    if folder.name != "replayscm":
        assert list(frame["right"]) == [float(line["score"]["correct"] is True) for line in lines]
    else:
        assert list(frame["train_exact"]) == [float(line["score"]["trainExact"] is True) for line in lines]


def test_rates_are_the_means_of_the_answers(folder: Path) -> None:
    """One answer an item: the rate of a metric is the mean of its column over the rows of a group."""
    answers, rates = records_of(folder).to_frame(), calibrant.table(folder).to_frame()
    compared = 0
    for _, rate in rates.iterrows():
        if not math.isnan(rate["value"]) and rate["metric"] not in SKILLS:
            column = answers[answers["setting"] == rate["setting"]][rate["metric"]].dropna()
            assert rate["value"] == pytest.approx(column.mean(), abs=1e-12), rate["metric"]
            assert rate["defined"] == len(column)
            compared += 1
    assert compared >= 5


def test_rates_are_those_that_the_command_prints(folder: Path) -> None:
    printed = json.loads(called("table", str(folder), "--json").stdout)["rows"]
    rates = calibrant.table(folder).to_frame()
    assert len(printed) == rates.groupby(["setting", "system", "pool"]).ngroups
    compared = 0
    for row in printed:
        mine = rates[(rates["setting"] == row["setting"]) & (rates["system"] == row["system"])]
        assert set(mine["items"]) == {row["n"]}
        for metric, value in zip(mine["metric"], mine["value"], strict=True):
            assert row[metric] == value or (row[metric] is None and math.isnan(value)), metric
            compared += 1
        absent = {key for key, value in row.items() if isinstance(value, float)} - set(mine["metric"])
        assert absent <= {"coverage", "seconds_median", "seconds_max"}
    assert compared >= 5


def test_rates_are_grouped_by_stratum(folder: Path) -> None:
    rates = calibrant.table(folder, by="stratum").to_frame()
    answers = records_of(folder).to_frame()
    assert set(rates["stratum"].fillna("")) == set(answers["stratum"])


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames_begin_with_the_first_columns(backend: str, folder: Path) -> None:
    pytest.importorskip(backend)
    frame = records_of(folder).to_frame(backend)
    names = list(getattr(frame, "column_names", frame.columns))  # pyarrow's columns have no names
    assert tuple(names[: len(AnswerColumns.__struct_fields__)]) == AnswerColumns.__struct_fields__
    rates = calibrant.table(folder).to_frame(backend)
    assert tuple(getattr(rates, "column_names", rates.columns)) == RateColumns.__struct_fields__


@pytest.mark.parametrize("name", sorted(POOLS))
def test_verdicts_make_a_frame_of_those_not_yet_taken(name: str) -> None:
    pool = calibrant.load_pool(POOLS[name])
    items, answers = [pool[0], pool[0], pool[1]], ["no idea", None, "{}"]
    expected = [calibrant.score(item, answer) for item, answer in zip(items, answers, strict=True)]
    verdicts: Any = calibrant.score_many(items, answers)
    assert next(verdicts).failure == expected[0].failure
    frame = verdicts.to_frame()
    assert list(frame["item"]) == [item.id for item in items[1:]]
    assert list(frame["failure"]) == [verdict.failure for verdict in expected[1:]]
    assert list(frame["sample"]) == [0, 0]
    assert list(frame["right"]) == [0, 0]
    assert len(calibrant.score_many([], []).to_frame()) == 0
    assert list(calibrant.score_many(items[:2], answers[:2]).to_frame()["sample"]) == [0, 1]


def test_a_right_answer_is_right_in_its_frame() -> None:
    from calibrant.datasets import right_answer

    for name in ("causalab", "causim", "replayscm"):
        item: Any = calibrant.load_pool(POOLS[name])[0]
        frame = calibrant.score_many([item, item], [right_answer(item), "no"]).to_frame()
        assert list(frame["right"]) == [1.0, 0.0]


def test_a_table_refuses_in_a_line(tmp_path: Path) -> None:
    loose: Any = calibrant.table
    for arguments, options, message in (
        ((), {}, "give folders of runs"),
        ((tmp_path,), {"by": "model"}, "by is 'model'; allowed: pool, setting, stratum"),
        ((tmp_path,), {"pools": "x.jsonl"}, "pools must be a list of paths, got str"),
        ((3,), {}, "a source of table must be a path"),
        ((tmp_path / "nowhere",), {}, "there is no such file or folder"),
    ):
        with pytest.raises(calibrant.CalibrantError, match=message):
            loose(*arguments, **options)


def test_attributions_need_the_pool(tmp_path: Path) -> None:
    pool = calibrant.load_pool(POOLS["causim"])
    calibrant.run("exact", pool[:6], tmp_path / "runs")
    rates = calibrant.table(tmp_path / "runs", pools=[POOLS["causim"]]).to_frame()
    assert {"earned", "lucky", "short", "missed"} <= set(rates["metric"])
    assert "earned" not in set(calibrant.table(tmp_path / "runs").to_frame()["metric"])


def test_the_columns_are_documented() -> None:
    kinds = {str: "text", int: "whole number", float: "number"}
    for name, struct in (("run", AnswerColumns), ("table", RateColumns)):
        types, meanings = column_types(struct), describe_fields(struct)
        lines = [f"| `{column}` | {kinds[types[column]]} | {meaning} |" for column, meaning in meanings.items()]
        table = "\n".join(["| column | type | meaning |", "|---|---|---|", *lines])
        assert f"\n\n{table}\n" in (CHECKOUT / "docs" / "names" / f"{name}.md").read_text(encoding="utf-8")


def test_columns_that_do_not_fit_their_types_are_no_unknown_backend() -> None:
    class Wrong(Framed):
        frame_columns = {"number": ["one"]}  # noqa: RUF012  # a constant
        frame_types = {"number": int}  # noqa: RUF012

    with pytest.raises(ValueError, match="invalid literal"):
        Wrong().to_frame()
    with pytest.raises(calibrant.CalibrantError, match="backend is 'x'; allowed: pandas, polars, pyarrow, modin"):
        Wrong().to_frame("x")
