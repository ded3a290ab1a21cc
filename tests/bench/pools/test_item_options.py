"""Options of items by command: each has its effect, the header keeps it, and without any nothing changes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calibrant.bench.core.names import TITLES
from calibrant.bench.core.registry import benchmark
from calibrant.bench.pools.item_options import item_option_struct
from calibrant.dsl.causalab.score import imec_size
from calibrant.dsl.causim.prompt import read_prose, read_uniform_prose, same_model
from tests.support.commands import called, refused
from tests.support.shared import shared_file

SUITES = {"causalab": "4nodes", "blickets": "hard-3", "causim": "chain"}
VALUES: Mapping[str, Mapping[str, str]] = {
    "causalab": {
        "records": "5", "allowance": "1", "reading": "base", "tries": "4", "view": "roots", "fixed": "1",
        "weights": "hundredths", "noise": "2", "noise_frequency": "true", "noise_scale": "7",
        "noise_draw": "observed", "trace": "low-imec",
    },
    "blickets": {
        "objects": "6", "blickets": "1", "order_length": "3", "budget": "9", "count": "edge",
        "order_reading": "contiguous", "start": "random", "informed": "true", "graded": "true",
        "strict_singleton": "true", "switch": "6", "switch_by": "steps", "p": ".9", "conjunctive_share": ".5",
        "forced_after_switch": "true", "forced_moves": "9", "series": "2",
    },
    "causim": {
        "versions": "1,3-4", "each": "2", "types": "abduction", "scenario": "stochastic", "view": "prose",
        "prose": "rules", "evidence": "minimal", "with_noise": "true", "missing": "1", "intervened": "1",
        "effect": "all", "domain_samples": "1", "max_combinations": "60", "max_support": "3", "programs": "2",
        "heldout": "1", "fill": "true", "vocabulary": "medical",
    },
}  # fmt: skip
BESIDE = {
    "noise_frequency": ["noise=1"], "noise_scale": ["noise=1"], "noise_draw": ["noise=1"], "prose": ["view=prose"],
    "heldout": ["programs=2"], "fill": ["programs=1", "versions=1", "each=9"],
    "domain_samples": ["versions=5"], "max_combinations": ["versions=4"],
    "max_support": ["versions=4"],
}  # fmt: skip
OTHER_SUITE = {
    "trace": "4nodes_golden", "order_length": "order", "order_reading": "order", "p": "stochastic",
    "conjunctive_share": "unequal-priors",
}  # fmt: skip


def drawn(name: str, suite: str, out: Path, *options: str, count: int | None = 4) -> list[dict[str, Any]]:
    """Return the lines of a generated pool."""
    out.unlink(missing_ok=True)
    line = ["generate", "--benchmark", name, "--strata", suite, "--seed", "3", "--out", out]
    line += [] if count is None else ["--per-stratum", count]
    done = called(*line, *(word for option in options for word in ("-o", option)))
    assert done.returncode == 0, done.stderr
    return list(map(json.loads, out.read_text("utf-8").splitlines()))


@pytest.mark.parametrize(("name", "option"), [(name, option) for name, values in VALUES.items() for option in values])
def test_every_option_changes_items_and_is_kept_in_the_header(name: str, option: str, tmp_path: Path) -> None:
    suite, value = OTHER_SUITE.get(option, SUITES[name]), VALUES[name][option]
    beside = BESIDE.get(option, [])
    count = None if option in ("programs", "heldout", "fill") else 4
    before = drawn(name, suite, tmp_path / "a.jsonl", *beside, count=count)
    after = drawn(name, suite, tmp_path / "a.jsonl", *beside, f"{option}={value}", count=count)
    header, items = after[0], after[1:]
    assert option in header["metadata"]["options"]
    assert "options" in before[0]["metadata"] or not beside
    assert items != before[1:]
    assert len(benchmark(name).items.read_pool(tmp_path / "a.jsonl")) == len(items)  # the reader takes what was written


def test_all_options_are_tried() -> None:
    for name, values in VALUES.items():
        struct = item_option_struct("generate", name)
        assert struct is not None
        assert set(struct.__struct_encode_fields__) == set(values)


def test_two_benchmarks_share_what_an_option_of_one_name_is_within_a_command() -> None:
    for one, other in combinations(("generate", "pool convert"), 2):
        for name in TITLES:
            structs = item_option_struct(one, name), item_option_struct(other, name)
            if None not in structs:
                shared = set(structs[0].__struct_fields__) & set(structs[1].__struct_fields__)  # type: ignore[union-attr]
                assert shared


@pytest.mark.parametrize(
    ("name", "suite", "options", "reason"),
    [
        ("causalab", "4nodes", ["record=1"], "unknown option 'record' of CausaLab items; did you mean records?"),
        ("causalab", "4nodes", ["records=65"], "records=65: a whole number from 0 to 64 is expected"),
        ("causalab", "4nodes", ["records"], "'records' is not NAME=VALUE"),
        ("causalab", "4nodes", ["tries=1", "tries=2"], "tries is given twice"),
        ("causalab", "4nodes", ["view=none"], "view=none: all, roots or hide-one is expected"),
        ("causalab", "4nodes", ["trace=turns", "trace=low-imec"], "given twice"),
        ("causalab", "4nodes", ["trace=low-imec"], "only golden suites have a static trace"),
        ("causalab", "4nodes_golden", ["allowance=2"], "suites with a static trace allow no settings"),
        ("causalab", "4nodes", ["noise_scale=2"], "belong to items with noise"),
        ("causalab", "3nodes", ["fixed=3"], "3 properties that cannot be set; 0 to 2 are there"),
        ("blickets", "easy-3", ["order_length=2"], "order_length needs a suite with an order"),
        ("blickets", "conjunctive", ["switch=2"], "switch and switch_by need a suite with a switch"),
        ("blickets", "conjunctive", ["p=.5"], "p = 0.5 with condition conjunctive"),
        ("blickets", "order", ["blickets=2"], "give order_length"),
        ("causim", "chain", ["versions=0-3"], "ascending numbers from 1 to 20"),
        ("causim", "chain", ["versions=3-1"], "ascending numbers from 1 to 20"),
        ("causim", "chain", ["types=deduction,nothing"], "unknown type 'nothing'"),
        ("causim", "chain", ["prose=rules"], "prose is the style of view=prose"),
        ("causim", "chain", ["types=abduction", "effect=some"], "effect has no effect on questions of type abduction"),
        ("causim", "chain", ["heldout=1"], "give programs too"),
        ("causim", "chain", ["fill=true"], "give programs too"),
        ("causim", "chain", ["programs=2", "heldout=2"], "fewer than programs=2"),
        ("causim", "chain", ["programs=2"], "leave out --per-stratum"),
        ("causim", "asia", ["vocabulary=medical"], "apply to generated programs"),
        ("replayscm", "all", ["records=1"], "unknown option 'records' of ReplaySCM items; known: networks"),
    ],
)
def test_what_an_item_cannot_have_is_refused_in_one_line(
    name: str, suite: str, options: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["generate", "--benchmark", name, "--strata", suite, "--seed", "3", "--per-stratum", "2"]
    words = [word for option in options for word in ("-o", option)]
    assert reason in refused(capsys, *line, "--out", str(tmp_path / "x.jsonl"), *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "suite", "default"),
    [
        ("causalab", "4nodes", "records=2"),
        ("blickets", "hard-3", "count=level"),
        ("causim", "chain", "view=code"),
        ("causim", "asia", "missing=.5"),
    ],
)
def test_an_option_at_its_default_changes_the_header_alone(name: str, suite: str, default: str, tmp_path: Path) -> None:
    plain = drawn(name, suite, tmp_path / "a.jsonl")
    stated = drawn(name, suite, tmp_path / "a.jsonl", default)
    assert plain[1:] == stated[1:]
    assert "options" not in plain[0]["metadata"]


def test_help_lists_the_options_of_one_benchmark() -> None:
    for name in SUITES:
        text = called("generate", "--benchmark", name, "--help").stdout
        assert f"Item options (-o) of {TITLES[name]}" in text
        assert all(f"\n  {option} " in text for option in VALUES[name])
    assert "Item options (-o)" in called("generate", "--help").stdout


def test_fewer_records_are_the_first_of_more_and_change_nothing_else(tmp_path: Path) -> None:
    few, many = (drawn("causalab", "4nodes", tmp_path / "a.jsonl", f"records={n}", count=2)[1:] for n in (1, 6))
    for one, other in zip(few, many, strict=True):
        assert one["records"] == other["records"][:1]
        assert (one["baseline"], one["reactor"]) == (other["baseline"], other["reactor"])
        assert one["sealed"]["equations"] == other["sealed"]["equations"]


def test_a_low_imec_trace_leaves_as_few_graphs_as_settings_of_all_properties(tmp_path: Path) -> None:
    drawn("causalab", "6nodes_golden", tmp_path / "a.jsonl", "trace=low-imec", count=6)
    for item in benchmark("causalab").items.read_pool(tmp_path / "a.jsonl").items:
        chosen = [entry.property for entry in item.task.trace if entry.property]
        edges = item.sealed.mechanism.edges
        assert imec_size(edges, frozenset(chosen)) == imec_size(edges, frozenset(item.task.properties))
        assert len(chosen) == len(set(chosen)) <= 2 * len(item.task.properties)


def test_a_released_suite_under_a_budget(tmp_path: Path) -> None:
    source, out = shared_file("data/4nodes.jsonl", part="causalab"), tmp_path / "a.jsonl"
    assert (
        called("pool", "convert", source, out, "-o", "records=6", "-o", "allowance=0", "-o", "seed=1").returncode == 0
    )
    pool = benchmark("causalab").items.read_pool(out)
    assert json.loads(out.read_text("utf-8").splitlines()[0])["metadata"]["options"] == {
        "records": 6,
        "allowance": 0,
        "seed": 1,
    }
    assert {(len(item.task.records), item.task.allowance) for item in pool.items} == {(6, 0)}


def test_held_out_programs_are_in_a_file_of_their_own(tmp_path: Path) -> None:
    options = ["programs=5", "heldout=2", "versions=2", "types=intervention", "each=3"]
    training = drawn("causim", "chain,tree", tmp_path / "a.jsonl", *options, count=None)[1:]
    test = list(map(json.loads, (tmp_path / "heldout_a.jsonl").read_text("utf-8").splitlines()))[1:]
    programs = [{item["scm_id"] for item in items} for items in (training, test)]
    assert [len(ids) for ids in programs] == [6, 4]
    assert not programs[0] & programs[1]
    assert {item["id"] for item in training}.isdisjoint(item["id"] for item in test)
    assert {sum(scm.startswith("chain") for scm in ids) for ids in programs} == {3, 2}


def test_drafts_and_their_objections_are_counted_by_topology(tmp_path: Path) -> None:
    line = ["generate", "--benchmark", "causim", "--strata", "chain,tree", "--seed", "3", "--out", tmp_path / "a.jsonl"]
    done = called(*line, "-o", "programs=2", "-o", "versions=1-4", "-o", "types=abduction")
    counted = dict(re.findall(r"^(chain|tree): ([0-9]+) drafts, [0-9]+ % accepted", done.stderr, re.MULTILINE))
    assert counted.keys() == {"chain", "tree"}
    assert all(int(number) >= 8 for number in counted.values())  # two programs of four versions each


@pytest.mark.parametrize(("style", "read"), [("sentences", read_prose), ("rules", read_uniform_prose)])
def test_prose_of_a_prompt_is_read_back_to_the_model(style: str, read: Any, tmp_path: Path) -> None:
    drawn("causim", "layered", tmp_path / "a.jsonl", "view=prose", f"prose={style}", "vocabulary=medical", count=6)
    for item in benchmark("causim").items.read_pool(tmp_path / "a.jsonl").items:
        shown = item.task.prompt.split("\n\n")[1]
        assert same_model(read(shown), item.task.model)
        assert "def " not in item.task.prompt


def test_effects_are_those_of_the_labels(tmp_path: Path) -> None:
    for wanted, label in (("some", "effect_some"), ("all", "effect_all")):
        items = drawn("causim", "chain", tmp_path / "a.jsonl", f"effect={wanted}", "types=counterfactual", count=6)[1:]
        assert {item["labels"][label] for item in items} == {True}


def test_structs_name_no_option_twice() -> None:
    for command in ("generate", "pool convert"):
        for name in TITLES:
            struct = item_option_struct(command, name)
            fields = [] if struct is None else [field.name for field in msgspec.structs.fields(struct)]
            assert len(fields) == len(set(fields))
