"""Pools that come with the package, drawn ones, and their page."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from calibrant.audits.claims import ClaimStatus
from calibrant.bench.causalab.generation import MAX_PARTS, MIN_PART_ITEMS
from calibrant.bench.causim.options import GenerateOptions
from calibrant.bench.cli import main
from calibrant.bench.core.registry import NAMES, benchmark, benchmark_of, bundled_files, bundled_pool, bundled_sample
from calibrant.bench.pools.capabilities import GENERATE, GenerateRequest
from calibrant.bench.pools.findings_audit import FindingRecord, findings_lines
from calibrant.bench.pools.generated import write_drawn
from calibrant.bench.pools.item_options import read_item_options
from calibrant.bench.runs.executors import HERE, Execution
from calibrant.dsl.errors import CalibrantError
from tests.bench.pools.sample_suites import BUNDLED_SEED, SAMPLES
from tests.support.commands import CHECKOUT, called, jsonl

# --- The bundled pools of the benchmarks that generate theirs: made by one command, small, of several suites ----------


@pytest.mark.parametrize("of", SAMPLES)
def test_a_bundled_pool_is_what_the_command_gives(of: str, tmp_path: Path) -> None:
    made, (suites, each) = tmp_path / bundled_sample(of).name, SAMPLES[of]
    line = ["generate", "--benchmark", of, "--strata", ",".join(suites), "--per-stratum", str(each)]
    assert main([*line, "--seed", str(BUNDLED_SEED), "--out", str(made)]) == 0
    assert made.read_bytes() == bundled_sample(of).read_bytes()


@pytest.mark.parametrize(("of", "strata"), [("blickets", 6), ("causalab", 3), ("causim", 12), ("logic", 5)])
def test_a_bundled_pool_is_small_and_of_several_suites(of: str, strata: int) -> None:
    path = bundled_sample(of)
    assert path.stat().st_size < 200_000
    pool = benchmark_of(path).items.read_pool(path)
    assert pool.name == f"sample_{of}"
    assert len(pool) == len(SAMPLES[of].suites) * SAMPLES[of].each
    assert len({item.stratum for item in pool.items}) == strata


def test_every_benchmark_has_a_bundled_pool() -> None:
    assert tuple(bundled_files()) == NAMES
    assert all(path.is_file() for paths in bundled_files().values() for path in paths)


# --- Parts of suites: what is drawn of them apart is what is drawn of the whole ---------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_parts_are_all_places_in_order(name: str) -> None:
    for count in (0, 1, 7, 8, 9, 64, 65, 1000):
        parts = benchmark(name).suites.parts(count)
        assert list(chain.from_iterable(parts)) == list(range(count))
        if name not in ("logic", "blickets"):  # whose items depend on no earlier one: a part of one is no more work
            assert len(parts) <= MAX_PARTS


@pytest.mark.parametrize(
    ("name", "stated"), [("logic", ()), ("blickets", ()), ("blickets", ("budget=30",)), ("causim", ())]
)
def test_progress_counts_items(name: str, stated: tuple[str, ...], tmp_path: Path) -> None:
    bench, seen = benchmark(name), list[tuple[int, int]]()
    suites, path = bench.suites.names[:2], tmp_path / "pool.jsonl"
    options = read_item_options("generate", name, stated)
    write_drawn(bench, path, suites, 3, 3, progress=lambda _, done, total: seen.append((done, total)), options=options)
    assert seen == [(done, 6) for done in range(7)]
    if not stated:
        whole = [bench.items.record(item) for item in bench.suites.draw(suites, 3, 3)]
        assert [bench.items.record(item) for item in bench.items.read_pool(path).items] == whole
    if name != "logic":  # an item is drawn when it is asked for, so progress comes meanwhile
        items = bench.suites.iterate_part(suites[0], 3, range(10**9))
        assert next(items).id == bench.suites.draw(suites[:1], 3, 1)[0].id


@pytest.mark.parametrize(
    ("name", "suites", "count", "stated"),
    [
        ("causalab", ("3nodes",), 17, ()),
        ("logic", ("exact",), 4, ()),
        ("causim", ("chain", "asia", "tree"), 17, ()),  # programs, questions about one model, programs
        ("causim", ("chain",), 23, ("types=counterfactual,abduction", "each=3", "versions=1-3")),
        ("causim", ("cancer",), 10_000, ("types=deduction",)),  # which has fewer
    ],
)
def test_progress_of_other_processes_comes_within_a_suite(
    name: str, suites: Sequence[str], count: int, stated: Sequence[str], tmp_path: Path
) -> None:
    path, written = tmp_path / "pool.jsonl", []
    for execution in (HERE, Execution(workers=2))[: 1 if name == "logic" else 2]:
        seen = draw_counting(name, suites, count, stated, path, execution)
        assert seen[0] == 0
        assert seen[-1] == count * len(suites)
        assert len(set(seen)) > 3 * len(suites)
        assert seen == sorted(seen)
        written.append(path.read_bytes())
    assert written[0] == written[-1]
    if not stated:
        bench = benchmark(name)
        drawn = [bench.items.record(item) for item in bench.suites.draw(suites, 3, count)]
        assert [bench.items.record(item) for item in bench.items.read_pool(path).items] == drawn


def draw_counting(
    name: str, suites: Sequence[str], count: int, stated: Sequence[str], path: Path, execution: Execution
) -> list[int]:
    """Write a pool of seed 3; return the numbers that progress reported."""
    seen = list[int]()

    def report(label: str, done: int, total: int) -> None:
        assert (label, total) == (path.name, count * len(suites))
        seen.append(done)

    options = read_item_options("generate", name, stated)
    write_drawn(benchmark(name), path, suites, 3, count, execution, progress=report, options=options)
    return seen


def test_programs_without_a_question_end_the_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing outside `do` can change in a program of one node, however often a question is drawn: here 5 times."""
    monkeypatch.setattr("calibrant.solvers.causim.generation.SEEDS", 5)
    stated = ["versions=1", "types=intervention", "effect=some"]
    with pytest.raises(CalibrantError, match="suite chain: none of 20 programs in a row has such an item"):
        draw_counting("causim", ["chain"], 1_000, stated, tmp_path / "pool.jsonl", HERE)
    assert list(tmp_path.iterdir()) == []


def test_progress_counts_the_questions_of_programs(tmp_path: Path) -> None:
    """A program with fewer questions than it is to have counts as done; further programs count what was missing."""
    seen = list[tuple[str, int, int]]()
    request = GenerateRequest(
        tmp_path / "p.jsonl",
        "chain",
        1,
        None,
        HERE,
        lambda *state: seen.append(state),
        ["programs=3", "versions=1", "each=6", "types=intervention,abduction", "fill=true"],
    )
    lines = benchmark("causim").require(GENERATE).generate(request, GenerateOptions())
    requested = [(name, done, total) for name, done, total in seen if name == "p.jsonl"]
    assert requested == [("p.jsonl", 12 * programs, 36) for programs in range(4)]
    further = [state for state in seen if state[0] != "p.jsonl"]
    assert further
    assert any("further programs have" in line for line in lines)
    assert further[-1][1] == further[-1][2] > 0


@pytest.mark.parametrize("suite", ["3nodes", "4nodes_quad_hard", "4nodes_hidden_n1", "4nodes_freqparent"])
def test_laboratories_of_parts_are_those_of_the_whole_suite(suite: str) -> None:
    """Of three nodes there are so few topologies that later items have those of earlier ones again."""
    bench, count = benchmark("causalab"), 2 * MIN_PART_ITEMS + 3
    whole = list(bench.suites.draw([suite], 6, count))
    parts = bench.suites.parts(count)
    assert len(parts) == 3
    assert [bench.items.record(item) for places in parts for item in bench.suites.draw_part(suite, 6, places)] == list(
        map(bench.items.record, whole)
    )


def test_a_part_of_any_suite_is_what_stands_at_its_places() -> None:
    for name in ("blickets", "causim", "replayscm"):
        bench = benchmark(name)
        suite = bench.suites.names[0]
        assert list(bench.suites.draw_part(suite, 2, range(3, 5))) == list(bench.suites.draw([suite], 2, 9)[3:5])


# --- Notes of `pool check` on ReplaySCM: items that stay open, and headers that contradict their records --------------
SETTINGS = ("ordered", "block", "hidden-order", "hidden-roots")


def _notes(pool: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["pool", "check", str(pool), "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    return list(report.get("notes", []))


def _part(tmp_path: Path, setting: str, num_items: int, metadata: Mapping[str, str] = {}) -> Path:
    header, *lines = bundled_pool(setting).read_text(encoding="utf-8").splitlines()
    return jsonl(tmp_path / "part.jsonl", json.loads(header) | {"metadata": dict(metadata)}, *lines[:num_items])


@pytest.mark.parametrize("setting", SETTINGS)
def test_ambiguous_items_are_those_of_the_audit(
    setting: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = _part(tmp_path, setting, 3)
    notes = _notes(pool, capsys)
    assert [note["kind"] for note in notes] == ["ambiguous"] * 3
    assert main(["audit", str(pool), "--out", str(tmp_path / "audit")]) == 0
    audited = [json.loads(line) for line in (tmp_path / "audit" / "audits.jsonl").read_text("utf-8").splitlines()]
    findings = {record["instance"]: record["findings"] for record in audited if record.get("findings")}
    assert len(findings) == 3
    capsys.readouterr()
    assert main(["list", str(pool), "--why"]) == 0
    listed = capsys.readouterr().out
    for note in notes:
        counted = findings[note["instance"]]
        (members,) = (c["members"] for c in counted["classes"] if c["max_parents"] == counted["headline"])
        assert int(members) > 1
        assert note["claim"].startswith(f"{int(members):,} SCMs fit: functional parents <= {counted['headline']}")
        if counted["headline"] == 4:
            assert f"{int(members):,}" in listed


def test_an_item_of_one_scm_is_not_called_ambiguous(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = _part(tmp_path, "ordered", 2), tmp_path / "hard.jsonl"
    assert main(["harden", str(source), "--out", str(target), "--seed", "1"]) == 0
    assert not [note for note in _notes(target, capsys) if note["kind"] == "ambiguous"]


@pytest.mark.parametrize("field", ["disclosure", "setting"])
def test_a_header_of_another_disclosure_is_noted(
    field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = _notes(_part(tmp_path, "hidden-order", 3, {field: "ordered"}), capsys)
    headers = [note for note in notes if note["kind"] == "header"]
    assert len(headers) == 3
    assert headers[0]["claim"] == f"the record is Hidden-order; the header states {field}: ordered"


@pytest.mark.parametrize("stated", ["hidden_order", "hidden-order", "mine"])
def test_a_header_that_does_not_contradict_is_not_noted(
    stated: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = _notes(_part(tmp_path, "hidden-order", 2, {"disclosure": stated}), capsys)
    assert {note["kind"] for note in notes} == {"ambiguous"}


# --- docs/pools.md: its smallest pool is one, and is audited as the page says -----------------------------------------
PAGE = (CHECKOUT / "docs" / "pools.md").read_text(encoding="utf-8")
LINES = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)[0]


def _members(pool: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["audit", str(pool), "--json", "--workers", "1"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["instances"]
    (headline,) = [one for one in found["findings"]["classes"] if one["max_parents"] == 2]
    return str(headline["members"])


def test_the_smallest_pool_is_checked_shown_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = tmp_path / "mine.jsonl"
    pool.write_text(LINES, encoding="utf-8")
    for command in re.findall(r"^    calibrant (.*?) +#", PAGE, re.MULTILINE):
        assert main(command.replace("mine.jsonl", str(pool)).split()) == 0
    capsys.readouterr()
    assert _members(pool, capsys) == "2"
    closed = LINES.replace('"u2"]', '"u2", "u3"]').replace('"111"]', '"111", "100"]')
    pool.write_text(closed, encoding="utf-8")
    assert _members(pool, capsys) == "1"


# --- The table of findings fits the columns that are stated, and loses nothing of a claim -----------------------------
POOL = CHECKOUT / "bench" / "causalab" / "data" / "sample_causalab.jsonl"


def _finding(where: str, claim: str) -> FindingRecord:
    return FindingRecord(where, "leak", ClaimStatus.PROVED, claim, {}, None)


def test_a_wide_claim_continues_below_itself() -> None:
    long = _finding("a-b", "one-two three four five six seven eight nine ten")
    assert list(findings_lines(lambda: [long, _finding("c", "short")], 60)) == [
        "Instance  Kind  Verdict  Claim",
        "a-b       leak  proved   one-two three four five six seven",
        "                         eight nine ten",
        "c         leak  proved   short",
    ]


def test_below_60_columns_a_finding_is_a_paragraph() -> None:
    long = _finding("a-b", "one-two three four five six seven eight nine ten")
    assert list(findings_lines(lambda: [long, _finding("c", "short")], 48)) == [
        "a-b  leak  proved",
        "  one-two three four five six seven eight nine",
        "  ten",
        "",
        "c  leak  proved",
        "  short",
    ]


def test_a_claim_on_many_lines_stays_one_row_where_no_width_is_stated() -> None:
    assert len(list(findings_lines(lambda: [_finding("a", "one\ntwo " * 100)]))) == 2
    assert all(len(line) <= 60 for line in findings_lines(lambda: [_finding("a", "one\ntwo " * 100)], 60))
    assert list(findings_lines(list, 60)) == ["No item has a finding."]


def test_lines_of_a_last_column_of_numbers_are_set_to_the_right() -> None:
    wide = _finding("a", "1234 " * 6)
    assert list(findings_lines(lambda: [wide, _finding("b", "12")], 60))[1:] == [
        "a         leak  proved   1234 1234 1234 1234 1234 1234",
        "b         leak  proved   12",
    ]
    narrow = list(findings_lines(lambda: [_finding("a", "12345678901234 " * 3), _finding("b", "12")], 60))
    assert narrow[1:] == [
        "a         leak  proved   12345678901234 12345678901234",
        "                         12345678901234",
        "b         leak  proved   12",
    ]
    long = _finding("a", "12345678901234567890 " * 2)  # a word on each line
    assert list(findings_lines(lambda: [long, _finding("b", "12")], 60))[1:] == [
        "a         leak  proved   12345678901234567890",
        "                         12345678901234567890",
        "b         leak  proved                     12",
    ]


@pytest.mark.parametrize("width", [None, 59, 80])
def test_no_rows_stay_in_memory(width: int | None) -> None:
    number, claim = 2_000, "a claim of many words " * 20

    def findings() -> Iterator[FindingRecord]:
        return (_finding(f"i{k}", claim + str(k)) for k in range(number))

    tracemalloc.start()
    try:
        lines = sum(1 for _ in findings_lines(findings, width))
        assert tracemalloc.get_traced_memory()[1] < number * len(claim) / 5
    finally:
        tracemalloc.stop()
    assert lines > number


@pytest.mark.parametrize("width", [70, 100])
def test_the_command_wraps_to_columns(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    whole = called("audit", POOL, "--limit", "3", "--workers", "1").stdout
    monkeypatch.setenv("COLUMNS", str(width))
    wrapped = called("audit", POOL, "--limit", "3", "--workers", "1").stdout
    assert max(map(len, whole.splitlines())) > 100
    assert max(map(len, wrapped.splitlines())) <= width
    assert re.sub(r"\s+", " ", wrapped) == re.sub(r"\s+", " ", whole)
