"""No option is ignored: every option of every command, on a pool of every benchmark."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import combinations, cycle
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from calibrant.bench.core.names import TITLES
from calibrant.bench.core.options import GivenOptions, declared_options, option_struct
from calibrant.bench.core.registry import benchmarks, bundled_sample
from calibrant.dsl.errors import CalibrantError
from tests.bench.commands.lines import BENCHMARKS, COMMANDS, Files, Outcome, base_line, outcome
from tests.support.commands import called, jsonl, refused
from tests.support.effort import effort
from tests.support.pages.option_tables import PAGE, page_text

HOW = {
    "--workers": ["1"],
    "--budget": ["600"],
    "--retry-crashed": [],
    "--quiet": [],
}
"""Options that say how the work is done: they are taken, and what comes of it is the same."""

IDLE = {
    "score:--regret": "test_an_episode_counts_worlds_refusals_and_what_is_left",
    "score:--skip-unknown": "test_unknown_instances_are_passed_over",
    "score:--on-error": "test_vectors",
    "score:--duplicates": "test_vectors",
    "fit:--verbose": "test_all_notes_are_printed_on_request",
    **dict.fromkeys(
        ("report:--extractor", "report:--on-error", "report:--duplicates"),
        "test_a_report_takes_the_options_on_lines_that_score_takes",
    ),
    "report:--pool": "test_pools_show_episodes_of_blickets_in_a_page",
    "report:--times": "test_a_report_without_times_shows_none",
    "report:--paper": "test_the_papers_rows_stand_beside_ours_under_the_same_condition",
    "report:--attribution": "test_episodes_are_attributed_with_the_option_and_without",
    "audit:--fail-on": "test_findings_fail_the_audit_of_the_chosen_items",
    "audit:--only": "test_findings_fail_the_audit_of_the_chosen_items",
    "audit:--limit": "test_findings_fail_the_audit_of_the_chosen_items",
    "pool convert:--drop-results": "test_convert_keeps_the_problems",
    "pool check:--fields": "test_check_passes_for_the_sample_and_says_what_it_did_not_read",
    "fit:--seconds": "test_nineteen_columns_have_a_proven_optimum_or_a_stated_bound",
    "fit:--search": "test_nineteen_columns_have_a_proven_optimum_or_a_stated_bound",
}
"""What has no effect on some of the pools here, and the test that shows its effect where it has one."""

VALUES: dict[str, list[str]] = {
    "--form": ["passive"],
    "--set-size": ["2"],
    "--alternatives": ["ALTERNATIVES"],
    "--limit": ["1"],
    "--only": ["ID"],
    "--cluster": ["nonsense"],
    "--max-parents": ["2"],
    "--option": ["max_parents=2"],
    "--out": ["OUT/given"],
    "--seed": ["7"],
    "--per-stratum": ["2"],
    "--strata": ["nothing"],
    "--setting": ["block"],
    "--max-added": ["0"],
    "--audits": ["OUT/given.jsonl"],
    "--benchmark": ["OTHER"],
    "--html": ["OUT/page.html"],
    "--svg": ["OUT/why.svg"],
    "--certificates": ["OUT/certificates"],
    "--report": ["OUT/report.jsonl"],
    "--max-size": ["3", "--certificates", "OUT/certificates"],
    "--fail-on": ["ambiguous"],
    "--runs": ["RUN"],
    "--run": ["RUN"],
    "--mode": ["extra-worlds"],
    "--goal": ["heldout-agreement"],
    "--searches": ["first-found"],
    "--extractor": ["published"],
    "--thoughts": ["opened"],
    "--on-error": ["skip"],
    "--duplicates": ["drop"],
    "--id-field": ["model"],
    "--text-field": ["nothing"],
    "--model-field": ["id"],
    "--official": ["POOL"],
    "--by": ["stratum"],
    "--means": ["paper"],
    "--columns": ["all"],
    "--pool": ["POOL"],
    "--predictions": ["PREDICTIONS"],
    "--format": ["csv"],
    "--table": ["samples"],
    "--against": ["nobody"],
    "--plots": ["OUT/plots"],
    "--name": ["Title"],
    "--split": ["train"],
    "--apart-from": ["POOL"],
    "--license": ["cc-by-4.0"],
    "--order": ["nothing"],
    "--members": ["3"],
    "--targets": ["2"],
    "--sweep": ["POOL"],
    "--seeds": ["2"],
    "--curriculum": ["block"],
    "--responses": ["PREDICTIONS"],
    "--select": ["first-correct"],
    "--system": ["nobody"],
    "--score": ["bde"],
    "--best": ["2"],
    "--phase": ["reactor"],
    "--aid": ["members"],
    "--template": ["standard"],
    "--participant": ["p2", "--out", "OUT/given"],
    "--port": ["8080"],
    "--study": ["POOL"],
    "--static": ["OUT/page.html"],
    "--results": ["OUT/people.csv"],
    "--review": ["OUT/review.html"],
    "--import": ["POOL"],
}
NETWORK_OPTIONS = {
    "iss": ["4"],
    "require": ["X3 -> X1"],
    "forbid": ["X1 -> X3"],
    "tiers": ["X3 < X2 < X1"],
    "order": ["X3,X2,X1"],
    "max-parents-of": ["X3=0"],
    "knowledge": ["KNOWLEDGE"],
    "graph": ["X1 -> X2"],
    "effect": ["X3=1 | do(X1=0)"],
    "prior": ["orders"],
    "export": ["OUT/network.dot"],
}
BESIDE = {
    "play:--serve": ["--jsonl"],  # refused: a server would not end
    "audit:--nested-roots": ["--details"],
    "report:--by": ["RUN_OF_ANOTHER"],
    "report:--paper": ["--attribution", "--pool", "POOL"],
    "report:--id-field": ["--predictions", "PREDICTIONS", "--pool", "POOL"],
    "report:--text-field": ["--predictions", "PREDICTIONS", "--pool", "POOL"],
    "report:--model-field": ["--predictions", "PREDICTIONS", "--pool", "POOL"],
    "score:--extractor": ["--json"],
    "harden:--searches": ["--goal", "no-discovered", "--seeds", "1"],
    "harden:--seeds": ["--goal", "no-discovered", "--searches", "bnlearn+dsl"],
    **{
        f"report:--{name}": ["--predictions", "PREDICTIONS", "--pool", "POOL"]
        for name in ("extractor", "thoughts", "model", "on-error", "duplicates")
    },
    "show:--thoughts": ["--run", "PREDICTIONS"],
    "show:--extractor": ["--run", "PREDICTIONS"],
    "table:--thoughts": ["--official", "POOL"],
    "score:--structure": ["--json"],
    "show:--system": ["--run", "RUN"],
    "show:--steps": ["--html", "OUT/page.html"],
    "fit:--steps": ["--html", "OUT/page.html"],
    "fit:--best": ["--score", "bde"],
    "fit:--ties": ["--target", "X1", "--errors", "front", "--json"],
    "fit:--rates": ["--target", "X3"],
    "fit:--consistency": ["--target", "X3"],
    "fit:--cases": ["--target", "X3", "--consistency", "1/2"],
    "fit:--fail-on": ["--score", "bde", "--graph", "X2 -> X1"],
    **{f"fit:--{name}": ["--score", "bde"] for name in NETWORK_OPTIONS},
    "list:--assume": ["--why"],
    "list:--class": ["--scores", "RUN"],
    "list:--system": ["--scores", "RUN"],
    "show:--id-field": ["--run", "PREDICTIONS"],
    "show:--text-field": ["--run", "PREDICTIONS"],
    "show:--model-field": ["--run", "PREDICTIONS"],
}
"""What an option is given beside."""
CHOSEN = {
    "pool convert:--time": ["30"],
    "pool convert:--cell-line": ["A549"],
    "pool convert:--sign": ["both"],
    "verify:--engine": ["sat"],
    "pool convert:--fit": ["0.5"],
    "pool convert:--normalise": ["max"],
    "pool split:--shares": [".1,.1,.8"],
    "pool convert:--size": ["1"],
    "pool convert:--max-clause": ["2"],
    "pool convert:--rounding": ["floor"],
    "pool convert:--factor": ["10"],
    "pool check:--nodes": ["3"],
    "pool check:--topology": ["chain"],
    "pool check:--reference": ["nihss"],
    "pool check:--map": ["a=b"],
    "prompts:--system": ["think"],
    "generate:--item-option": ["view=prose"],
    "generate:--names": ["real"],
    "pool convert:--item-option": ["seed=3"],
    "alternatives:--sweep": ["POOL", "--seeds", "1"],
    "alternatives:--seeds": ["1", "--sweep", "POOL"],
    "report:--by": ["setting"],
    "report:--audits": ["AUDIT"],
    "report:--cohort": ["COHORT"],
    "report:--embed": ["0", "--out", "OUT/page.html"],
    "report:--predictions": ["PREDICTIONS", "--pool", "POOL"],
    "table:--consistency": ["POOL"],
    "table:--pool": ["POOL", "--attribution"],
    "table:--decided-at": [".95", "--attribution", "--pool", "POOL"],
    "report:--decided-at": [".95", "--attribution", "--pool", "POOL"],
    "table:--attribution": ["--pool", "POOL", "--columns", "earned"],
    "separate:--against": ["ANSWER"],
    "list:--setting": ["no-such-setting"],
    "list:--scores": ["RUN"],
    "list:--class": ["missed"],
    "list:--system": ["nobody"],
    "export:--audits": ["AUDIT"],
    "score:--model": ["another", "--json"],
    "report:--model": ["another"],
    "fit:--target": ["X3"],
    "fit:--assume": ["KNOWLEDGE"],
    "list:--assume": ["KNOWLEDGE"],
    **{f"fit:--{name}": given for name, given in NETWORK_OPTIONS.items()},
    "fit:--seconds": ["5"],
    "fit:--operators": ["sop"],
    "fit:--errors": ["front"],
    "fit:--ties": ["1"],
    "fit:--rates": ["1/10"],
    "fit:--consistency": ["1/2"],
    "fit:--cases": ["2"],
    "fit:--search": [],
    "fit:--fail-on": ["refuted"],
    "fit:--do": ["no-such-column"],
    "fit:--do-flags": ["no_*"],
    "fit:--one": ["X1=0"],
    "fit:--binarize": ["X1:>0"],
    "fit:--drop": ["X1"],
    "fit:--missing": ["0"],
    "fit:--gaps": ["drop", "--missing", "0"],
    "fit:--verbose": [],
    "fit:--roots": ["X1,X2"],
    "fit:--out": ["OUT/table.jsonl"],
    "pool alternatives:--from": ["RUN"],
}
"""Values of one command alone."""


# all benchmarks at once, no pool, or runs of many systems: tested in tests/bench/test_cli.py, tests/bench/suites,
# tests/bench/replayscm, tests/bench/logic and tests/bench/difficulty
WITHOUT_POOL = (
    "bench evaluator",
    "demo",
    "network",
    "release",
    "submission",
    "board",
    "variants",
    "family",
    "difficulty",
    "pool subset",
)


def cases() -> Iterator[Any]:
    """Every option; all benchmarks where some lack it, else one of them, or all in a soak."""
    turns = cycle(BENCHMARKS)
    for command, found in COMMANDS.items():
        for option in found.params:
            if option.param_type_name != "option" or command in WITHOUT_POOL:
                continue
            declared = declared_options(command).get(option.name)
            usual = BENCHMARKS if declared else (next(turns),)
            for benchmark in effort(usual, BENCHMARKS):
                yield pytest.param(command, option, benchmark, id=f"{command}:{option.opts[0]}:{benchmark}")


def words(texts: list[str], files: Files, out: Path) -> list[str]:
    """Return the texts with the names of files filled in."""
    places = {
        "ID": files.ids[1],
        "POOL": str(files.pool),
        "COHORT": f"base={files.pool}",
        "KNOWLEDGE": str(files.knowledge),
        "RUN": str(files.run),
        "RUN_OF_ANOTHER": str(files.second_run),
        "AUDIT": str(files.audit),
        "PREDICTIONS": str(files.predictions),
        "ALTERNATIVES": str(files.alternatives),
        "ANSWER": str(files.answer),
        "OTHER": "blickets" if files.benchmark == "causim" else "causim",
    }
    return [places.get(text, text.replace("OUT/", f"{out}/")) for text in texts]


def given(key: str, option: Any) -> list[str]:
    """Return the option with a value that is not its default."""
    flag = str(option.opts[0])
    if option.is_flag:
        return [str(option.secondary_opts[0]) if option.default is True else flag]
    value = HOW.get(flag) or CHOSEN.get(key) or VALUES.get(flag)
    assert value, f"{key} is new: give it a value here that is not its default"
    return [flag, *value]


@pytest.fixture(scope="module")
def outcomes() -> dict[tuple[str, ...], Outcome]:
    """Outcomes of lines without the option: the options of a command share them."""
    return {}


UNSHARED = ("alternatives", "fit")  # which read files of each test


@pytest.mark.soak
@pytest.mark.parametrize(("command", "option", "benchmark"), list(cases()))
def test_no_option_is_ignored(
    command: str,
    option: Any,
    benchmark: str,
    files_of: Callable[[str], Files],
    outcomes: dict[tuple[str, ...], Outcome],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever lacks an option refuses it; whoever has it shows an effect, on one benchmark after the other."""
    key, out, here = f"{command}:{option.opts[0]}", tmp_path / "out", files_of(benchmark)
    declared = declared_options(command).get(option.name)
    lacking = declared and benchmark not in declared.benchmarks
    line = [*base_line(command, here, out), *words([] if lacking else BESIDE.get(key, []), here, out)]
    shared = tuple(str(word).replace(str(out), "OUT") for word in line)
    before = None if lacking else outcomes.get(shared) or outcome(line, out, monkeypatch)  # first, for the sweep
    if before is not None and command not in UNSHARED:
        outcomes[shared] = before
    after = outcome([*line, *words(given(key, option), here, out)], out, monkeypatch)
    if declared and benchmark not in declared.benchmarks:
        assert (after.code, after.out, after.files) == (2, "", {})
        assert after.err.count("\n") == 1
        assert f"{declared.flag} applies to {declared.titles}, not to {TITLES[benchmark]}" in after.err
    elif before is None or before.code == 2:
        assert after.code == 2  # the command is not for this benchmark
    elif option.opts[0] in HOW:
        assert (after.code, after.out) == (before.code, before.out)
    elif key not in IDLE or (benchmark == "replayscm" and key == "report:--times"):
        assert after != before


def test_what_is_idle_here_has_an_effect_in_a_test() -> None:
    texts = [path.read_text("utf-8") for path in Path(__file__).parents[1].rglob("test_*.py")]
    assert all(any(f"def {test}(" in text for text in texts) for test in IDLE.values())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_declared_option_is_one_of_its_command(command: str) -> None:
    declared = declared_options(command)
    offered = {option.name: option for option in COMMANDS[command].params}
    assert declared.keys() <= offered.keys()
    for name, option in declared.items():
        assert offered[name].opts[0] == option.flag
        assert offered[name].default is None
        assert f"({option.titles})" in offered[name].help


def test_titles_are_those_of_the_adapters() -> None:
    assert {one.name: one.title for one in benchmarks()} == TITLES


def test_two_benchmarks_share_what_an_option_of_one_name_is() -> None:
    for command in COMMANDS:
        for one, other in combinations(TITLES, 2):
            hints = [get_type_hints(option_struct(command, name), include_extras=True) for name in (one, other)]
            for name in hints[0].keys() & hints[1].keys():
                assert hints[0][name] == hints[1][name], (command, name)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["harden", "POOL", "--out", "OUT/x", "--seed", "0"], "--seed applies to ReplaySCM"),  # the default, given
        (["score", "POOL", "PREDICTIONS", "--extractor", "published", "--thoughts", "keep"], "--thoughts"),
        (["show", "POOL", "ID", "--run", "RUN", "--json"], "--json: with --run episodes or answers are shown"),
        (["show", "POOL", "ID", "--html", "OUT/x", "--json"], "--json: --html writes a page"),
        (["show", "POOL", "ID", "--id-field", "x"], "--id-field: it is about episodes: give --run"),
        (["report", "RUN", "--id-field", "x"], "--id-field: it is about predictions: give --predictions"),
        (["table", "RUN", "--attribution"], "a pool of CauSim, have none; add --pool POOL"),
        (["table", "RUN", "--columns", "earned"], "a pool of CauSim, have none; add --pool POOL"),
        (["table", "RUN", "--pool", "POOL"], "--pool: pools are read for attributions: give --attribution too"),
        (["table", "RUN", "--attribution", "--columns", "n"], "--attribution: none of these columns is about it"),
        (["alternatives", "RUN", "--out", "OUT/x", "--seeds", "2"], "--seeds: there is nothing to run without --sweep"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, list) else "",
)
def test_what_has_no_effect_is_refused(
    line: list[str], said: str, files_of: Callable[[str], Files], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = files_of("causim")
    assert said in refused(capsys, *words(line, here, tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_value_out_of_range_is_refused_by_the_struct_too() -> None:
    for values in ({"max_parents": 9}, {"max_size": 0}, {"max_parents": 0}):
        with pytest.raises(CalibrantError, match=f"audit: .*{next(iter(values))}"):
            GivenOptions("audit", values).convert("replayscm")


def test_the_page_of_options_is_written_from_the_declarations() -> None:
    text = PAGE.read_text("utf-8")
    assert text == page_text(), "python -m tests.support.pages.option_tables"
    listed = re.findall(r"<!-- options of (.+?) -->", text)
    declared = [import_module(f"calibrant.bench.{name}.options") for name in TITLES]
    assert set(listed) == {command for one in declared for command in one.OPTIONS} | {
        f"{function}()" for one in declared for function in one.KEYWORDS
    } | {f"{command} -o" for one in declared for command in one.ITEM_OPTIONS}


# --- Options that have no effect on the small files of `test_options`: here they have one, on every benchmark ---------
FINDINGS = {"blickets": "vacuous", "causalab": "vacuous", "causim": "copyable"}  # a kind that is proved of some items


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_unknown_instances_are_passed_over(benchmark: str, files_of: Callable[[str], Files], tmp_path: Path) -> None:
    known = files_of(benchmark).predictions.read_text("utf-8").splitlines()
    predictions = jsonl(
        tmp_path / "more.jsonl", {"id": "nowhere", "model": "m", "rawResponse": "{}"}, *map(json.loads, known)
    )
    assert called("score", files_of(benchmark).pool, predictions).returncode == 2
    scored = called("score", files_of(benchmark).pool, predictions, "--skip-unknown")
    assert scored.returncode == 0
    assert "1 line is for instances that " in scored.stderr
    assert scored.stdout == called("score", files_of(benchmark).pool, files_of(benchmark).predictions).stdout


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_a_report_without_times_shows_none(benchmark: str, files_of: Callable[[str], Files], tmp_path: Path) -> None:
    """The same answers given slower: with times ReplaySCM's report differs, without them none does."""
    slower = tmp_path / "run"
    slower.mkdir()
    for source in files_of(benchmark).run.iterdir():
        text = re.sub(r'("seconds": ?)[^,}]+', r"\g<1>1000.0", source.read_text("utf-8"))
        (slower / source.name).write_text(text, "utf-8")
    reports = [
        [called("report", run, *option).stdout for run in (files_of(benchmark).run, slower)]
        for option in ([], ["--no-times"])
    ]
    assert (reports[0][0] == reports[0][1]) is (benchmark != "replayscm")
    assert reports[1][0] == reports[1][1]


@pytest.mark.parametrize("benchmark", ["blickets", "causalab"])
def test_episodes_are_attributed_with_the_option_and_without(benchmark: str, files_of: Callable[[str], Files]) -> None:
    usual, asked = (called("report", files_of(benchmark).run, *option) for option in ([], ["--attribution"]))
    assert usual.stdout == asked.stdout
    assert "Earned" in usual.stdout


@pytest.mark.parametrize(("benchmark", "kind"), FINDINGS.items())
def test_findings_fail_the_audit_of_the_chosen_items(benchmark: str, kind: str, tmp_path: Path) -> None:
    pool = tmp_path / "pool.jsonl"
    pool.write_text("".join(bundled_sample(benchmark).read_text("utf-8").splitlines(keepends=True)[:13]), "utf-8")
    whole = called("audit", pool, "--json")
    findings = json.loads(whole.stdout)
    ids = [json.loads(line)["id"] for line in pool.read_text("utf-8").splitlines()[1:]]
    assert whole.returncode == 0
    assert called("audit", pool, "--fail-on", kind).returncode == 1
    proved = {one["instance"] for one in findings if one["kind"] == kind and one["verdict"] == "proved"}
    others = [one["instance"] for one in findings if one["instance"] not in proved]
    if others:
        assert called("audit", pool, "--fail-on", kind, "--only", others[0]).returncode == 0
    for chosen, option in ((findings[-1]["instance"], "--only"), (findings[0]["instance"], "--limit")):
        value = chosen if option == "--only" else ids.index(chosen) + 1
        shown = json.loads(called("audit", pool, "--json", option, value).stdout)
        assert shown == [one for one in findings if one["instance"] in {item["instance"] for item in shown}]
        assert chosen in {one["instance"] for one in shown}
        assert len(shown) < len(findings)


def test_pools_show_episodes_of_blickets_in_a_page(files_of: Callable[[str], Files]) -> None:
    line = ["report", files_of("blickets").run, "--format", "html"]
    assert "episode-0-0" in called(*line, "--pool", files_of("blickets").pool).stdout
    assert "episode-0-0" not in called(*line).stdout
