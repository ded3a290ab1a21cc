"""`calibrant show` and `calibrant pool`: checks and statistics of every benchmark."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import calibrant
from calibrant.bench.cli import main
from calibrant.bench.core.registry import benchmark, bundled_sample
from calibrant.dsl.item import Pool
from calibrant.dsl.records import file_digest
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.item_types import BlicketItem, CausimItem, LabItem
from tests.bench.pools.sample_suites import SAMPLES
from tests.support.commands import called, refused
from tests.support.shared import shared_file
from tests.support.stub_protocols import small_pool

# --- `calibrant show` and `calibrant pool` ----------------------------------------------------------------------------
SMALL = ["good", "or", "good"]


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    path = tmp_path / "small.jsonl"
    write_pool(small_pool(SMALL), path)
    return path


def test_show_tells_what_is_disclosed_and_gold_only_on_request(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(pool), "I1"]) == 0
    shown = capsys.readouterr().out
    assert "order       X1 < X2 < X3" in shown
    assert "or-1   no intervention" in shown
    assert "  u1     1    0    1" in shown
    assert "(or X1 X2)" not in shown
    assert "clamped" not in shown.split("clamped cells in brackets")[1]
    assert main(["show", str(pool), "I1", "--gold"]) == 0
    sealed = capsys.readouterr().out
    assert "X3 = (or X1 X2)   parents X1 X2" in sealed
    assert "clamped   do(X3=1)\n  unit   X1   X2   X3\n  u0     0    0   [1]" in sealed


def test_show_json_has_no_sealed_part_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    pool = shared_file("pool_dev_t1_hidden_roots.runtime.yaml")
    instance = read_pool(pool, keep_results=False).problems[0]
    cases: list[tuple[list[str], set[str]]] = [([], set()), (["--gold"], {"sealed"})]
    for extra, keys in cases:
        assert main(["show", str(pool), instance.id, "--json", *extra]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert shown.keys() & {"sealed", "results", "gold", "labels"} == keys
        assert shown["disclosure"] == {"type": "hidden_roots", "root_count": 3}
        assert "environment" not in json.dumps(shown["training"])


def test_convert_keeps_the_problems(tmp_path: Path) -> None:
    source = shared_file("official_sample.runtime.yaml")
    cases: list[tuple[list[str], int]] = [([], 18), (["--drop-results"], 0)]
    for extra, num_results in cases:
        target = tmp_path / f"{num_results}.jsonl"
        assert called("pool", "convert", source, target, *extra).returncode == 0
        converted = read_pool(target)
        assert converted.problems == read_pool(source).problems
        assert sum(len(problem.results()) for problem in converted.problems) == num_results


def test_check_passes_for_the_sample_and_says_what_it_did_not_read(capsys: pytest.CaptureFixture[str]) -> None:
    sample = str(shared_file("official_sample.runtime.yaml"))
    assert main(["pool", "check", sample, "--fields"]) == 0
    text = capsys.readouterr().out
    assert "ok      gold replays its held-out worlds: 2 of 2" in text
    assert "ok      reference replays its training worlds: 2 of 2" in text
    assert "problem.goldAnswer.scm.parentsByVar in 2 records" in text
    assert "problem.worlds[].interventionSummary.do in 2 records" in text
    assert "problem.signature.variables" not in text
    assert "  ok      every record was read; by its digest none of the published files, which is no fault\n" in text
    assert main(["pool", "check", sample, "--official"]) == 1
    assert "failed  not an official file" in capsys.readouterr().out


Edit = Callable[[dict[str, Any]], object]

EDITS: dict[str, Edit] = {
    "gold replays its training worlds": lambda r: r["training"][0].update(rows=["001", "100", "010", "111"]),
    "gold replays its held-out worlds": lambda r: r["sealed"]["heldout"][0].update(rows=["001", "100", "010", "111"]),
    "stated gold size": lambda r: r["sealed"].update(gold_size=4),
    "some training cell is scored": lambda r: r["training"][0].update(assigned=["X3"]),
    "gold is legal under the disclosure": lambda r: [
        r["disclosure"].update(order=["X1", "X3", "X2"]),
        r["sealed"].update(latent_order=["X1", "X3", "X2"]),
    ],
}


def _edited(path: Path, edit: Edit) -> Path:
    """Return a pool of one sound instance, after an edit of its record."""
    write_pool(small_pool(["good"]), path)
    header, instance = path.read_text(encoding="utf-8").splitlines()
    record = json.loads(instance)
    edit(record)
    path.write_text(f"{header}\n{json.dumps(record)}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("check", EDITS)
def test_check_finds_what_is_wrong(check: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _edited(tmp_path / "p.jsonl", lambda record: None)
    assert main(["pool", "check", str(path)]) == 0
    assert check in capsys.readouterr().out
    assert main(["pool", "check", str(_edited(path, EDITS[check])), "--json"]) == 1
    (report,) = json.loads(capsys.readouterr().out)
    assert [failure["check"] for failure in report["failures"]] == [check]
    assert report["passed"] is False


def test_check_notices_roots_that_do_not_keep_their_thresholds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """X1 is 1 in u1 and u3 in one world, in u2 and u3 in the next: neither set holds the other."""
    for rows, names in ((["000", "100", "010", "111"], ""), (["000", "010", "100", "111"], "X1, X2")):

        def edit(record: dict[str, Any], rows: list[str] = rows) -> None:
            record["shares_units"] = True
            record["sealed"]["heldout"] = [{"id": "held", "rows": rows}]

        path = _edited(tmp_path / "p.jsonl", edit)
        assert main(["pool", "check", str(path), "--json"]) == (1 if names else 0)
        (report,) = json.loads(capsys.readouterr().out)
        reasons = [failure["reason"] for failure in report["failures"]]
        assert reasons == ([f"columns of {names} are not nested over the worlds"] if names else [])


def test_an_unreadable_pool_is_bad_input_not_a_failed_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.jsonl").write_text('{"format": "other"}\n', encoding="utf-8")
    assert refused(capsys, "pool", "check", tmp_path / "bad.jsonl").startswith("bad.jsonl: ")


def test_stats(pool: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    assert main(["pool", "stats", str(pool), "--json"]) == 0
    even, odd = json.loads(capsys.readouterr().out)
    assert (even["stratum"], even["n"], odd["stratum"], odd["n"]) == ("even", 2, "odd", 1)
    ranges = [even[key] for key in ("variables", "training_worlds", "heldout_worlds", "rows")]
    assert ranges == [[3, 3], [1, 1], [2, 2], [4, 4]]
    assert (even["mode_none"], even["mode_hard_assigned"]) == (1, 0)
    assert even["gold_size"] == {"least": 3, "median": 3, "greatest": 3}
    assert even["gold_parents"] == {"2": 2}
    assert main(["pool", "stats", str(pool)]) == 0
    headings, first = capsys.readouterr().out.splitlines()[:2]
    assert headings.split()[:4] == ["pool", "setting", "stratum", "n"]
    assert first.split()[2:] == ["even", "2", "3", "1", "2", "4", "1.000", "0.000", "0.000", "3/3/3", "3/3/3", "2:2"]


def test_stats_of_a_dev_pool_are_its_known_design(capsys: pytest.CaptureFixture[str]) -> None:
    """Ten problems of each of eight configurations with the published numbers of variables and rows."""
    assert main(["pool", "stats", str(shared_file("pool_dev_ordered.runtime.yaml")), "--json"]) == 0
    found = {row["stratum"]: (row["n"], row["variables"], row["rows"]) for row in json.loads(capsys.readouterr().out)}
    assert found["hs_n6_easy_calibration"] == (10, [6, 6], [10, 10])
    assert found["vhs_n10_extreme_near_impossible"] == (10, [10, 10], [11, 11])
    assert len(found) == 8


def test_schema_describes_the_native_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pool", "schema"]) == 0
    assert json.loads(capsys.readouterr().out).keys() == {"header", "instance"}


def test_stats_have_numbers_in_json_and_say_which_pool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / name for name in ("one.jsonl", "two.jsonl")]
    write_pool(small_pool(["good", "or"]), paths[0])
    write_pool(small_pool(["good"]), paths[1])
    assert main(["pool", "stats", *map(str, paths), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    digests = {path.name: file_digest(path) for path in paths}
    assert {row["file"]: row["digest"] for row in made} == digests
    assert {row["pool"] for row in made} == {f"small ({digest[:8]})" for digest in digests.values()}
    (row,) = [row for row in made if row["file"] == "two.jsonl"]
    (problem,) = read_pool(paths[1]).problems
    assert problem.sealed.gold is not None
    assert (row["n"], row["variables"]) == (1, [len(problem.task.variables)] * 2)
    size = problem.sealed.gold.size
    assert row["gold_size"] == {"least": size, "median": size, "greatest": size}
    assert sum(row[f"mode_{mode}"] for mode in ("none", "hard_constant", "hard_assigned")) == pytest.approx(1)
    assert main(["pool", "stats", *map(str, paths)]) == 0
    assert all(f"small ({digest[:8]})" in capsys.readouterr().out for digest in list(digests.values())[:1])


# --- `pool check` and `pool stats` on blickets, CausaLab and CauSim: what is wrong, noted and counted -----------------
DETECTOR = calibrant.generate(1, of="blickets", suite="easy-3")
LAB = calibrant.generate(1, of="causalab", suite="4nodes")
GOLDEN = calibrant.generate(1, of="causalab", suite="4nodes_golden")
QUESTION = calibrant.generate(1, of="causim", suite="chain")
NOTED = ("duplicate", "undecided", "open-cells")


def _pool(folder: Path, *items: Any) -> Path:
    bench = benchmark(items[0].benchmark)
    path = folder / "pool.jsonl"
    bench.items.write_pool(Pool("made", bench.name, tuple(items), {}), path)
    return path


def _checked(path: Path, code: int, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["pool", "check", str(path), "--json"]) == code
    (report,) = json.loads(capsys.readouterr().out)
    assert report["passed"] is (code == 0)
    return dict(report)


def _with_labels(item: BlicketItem, **labels: str) -> BlicketItem:
    return replace(item, labels={**item.labels, **labels})


def _lab_with(item: LabItem, **labels: float) -> LabItem:
    return replace(item, sealed=replace(item.sealed, labels=labels))


@pytest.mark.parametrize("of", SAMPLES)
def test_bundled_pools_are_sound(of: str, capsys: pytest.CaptureFixture[str]) -> None:
    report = _checked(bundled_sample(of), 0, capsys)
    assert report["failures"] == []
    assert report["num_instances"] == len(SAMPLES[of].suites) * SAMPLES[of].each
    noted = {kind: {n["instance"] for n in report["notes"] if n["kind"] == kind} for kind in NOTED}
    assert not noted["duplicate"]
    # a noisy item of logic models may leave held-out answers open: that it does is proved cell by cell, too
    assert noted["undecided"] == noted["open-cells"]
    assert bool(noted["open-cells"]) is (of == "logic")


def test_what_a_blicket_file_says_wrongly_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = replace(DETECTOR, id="late", sealed=replace(DETECTOR.sealed, switches=(80,)))
    right = _with_labels(DETECTOR, certifiable="yes", members_static="57")
    wrong = _with_labels(replace(DETECTOR, id="wrong"), members_static="58")
    report = _checked(_pool(tmp_path, right, wrong, late), 1, capsys)
    assert [(failure["check"], failure["instance"]) for failure in report["failures"]] == [
        ("stated labels are those of the item", "wrong"),
        ("the last switch is within the budget", "late"),
    ]
    assert report["failures"][0]["reason"] == "members_static 58, found 57"
    assert report["failures"][1]["reason"] == "after 80 activations, of 75 moves"


def test_what_a_laboratory_file_says_wrongly_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edges = len(LAB.sealed.mechanism.edges)
    right, wrong = _lab_with(LAB, edges=edges, winnable=1.0), _lab_with(replace(LAB, id="wrong"), edges=edges + 1)
    number, entry = next((n, one) for n, one in enumerate(GOLDEN.task.trace) if one.property is not None)
    values = {**entry.values, "resonanceFreq": entry.values["resonanceFreq"] + 1}
    trace = (*GOLDEN.task.trace[:number], replace(entry, values=values), *GOLDEN.task.trace[number + 1 :])
    forged = replace(_lab_with(GOLDEN, members=1.0), id="forged", task=replace(GOLDEN.task, trace=trace))
    report = _checked(_pool(tmp_path, right, wrong, GOLDEN, forged), 1, capsys)
    assert [(failure["check"], failure["instance"]) for failure in report["failures"]] == [
        ("stated labels are those of the item", "wrong"),
        ("the mechanism explains the static trace", "forged"),
        ("stated labels are those of the item", "forged"),
    ]
    assert report["failures"][1]["reason"] == "a value of the static trace is off by 1"


def test_what_a_file_of_questions_says_wrongly_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = replace(QUESTION, id="size", labels=replace(QUESTION.labels, size=QUESTION.labels.size + 1))
    one = replace(QUESTION, id="one", task=replace(QUESTION.task, scenario="deterministic"))
    (noise,) = QUESTION.task.question.fixed
    (other,) = [
        value
        for node in QUESTION.task.model.nodes
        if node.noise == noise
        for value in node.support[:2]
        if value != QUESTION.sealed.world[noise]
    ][:1]
    world = {**QUESTION.sealed.world, noise: other}
    foreign = replace(QUESTION, id="foreign", sealed=replace(QUESTION.sealed, world=world))
    report = _checked(_pool(tmp_path, QUESTION, sizes, one, foreign), 1, capsys)
    assert [(failure["check"], failure["instance"]) for failure in report["failures"]] == [
        ("stated labels are those of the question", "size"),
        ("the scenario is that of its answers", "one"),
        ("the sealed world fits the question", "foreign"),
    ]


def test_duplicates_and_what_nobody_can_decide_are_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = replace(DETECTOR, id="short", task=replace(DETECTOR.task, budget=4))
    report = _checked(_pool(tmp_path, DETECTOR, replace(DETECTOR, id="again"), short), 0, capsys)
    noted = {(note["kind"], note["instance"]) for note in report["notes"]}
    assert {("duplicate", "again"), ("undecided", "short")} <= noted
    assert ("duplicate", "short") not in noted
    for item in (LAB, QUESTION):
        report = _checked(_pool(tmp_path, item, replace(item, id="again")), 0, capsys)
        assert [n["claim"] for n in report["notes"] if n["kind"] == "duplicate"] == [f"the same as {item.id}"]


def test_a_duplicate_may_stand_in_an_earlier_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    one, two = _pool(first, LAB), _pool(second, replace(LAB, id="copy"))
    assert main(["pool", "check", str(one), str(two)]) == 0
    printed = capsys.readouterr().out
    assert f"  note    duplicate: 1 of 1\n            copy: the same as {LAB.id} of {one}\n" in f"{printed}\n"


def test_released_suites_are_checked_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    report = _checked(shared_file("data/6nodes_golden.jsonl", part="causalab"), 0, capsys)
    assert report["applied"] == {"the mechanism explains the static trace": 50}
    kinds = [note["kind"] for note in report["notes"]]
    assert (kinds.count("undecided"), kinds.count("ambiguous"), kinds.count("trivial")) == (14, 14, 50)
    assert main(["pool", "stats", str(shared_file("data/4nodes.jsonl", part="causalab")), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["setting"], row["n"], row["nodes"], row["allowance"]) == ("4nodes", 50, [4, 4], [12, 12])


def test_figures_are_those_of_the_items(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pool", "stats", *map(str, map(bundled_sample, SAMPLES)), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert sum(row["n"] for row in rows) == sum(len(one.suites) * one.each for one in SAMPLES.values())
    detectors = [row for row in rows if row["pool"] == "sample_blickets"]
    assert [row["stratum"] for row in detectors] == list(SAMPLES["blickets"].suites)
    easy, order = detectors[2], detectors[5]
    assert (easy["first_rule"], easy["later_rules"], easy["switches"]) == (
        {"conjunctive-2": 4},
        {"disjunctive-1": 4},
        [3, 3],
    )
    assert (order["ordered"], order["objects"], order["budget"]) == (1.0, [4, 4], [100, 100])
    asked = {(row["setting"], row["stratum"]): row for row in rows if row["pool"] == "sample_causim"}
    assert {topology for _, topology in asked} == set(SAMPLES["causim"].suites)
    chain = asked["abduction-stochastic", "chain"]
    assert (chain["n"], chain["programs"], chain["nodes"]) == (3, 3, [2, 6])
    labels = _own(bundled_sample("causim"), "abduction", "chain")
    assert chain["answers"] == {"least": min(labels), "median": sorted(labels)[1], "greatest": max(labels)}


def _own(path: Path, kind: str, topology: str) -> list[int]:
    """Return the sizes that the file states."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    return [one["labels"]["size"] for one in lines if (one["type"], one["topology"]) == (kind, topology)]


def test_what_only_replayscm_has_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _pool(tmp_path, QUESTION)
    assert "--official applies to ReplaySCM, not to CauSim (" in refused(capsys, "pool", "check", path, "--official")
    assert "pools of several benchmarks" in refused(capsys, "pool", "check", path, bundled_sample("causalab"))
    assert isinstance(QUESTION, CausimItem)
