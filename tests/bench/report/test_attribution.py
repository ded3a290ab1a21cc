"""`calibrant report --attribution` on ReplaySCM: what the training worlds decided, as a table and as a plot.

X3 = X1 and X2. With all rows one function is left; with two rows there are four, and held-out worlds tell them apart.
"""

from __future__ import annotations

import csv
import io
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from calibrant.audits.attribution import DECIDED_AT, Attribution
from calibrant.bench.cli import main
from calibrant.bench.core.attribution import (
    DEFAULT_LEVEL,
    KINDS,
    LEVELS,
    attribution_record,
    decided_from,
    decision_notes,
)
from calibrant.bench.core.registry import benchmark, bundled_sample
from calibrant.bench.report import pool_attribution
from calibrant.dsl import kernel_cache
from calibrant.dsl.replayscm.pools.files import read_pool
from tests.support.commands import called, jsonl, refused
from tests.support.replayscm.pools import ALL_ROWS, FOUR_MEMBERS, written_pool
from tests.support.report_rows import blicket_record, graded, write_records


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    return written_pool(tmp_path / "p.jsonl", [ALL_ROWS] * 3 + [FOUR_MEMBERS] * 3)


@pytest.fixture
def answers(pool: Path, tmp_path: Path) -> Path:
    """`gold` is right everywhere, `constant` says that X3 is 0, which two rows allow and all rows do not."""
    lines = [
        {"instanceId": problem.id, "model": model, "response": json.dumps({"mechanisms": {"X3": formula}})}
        for problem in read_pool(pool).problems
        for model, formula in (("gold", "(and X1 X2)"), ("constant", "(and X1 (not X1))"))
    ]
    return jsonl(tmp_path / "answers.jsonl", *lines)


def figures(text: str) -> dict[tuple[str, str], tuple[str, str, str]]:
    rows = csv.DictReader(io.StringIO(text))
    return {(row["system"], row["column"]): (row["value"], row["low"], row["high"]) for row in rows}


def test_the_four_kinds_have_shares_and_intervals(pool: Path, answers: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.csv"
    line = ["report", "--predictions", str(answers), "--pools", str(pool), "--table", "attribution", "--out", str(out)]
    assert main(line) == 0
    found = figures(out.read_text(encoding="utf-8"))
    kinds = ("earned", "missed", "lucky", "short")
    assert {system: tuple(found[system, kind][0] for kind in kinds) for system in ("gold", "constant")} == {
        "gold": ("0.500", "0.000", "0.500", "0.000"),
        "constant": ("0.000", "0.500", "0.000", "0.500"),
    }
    assert found["gold", "decided"][0] == found["constant", "decided"][0] == "0.500"
    assert (found["gold", "fits"][0], found["constant", "fits"][0]) == ("1.000", "0.500")
    assert found["gold", "missed"][1:] == ("0.000", "0.390")  # Wilson's interval of 0 of 6 ends at z² / (6 + z²)


def test_only_a_report_that_is_asked_has_it(pool: Path, answers: Path, tmp_path: Path) -> None:
    plain, asked = tmp_path / "plain.html", tmp_path / "asked.html"
    line = ["report", "--predictions", str(answers), "--pools", str(pool), "--no-times", "--out"]
    assert main([*line, str(plain)]) == 0
    assert main([*line, str(asked), "--attribution"]) == 0
    assert 'id="table-attribution"' not in plain.read_text(encoding="utf-8")
    assert "add <code>--attribution</code>" in plain.read_text(encoding="utf-8")
    assert 'id="table-attribution"' in asked.read_text(encoding="utf-8")
    assert "add <code>" not in asked.read_text(encoding="utf-8")


@pytest.mark.parametrize("suffix", [".txt", ".md", ".tex"])
def test_every_format_has_the_table(suffix: str, pool: Path, answers: Path, tmp_path: Path) -> None:
    out = tmp_path / f"r{suffix}"
    line = ["report", "--predictions", str(answers), "--pools", str(pool), "--attribution", "--out", str(out)]
    assert main(line) == 0
    text = out.read_text(encoding="utf-8")
    assert "What the evidence had decided" in text
    assert "Earned" in text


def test_beside_another_benchmark_the_table_is_of_those_that_have_it(pool: Path, tmp_path: Path) -> None:
    scms, episodes = tmp_path / "scms", write_records(tmp_path / "episodes", [blicket_record(0, graded())])
    assert main(["run", "exact", str(pool), "--out", str(scms), "--workers", "1"]) == 0
    line = ["report", str(scms), str(episodes), "--table", "attribution", "--out"]
    for name, asked, systems in (
        ("of_episodes", [], {"static"}),
        ("of_all", ["--pools", str(pool)], {"exact", "static"}),
    ):
        out = tmp_path / f"{name}.csv"
        assert main([*line, str(out), *asked]) == 0
        assert {system for system, _ in figures(out.read_text(encoding="utf-8"))} == systems


def test_without_pools_it_is_refused(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    assert main(["run", "exact", str(pool), "--out", str(run), "--workers", "1"]) == 0
    capsys.readouterr()
    for asked in (["--attribution"], ["--table", "attribution"]):
        assert "a pool of ReplaySCM, have none; add --pool POOL" in refused(capsys, "report", run, *asked)


# --- The posterior from which noisy readings decide -------------------------------------------------------------


def generated(folder: Path, benchmark: str, strata: str, count: int = 2) -> Path:
    pool = folder / f"{strata}.jsonl"
    options = ["--strata", strata, "--per-stratum", str(count), "--seed", "3"]
    assert main(["generate", "--benchmark", benchmark, *options, "--out", str(pool)]) == 0
    assert main(["run", "exact", str(pool), "--out", str(folder / strata), "--workers", "1"]) == 0
    return folder / strata


def rows(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["table", *map(str, arguments), "--attribution", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(("benchmark", "strata"), [("blickets", "stochastic"), ("causalab", "4nodes_hidden_n1")])
def test_exact_earns_what_a_posterior_decides(
    benchmark: str, strata: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = generated(tmp_path, benchmark, strata, 4)
    found = rows(capsys, run)
    (row,) = found["rows"]
    said = [json.loads(line).get("attribution") for line in next(run.rglob("*.jsonl")).read_text().splitlines()]
    posteriors = [one["posterior"] for one in said if one is not None]
    assert row["decided"] == sum(posterior >= 0.99 for posterior in posteriors) / len(posteriors) > 0.5
    assert (row["accuracy"], row["earned"]) == (1.0, row["decided"])
    assert found["notes"] == [
        "Decided: the readings left one answer; noisy readings, one with a posterior of at least 0.99."
    ]
    by_level = [rows(capsys, run, "--decided-at", level) for level in ("0.95", ".99", "0.999")]
    decided = [one["rows"][0]["decided"] for one in by_level]
    assert decided == sorted(decided, reverse=True)
    assert by_level[1]["rows"] == found["rows"]
    assert [one["notes"][0].split()[-1] for one in by_level] == ["0.95.", "0.99.", "0.999."]
    assert main(["table", str(run), "--attribution", "--decided-at", ".95"]) == 0
    assert "noisy readings, one with a posterior of at least 0.95." in capsys.readouterr().out
    assert main(["report", str(run), "--attribution", "--decided-at", ".999", "--format", "markdown"]) == 0
    assert "at least 0.999." in capsys.readouterr().out
    assert main(["report", str(run), "--format", "markdown"]) == 0
    assert "at least 0.99." in capsys.readouterr().out


def test_it_is_refused_where_it_decides_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = generated(tmp_path, "blickets", "conjunctive")
    capsys.readouterr()
    for command in ("table", "report"):
        assert "give both" in refused(capsys, command, run, "--decided-at", ".95")
        assert "1 is none of 0.95, 0.99, 0.999" in refused(capsys, command, run, "--attribution", "--decided-at", "1")
        said = refused(capsys, command, run, "--attribution", "--decided-at", ".95")
        assert "no answer has a posterior" in said
    found = rows(capsys, run)
    assert "notes" not in found


def test_answers_whose_evidence_is_not_counted_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = generated(tmp_path, "causalab", "4nodes_hidden_n1")
    records = next(run.rglob("*.jsonl"))
    lines = [json.loads(line) for line in records.read_text().splitlines()]
    for line in lines:
        line.pop("attribution", None)
    records.write_text("".join(json.dumps(line) + "\n" for line in lines))
    capsys.readouterr()
    assert "have none; add --pool POOL" in refused(capsys, "table", run, "--attribution")
    assert "have none; add --pool POOL" in refused(capsys, "report", run, "--attribution")
    monkeypatch.setattr(type(benchmark("causalab")), "attribution", lambda *_: None)  # as where too much is left
    first, pool = lines[0]["instance"], tmp_path / "4nodes_hidden_n1.jsonl"
    for line in (["table", run], ["report", run]):
        assert main([*map(str, line), "--attribution", "--pool", str(pool)]) == 0
        expected = (
            f"{len(lines)} answers have no attribution: what their evidence leaves is not counted (first: {first})"
        )
        assert expected in capsys.readouterr().err.splitlines()


def test_records_are_decided_anew_by_their_posterior() -> None:
    assert DEFAULT_LEVEL == DECIDED_AT
    assert DEFAULT_LEVEL in LEVELS
    for posterior, levels in ((0.97, [True, False, False]), (0.99, [True, True, False]), (0.5, [False] * 3)):
        for correct in (True, False):
            made = Attribution(posterior >= DECIDED_AT, correct, None, 7, "a class", posterior)
            record = attribution_record(made) | {"decided_at": 3}
            again = [decided_from(record, level) for level in LEVELS]
            assert [one["decided"] for one in again] == levels
            kinds = [KINDS[(not decided) * 2 + (not correct)] for decided in levels]
            assert [one["kind"] for one in again] == kinds
            assert again[1]["kind"] == str(made.kind)
            assert [one["decided_at"] for one in again] == [
                3 if decided == made.decided else None for decided in levels
            ]
    exact = attribution_record(Attribution(False, True, None, 7, "a class"))
    assert decided_from(exact, 0.95) == exact
    assert decision_notes([{"attribution": exact}, {}]) == ()


def test_kept_attributions_are_those_that_would_be_made(
    pool: Path, answers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second table makes none; a file that is damaged, of another program or of a pool of long ago has none."""
    verdicts, folder = tmp_path / "verdicts.jsonl", tmp_path / "kept"
    called("score", pool, answers, "--out", verdicts, "--workers", "1")

    def table() -> str:
        return called("table", verdicts, "--attribution", "--pool", pool, "--json").stdout

    plain = table()
    folder.mkdir()
    monkeypatch.setattr(kernel_cache, "user_folder", lambda name: folder)
    made: list[str] = []
    make = pool_attribution._expected_rates

    def counted(of: Any, item: Any, *arguments: Any) -> Any:
        made.append(item.id)
        return make(of, item, *arguments)

    monkeypatch.setattr(pool_attribution, "_expected_rates", counted)
    assert [table(), len(made), table(), len(made)] == [plain, 6, plain, 6]
    (kept,) = folder.iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])
    assert (table(), len(made)) == (plain, 12)
    monkeypatch.setattr(pool_attribution, "program_digest", lambda: "another")
    monkeypatch.setattr(pool_attribution, "MAX_POOLS", 1)
    assert (table(), len(made)) == (plain, 18)
    assert [path.name for path in folder.iterdir()] == [kept.name.replace(kept.name.split("-")[0], "another")]
    monkeypatch.setattr(pool_attribution, "MAX_VALUES", 1)
    (kept,) = folder.iterdir()
    kept.unlink()
    assert [table(), table()] == [plain, plain]
    assert len(json.loads(kept.read_bytes())) == 1


def test_one_hint_names_the_files_of_all_pools_that_are_needed(tmp_path: Path) -> None:
    """Also where some are given; each hint used to name one pool in place of the last."""
    run, pools = tmp_path / "run", [bundled_sample("ordered"), bundled_sample("causim"), bundled_sample("block")]
    for pool in pools:
        few = ("--limit", "2") if pool is not pools[1] else ("--limit", "3")
        assert called("run", "copy" if pool is pools[1] else "exact", pool, *few, "--out", run).returncode == 0
    for given in ((), ("--pool", pools[0])):
        done = called("table", run, "--attribution", *given)
        (hint,) = (line for line in done.stderr.splitlines() if line.startswith("hint"))
        assert done.returncode == 2
        words = shlex.split(hint.removeprefix("hint"))[1:]
        assert words.count("--pool") == len(pools)
        assert called(*words).returncode == 0


def test_a_column_of_one_benchmark_is_shown_where_it_is(tmp_path: Path) -> None:
    pools = {"exact": bundled_sample("ordered"), "copy": bundled_sample("causim")}
    for name, pool in pools.items():
        for out in (tmp_path / "run", tmp_path / name):
            assert called("run", name, pool, "--limit", "2", "--out", out).returncode == 0
    blocks = called("table", tmp_path / "run", "--columns", "n,HeldoutExact,Accuracy").stdout.split("\n\n")
    assert [("HeldoutExact" in block, "Accuracy" in block) for block in blocks] == [(True, False), (False, True)]
    missing = called("table", tmp_path / "copy", "--columns", "n,HeldoutExact").stderr
    assert "unknown column 'HeldoutExact' of CauSim: it is one of ReplaySCM; " in missing
    unknown = called("table", tmp_path / "run", "--columns", "Acuracy").stderr
    assert "unknown column 'Acuracy'; did you mean Accuracy" in unknown
    assert max(map(len, unknown.splitlines())) < 200


def test_by_stratum_rates_stay_and_names_are_shortened(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for name in ("ordered", "block"):
        assert called("run", "exact,copy-parent", bundled_sample(name), "--limit", "24", "--out", run).returncode == 0
    done = called("table", run, "--by", "stratum")
    head, *lines = done.stdout.splitlines()
    assert {"n", "TrainExact", "HeldoutExact"} <= {*head.split()}
    assert max(len(line) for line in (head, *lines) if "  " in line) <= 80
    assert "middles of Stratum; `calibrant table" in done.stderr
