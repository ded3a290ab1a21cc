"""Options of items by command, and the one list of what a solver or a model may see."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest

from calibrant import load_pool, score_many
from calibrant.bench.core.benchmark import PublicIds, PublicPool, public_record
from calibrant.bench.core.names import TITLES
from calibrant.bench.core.registry import NAMES, benchmark, benchmark_of
from calibrant.bench.hub.card import COLUMNS, columns_of
from calibrant.bench.hub.export import ExportRows
from calibrant.bench.pools.generated import write_drawn
from calibrant.bench.pools.item_options import item_option_struct
from calibrant.dsl.causalab.score import imec_size
from calibrant.dsl.causim.prompt import read_prose, read_uniform_prose, same_model
from tests.support.commands import called, jsonl, refused
from tests.support.shared import shared_file

# --- Options of items by command: each has its effect, the header keeps it, and without any nothing changes -----------
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


@cache
def drawn_before(name: str, suite: str, *options: str, count: int | None) -> list[dict[str, Any]]:
    """Return the lines without the option that is tried, drawn once for all options."""
    with TemporaryDirectory() as folder:
        return drawn(name, suite, Path(folder) / "a.jsonl", *options, count=count)


@pytest.mark.parametrize(("name", "option"), [(name, option) for name, values in VALUES.items() for option in values])
def test_every_option_changes_items_and_is_kept_in_the_header(name: str, option: str, tmp_path: Path) -> None:
    suite, value = OTHER_SUITE.get(option, SUITES[name]), VALUES[name][option]
    beside = BESIDE.get(option, [])
    count = None if option in ("programs", "heldout", "fill") else 4 if name == "causim" else 2
    before = drawn_before(name, suite, *beside, count=count)
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


# --- What a solver or a model may see is one list by field for each benchmark, held over every command that prints
# it
#
# Hidden are an item's id, its stratum, and all fields of its record that its benchmark does not declare public.
PUBLIC_SUITES = {
    "replayscm": ("hs_n6_easy_calibration/hidden-order", "hs_n6_easy_calibration/hidden-roots"),
    "blickets": ("order", "easy-3", "stochastic", "conjunctive"),
    "causalab": ("3nodes", "4nodes_hidden_n1"),
    "causim": ("chain", "inverted_star"),
    "logic": ("noisy", "loops"),
}
PUBLIC_COLUMNS = {"id", "benchmark", "system", "prompt", "digest", "canary"}
PROMPT_FIELDS = {"instanceId", "system", "prompt", "promptDigest"}
EVENT_FIELDS = {"event", "instance", "text", "left", "action", "reading", "refused", "cost", "closed"}
PUBLIC_ID = re.compile(r"item-[0-9a-f]{16}")
each = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def pool(name: str, tmp_path: Path) -> Path:
    bench = benchmark(name)
    path = tmp_path / "pool.jsonl"
    write_drawn(bench, path, PUBLIC_SUITES[name], 7, 2)
    return path


def _printed(of: Any, pool: Path, item: Any, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each command and its output that a solver or a model may see."""
    yield "show", called("show", pool, item.id).stdout
    yield "show --json", called("show", pool, item.id, "--json").stdout
    yield "prompts", called("prompts", pool, "--only", item.id).stdout
    yield "prompts --text", called("prompts", pool, "--only", item.id, "--text").stdout
    page = folder / "page.html"
    shown = called("show", pool, item.id, "--html", page, "--public")
    if shown.returncode == 0:
        yield "show --html --public", shown.stdout + page.read_text(encoding="utf-8")
    if of.is_interactive(item):
        for option in ([], ["--jsonl"]):
            yield " ".join(["play", *option]), called("play", pool, item.id, *option).stdout
        called("play", pool, item.id, "--html", page)
        yield "play --html", page.read_text(encoding="utf-8")


@each
def test_no_command_names_what_is_hidden(
    name: str, pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    bench = benchmark_of(pool)
    for item in bench.items.read_pool(pool).items:
        hidden = {item.id, *([item.stratum] if name == "replayscm" else [])}
        for command, text in _printed(bench, pool, item, tmp_path):
            assert text, command
            assert not [word for word in hidden if word in text], (command, item.id)
            if command not in ("show", "play", "play --html"):
                assert PUBLIC_ID.search(text), command


@each
def test_records_hold_public_fields_only(name: str, pool: Path) -> None:
    bench = benchmark_of(pool)
    for item in bench.items.read_pool(pool).items:
        printed = json.loads(called("show", pool, item.id, "--json").stdout)
        assert printed.keys() <= set(bench.items.public_fields)
        with_gold = json.loads(called("show", pool, item.id, "--json", "--gold").stdout)
        assert (with_gold["id"], with_gold["sealed"]) == (
            item.id,
            json.loads(json.dumps(bench.items.record(item)))["sealed"],
        )
        assert PUBLIC_ID.fullmatch(printed["id"])
        told = json.loads(called("prompts", pool, "--only", item.id).stdout)
        assert told.keys() == PROMPT_FIELDS
        assert told["instanceId"] == printed["id"]


@each
def test_episodes_have_public_events_only(name: str, pool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = benchmark_of(pool)
    if not bench.is_interactive(bench.items.read_pool(pool).items[0]):
        pytest.skip("no episodes")
    item = bench.items.read_pool(pool).items[0]
    monkeypatch.setattr("sys.stdin", io.StringIO())
    *events, verdict = map(json.loads, called("play", pool, item.id, "--jsonl").stdout.splitlines())
    assert verdict["event"] == "verdict"  # after the end of the episode
    assert events[0]["event"] == "task"
    assert PUBLIC_ID.fullmatch(events[0]["instance"])
    assert all(event.keys() <= EVENT_FIELDS for event in events)


def test_a_condition_is_shown_to_the_informed_only(tmp_path: Path) -> None:
    bench = benchmark("blickets")
    write_drawn(bench, tmp_path / "pool.jsonl", ["easy-3"], 1, 1)
    item = bench.items.read_pool(tmp_path / "pool.jsonl").items[0]
    record = bench.items.record(item)
    assert item.task.condition is None
    assert "condition" not in public_record(bench, item)
    informed = bench.items.item_of_record(record | {"informed": True})
    assert public_record(bench, informed)["condition"] == "moderator"
    for field in ("condition", "strict_singleton", "labels", "sealed"):
        assert field in record


def test_a_program_is_hidden_where_sentences_are_shown(tmp_path: Path) -> None:
    bench = benchmark("causim")
    write_drawn(bench, tmp_path / "pool.jsonl", ["chain"], 1, 1)
    item = bench.items.read_pool(tmp_path / "pool.jsonl").items[0]
    record = bench.items.record(item)
    assert public_record(bench, item)["program"] == record["program"]
    assert "program" not in public_record(bench, bench.items.item_of_record(record | {"view": "prose"}))


@each
def test_the_public_part_of_an_export(name: str, pool: Path, tmp_path: Path) -> None:
    rows = ExportRows([pool], tmp_path / "rows")
    items = benchmark_of(pool).items.read_pool(pool).items
    assert {column.name for column in COLUMNS if not column.sealed} == PUBLIC_COLUMNS
    assert {column.name for column in columns_of(rows, with_gold=False)} == PUBLIC_COLUMNS
    public = [{name: row[name] for name in PUBLIC_COLUMNS} for row in rows.by_id()]
    assert [row["id"] for row in public] == sorted(row["id"] for row in rows)
    assert all(PUBLIC_ID.fullmatch(row["id"]) for row in public)
    assert not [item.id for item in items if item.id in json.dumps(public)]
    for row, item in zip(rows, items, strict=True):
        assert row["item"] == item.id
        assert PublicIds(row["salt"]).public(item.id) == row["id"]


@each
def test_answers_under_public_ids_are_scored(name: str, pool: Path, tmp_path: Path) -> None:
    """From an export or prompts to scores: right answers to public ids count as those to the pool's own ids do."""
    rows = list(ExportRows([pool], tmp_path / "rows"))
    answers = [row["answer"] or "{}" for row in rows]
    by_public = [{"id": row["id"], "model": "m", "response": text} for row, text in zip(rows, answers, strict=True)]
    by_own = [{"id": row["item"], "model": "m", "response": text} for row, text in zip(rows, answers, strict=True)]
    verdicts = []
    for lines in (by_public, by_own):
        done = called("score", pool, jsonl(tmp_path / "said.jsonl", *lines), "--json")
        assert done.returncode == 0, done.stderr
        verdicts.append([json.loads(line) for line in done.stdout.splitlines()])
    assert verdicts[0] == verdicts[1]
    assert [verdict["instanceId"] for verdict in verdicts[0]] == [row["item"] for row in rows]
    assert any(verdict["correct"] for verdict in verdicts[0])
    scored = score_many(load_pool(pool), map(json.dumps, by_public))
    assert [score.correct for score in scored] == [verdict["correct"] for verdict in verdicts[0]]
    asked = [json.loads(line)["instanceId"] for line in called("prompts", pool).stdout.splitlines()]
    assert asked == [row["id"] for row in rows]


def test_public_ids_depend_on_the_file_alone(tmp_path: Path) -> None:
    bench = benchmark("blickets")
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    for path, seed in ((first, 1), (second, 2)):
        write_drawn(bench, path, ["order"], seed, 2)
    pools = [PublicPool(bench, path) for path in (first, first, second)]
    ids = [[pool.ids.public(item.id) for item in pool.items.items] for pool in pools]
    assert ids[0] == ids[1]
    assert not set(ids[0]) & set(ids[2])
    assert pools[0].item(ids[0][1]) == pools[0].items.items[1]
    assert pools[0].ids.item_id(ids[2][0]) is None
    assert pools[0].ids.salt != pools[2].ids.salt


def test_a_page_has_the_id_that_was_given_and_the_public_one_where_asked(tmp_path: Path) -> None:
    """Pages with --public are handed on: what was typed is named beside them alone, even with --gold."""
    pool, page = tmp_path / "pool.jsonl", tmp_path / "page.html"
    write_drawn(benchmark("causim"), pool, ("chain",), 7, 1)
    items = PublicPool(benchmark("causim"), pool)
    own = items.items.items[0].id
    public = items.ids.public(own)
    done = called("show", pool, own, "--html", page, "--public")
    assert own not in done.stdout + page.read_text(encoding="utf-8")
    written = f"page written to {page}\n"
    assert done.stderr == f"{written}{own} is {public} there, an id that tells nothing of it\n"
    assert called("show", pool, public, "--html", page).stderr == written
    assert public in page.read_text(encoding="utf-8")
    for more in ((), ("--gold",)):
        assert called("show", pool, own, "--html", page, *more).stderr == written
        assert own in page.read_text(encoding="utf-8")
        assert public not in page.read_text(encoding="utf-8")
    assert called("show", pool, own, "--html", page, "--gold", "--public").returncode == 0
    assert public in page.read_text(encoding="utf-8")
    assert own not in page.read_text(encoding="utf-8")
