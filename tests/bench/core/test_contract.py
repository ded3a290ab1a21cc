"""What every benchmark has: one contract, items and their records, capabilities."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import calibrant
from calibrant.bench import protocols, variants
from calibrant.bench.cli import main
from calibrant.bench.core import attribution
from calibrant.bench.core import capabilities as core
from calibrant.bench.core.capabilities import Capability, Drawable, Playable
from calibrant.bench.core.items import ItemFormats, similar_ids, unknown_item
from calibrant.bench.core.metrics import MetricSet
from calibrant.bench.core.registry import NAMES, benchmark, benchmark_of, bundled_pools, bundled_sample
from calibrant.bench.core.scoring import Scorable
from calibrant.bench.lab import renamings
from calibrant.bench.lab.renamings import changer, measure
from calibrant.bench.pages import capabilities as pages
from calibrant.bench.pools import capabilities as pools
from calibrant.bench.pools.generated import write_drawn
from calibrant.bench.protocols import PROTOCOLS, Protocol
from calibrant.bench.report import capabilities as report
from calibrant.bench.report.capabilities import REPORT
from calibrant.bench.report.overview import contract
from calibrant.bench.variants import VARIANTS
from calibrant.dsl.episode import Step, TranscriptError, replay_transcript
from calibrant.dsl.errors import CalibrantError, PoolError
from calibrant.dsl.item import Pool
from calibrant.dsl.records import convert_object
from calibrant.dsl.replayscm.generation.problems import SETTINGS, sample_pool
from calibrant.dsl.replayscm.generation.strata import NAMED_STRATA
from calibrant.dsl.replayscm.pools import files as replayscm_files
from calibrant.dsl.replayscm.pools.records import ProblemRecord
from tests.support.benchmarks.blickets import Twin
from tests.support.commands import refused
from tests.support.contract.blickets import Blickets
from tests.support.contract.causalab import CausaLab
from tests.support.contract.causim import Causim
from tests.support.contract.logic import Logic
from tests.support.contract.replayscm import ReplayScm
from tests.support.contract.subject import Subject
from tests.support.effort import effort, examples
from tests.support.replayscm.records import native_file, native_record

# --- One contract over the benchmarks: truth, outcomes, exact rows, counts, replays, files and bytes ------------------
# What a benchmark lends to it, and the exceptions that it has, are in tests.support.contract.
SUBJECTS: tuple[Subject, ...] = (ReplayScm(), Blickets(), CausaLab(), Causim(), Logic())
PLAYED = [subject for subject in SUBJECTS if subject.interactive]
CHOICES = st.lists(st.integers(0, 59), max_size=25)
each_subject = pytest.mark.parametrize("subject", SUBJECTS, ids=[subject.name for subject in SUBJECTS])
played = pytest.mark.parametrize("subject", PLAYED, ids=[subject.name for subject in PLAYED])
unhurried = settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def test_every_benchmark_is_under_the_contract() -> None:
    assert tuple(subject.name for subject in SUBJECTS) == NAMES


# --- 1 and 2: the truth is a member, outcomes partition ------------------------------------------------------------


@each_subject
@unhurried
@given(data=st.data())
def test_the_truth_is_a_member_whatever_is_read_and_nothing_grows(subject: Subject, data: st.DataObject) -> None:
    item = data.draw(st.sampled_from(subject.items()))
    spaces = subject.spaces(item, subject.evidence(item, data.draw(CHOICES)))
    sizes = [subject.size(space) for space in spaces]
    assert sizes == sorted(sizes, reverse=True)
    assert spaces[-1].count >= 1
    assert all(subject.truth_fits(item, space) for space in spaces)


@each_subject
@unhurried
@given(data=st.data())
def test_outcomes_partition_the_space(subject: Subject, data: st.DataObject) -> None:
    item = data.draw(st.sampled_from(subject.items()))
    evidence = subject.evidence(item, data.draw(CHOICES))
    space = subject.spaces(item, evidence)[-1]
    if space.count > 20_000:
        return
    for experiment in subject.experiments(item, evidence):
        outcomes = space.outcomes(experiment)
        assert {reading: space.after(experiment, reading).count for reading in outcomes} == dict(outcomes)
        if subject.overlaps(item):
            assert max(outcomes.values()) <= space.count <= sum(outcomes.values())
        else:
            assert sum(outcomes.values()) == space.count
    if hasattr(space, "verdicts"):
        assert sum(space.verdicts().values()) == space.count


# --- 3: the exact row ----------------------------------------------------------------------------------------------


@each_subject
def test_the_exact_row_submits_the_one_answer_that_is_left_and_gets_the_best_score(subject: Subject) -> None:
    settled = list(subject.settled())
    assert len(settled) >= subject.settles
    for found in settled:
        assert (found.submitted, found.best) == (found.left, True), found.instance


# --- 4: counts -----------------------------------------------------------------------------------------------------


@each_subject
@unhurried
@given(data=st.data())
def test_counts_equal_enumeration_on_small_items(subject: Subject, data: st.DataObject) -> None:
    item = data.draw(st.sampled_from(subject.small()))
    evidence = subject.evidence(item, data.draw(CHOICES))
    assert subject.spaces(item, evidence)[-1].count == subject.listed(item, evidence)


# --- 5: replays, records, seeds, twins -----------------------------------------------------------------------------


def _seen(step: Step[Any]) -> tuple[Any, ...]:
    """Return a step but for the wording of a refusal, which may speak of the action as it was given."""
    return dict(step.action), step.reading, bool(step.refused), step.cost


@played
@unhurried
@given(data=st.data())
def test_a_transcript_replays_to_the_same_steps_and_a_false_reading_is_found(
    subject: Subject, data: st.DataObject
) -> None:
    item = data.draw(st.sampled_from(subject.every()))
    episode = subject.benchmark.play.open(item)
    for action in data.draw(subject.actions(item)):
        episode.act(action)
    steps = list(episode.steps)
    again = replay_transcript(subject.benchmark.play.open(item), steps).steps
    assert [_seen(step) for step in again] == [_seen(step) for step in steps]
    read = [index for index, step in enumerate(steps) if step.reading is not None]
    if read:
        number = data.draw(st.sampled_from(read))
        false = replace(steps[number], reading=subject.untrue(steps[number].reading))
        with pytest.raises(TranscriptError) as caught:
            replay_transcript(subject.benchmark.play.open(item), [*steps[:number], false, *steps[number + 1 :]])
        assert caught.value.number == number


@played
@pytest.mark.soak
def test_rows_answer_alike_where_only_what_they_read_is_known(subject: Subject) -> None:
    """Every row on a twin without what is sealed: one that peeks answers otherwise, and passes all else.

    On an item of every fifth suite; twice as many in a soak.
    """
    for item in subject.every()[:: effort(10, 5)]:
        for protocol in (make() for make in subject.protocols().values()):
            episode = subject.benchmark.play.open(item)
            opening = len(episode.steps)
            first = protocol.answer(episode)
            twin = Twin(episode, opening)
            assert protocol.answer(twin) == first, (item.id, protocol)
            assert [_seen(step) for step in twin.steps] == [_seen(step) for step in episode.steps]


@each_subject
def test_items_come_back_from_a_pool_file(subject: Subject, tmp_path: Path) -> None:
    path = tmp_path / "pool.jsonl"
    if subject.name == "replayscm":
        for given_pool in bundled_pools():
            pool = replayscm_files.read_pool(given_pool)
            replayscm_files.write_pool(pool, path)
            assert path.read_bytes() == given_pool.read_bytes()
            assert replayscm_files.read_pool(path).problems == pool.problems
        return
    items = tuple(subject.every())
    subject.benchmark.items.write_pool(Pool("pool", subject.name, items, {"made": 1}), path)
    read = benchmark_of(path).items.read_pool(path)
    assert isinstance(read, Pool)
    assert (read.name, read.items, dict(read.metadata)) == ("pool", items, {"made": 1})
    path.write_bytes(b"\xef\xbb\xbf\n \n" + path.read_bytes())
    assert benchmark_of(path).items.read_pool(path).items == items


def _written(subject: Subject, path: Path, seed: int) -> None:
    path.parent.mkdir()
    if subject.name == "replayscm":
        replayscm_files.write_pool(sample_pool(NAMED_STRATA[:2], 1, seed, SETTINGS[0]), path)
    else:
        suites = subject.benchmark.suites.names
        assert write_drawn(subject.benchmark, path, suites, seed, 1) == len(suites)


@each_subject
def test_the_same_seed_gives_the_same_bytes(subject: Subject, tmp_path: Path) -> None:
    one, two, other = (tmp_path / name / "pool.jsonl" for name in ("one", "two", "other"))
    for path, seed in ((one, 7), (two, 7), (other, 8)):
        _written(subject, path, seed)
    assert one.read_bytes() == two.read_bytes() != other.read_bytes()


# --- 6: any bytes --------------------------------------------------------------------------------------------------

REPLIES = st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape"))
FRAGMENTS = st.sampled_from(
    [
        "ACTION: place A\n",
        "ACTION: check {",
        '{"rule": "conjunctive", "blickets": ["A"]}',
        '{"mechanisms": {"X3": "(and X1"}}',
        '{"frequency": 1e999, "hypothesis": {"edges": [[1, null]]}}',
        '```json\n{"submit": {"hypothesis": []}}',
        "<think>",
        "{" * 600,
        "[",
        "\\",
        "\x00",
        "\ud800",
        "9" * 5000,
    ]
)
ANY_REPLY = st.lists(REPLIES | FRAGMENTS, max_size=5).map("".join)


@each_subject
@settings(unhurried, max_examples=examples(100))
@given(data=st.data(), text=ANY_REPLY)
def test_any_response_leads_to_a_verdict(subject: Subject, data: st.DataObject, text: str) -> None:
    item = data.draw(st.sampled_from(subject.every()))
    assert subject.right(item, text) in (True, False)
    score = subject.benchmark.scoring.score(item, {"text": text}, ())
    assert score["correct"] is not True
    json.dumps(score)


def _pool_bytes(subject: Subject, folder: Path) -> Sequence[bytes]:
    path = folder / "originals" / "pool.jsonl"
    _written(subject, path, 3)
    return [path.read_bytes()[:6000], path.read_bytes()[-6000:]]


@pytest.fixture(scope="module", params=SUBJECTS, ids=[subject.name for subject in SUBJECTS])
def originals(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sequence[bytes]:
    return _pool_bytes(request.param, tmp_path_factory.mktemp("pools"))


@settings(unhurried, max_examples=examples(120))
@given(data=st.data())
def test_any_file_is_a_pool_or_one_line(originals: Sequence[bytes], data: st.DataObject, tmp_path: Path) -> None:
    """Bytes of no meaning, and whole files with bytes cut out, put in or doubled."""
    original = data.draw(st.sampled_from(originals))
    at, cut = data.draw(st.integers(0, len(original))), data.draw(st.integers(0, 40))
    put = data.draw(st.binary() | st.just(original[at : at + cut]))
    content = data.draw(st.sampled_from([put, original[:at] + put + original[at + cut :]]))
    path = tmp_path / "pool.jsonl"
    path.write_bytes(content)
    told = ""
    try:
        benchmark_of(path).items.read_pool(path)
    except CalibrantError as error:
        told = str(error) or "\n"
    assert "\n" not in told


# --- Ids that are suggested for one that a pool does not have: the closest, equally close ones in the pool's order ----


def test_equally_similar_ids_come_in_the_order_of_the_pool() -> None:
    ids = [f"easy-3-7-{place}" for place in range(4)]
    assert similar_ids("easy-3-7-9", ids) == ids[:3]
    assert similar_ids("easy-3-7-30", ids)[0] == "easy-3-7-0"
    assert similar_ids("easy-3-7-", ["other", *ids], 4) == ids
    assert similar_ids("zzz", ids) == []
    assert similar_ids("anything", []) == []


@pytest.mark.parametrize(
    ("instance", "num_ids", "hint"),
    [
        ("item-9", 1, "similar: 'item-0' (of 1 in all)"),
        ("item-9", 4, "similar: 'item-0', 'item-1', 'item-2' (of 4 in all)"),
        ("zzz", 0, "known: none"),
        ("zzz", 1, "known: 'item-0'"),
        ("zzz", 3, "known: 'item-0', 'item-1', 'item-2'"),
        ("zzz", 4, "the first of 4: 'item-0', 'item-1', 'item-2'"),
    ],
)
def test_an_unknown_id_is_told_apart_from_similar_ones(instance: str, num_ids: int, hint: str) -> None:
    error = unknown_item("pool", instance, [f"item-{place}" for place in range(num_ids)])
    assert str(error) == f"pool: no instance '{instance}'; {hint}"


@pytest.mark.parametrize("of", NAMES)
def test_show_suggests_the_first_of_equally_similar_ids(
    of: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if of == "replayscm":
        pool = native_file([native_record(f"item-{place}") for place in range(4)], tmp_path)
    else:
        pool = tmp_path / "pool.jsonl"
        item = calibrant.generate(4, of=of)  # type: ignore[call-overload]
        items = tuple(replace(item, id=f"item-{place}") for place in range(4))
        benchmark(of).items.write_pool(Pool("made", of, items, {}), pool)
    said = refused(capsys, "show", pool, "item-9")
    assert [said.find(f"item-{place}") >= 0 for place in range(4)] == [True, True, True, False]


def _duplicates(report: dict[str, Any]) -> list[dict[str, str]]:
    return [note for note in report["notes"] if note["kind"] == "duplicate"]


def test_pool_check_names_duplicates_in_a_file_and_in_earlier_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header, *lines = bundled_sample("hidden_order").read_text(encoding="utf-8").splitlines()
    pool, twin = tmp_path / "pool.jsonl", tmp_path / "twin.jsonl"
    again = json.dumps({**json.loads(lines[0]), "id": "again"})
    pool.write_text("\n".join([header, *lines[:2], again]) + "\n", encoding="utf-8")
    twin.write_bytes(pool.read_bytes())
    ids = [json.loads(line)["id"] for line in lines[:2]]
    assert main(["pool", "check", str(pool), str(twin), "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert _duplicates(first) == [{"kind": "duplicate", "instance": "again", "claim": f"the same as {ids[0]}"}]
    assert _duplicates(second) == [
        {"kind": "duplicate", "instance": name, "claim": f"the same as {of} of {pool}"}
        for name, of in ((ids[0], ids[0]), (ids[1], ids[1]), ("again", ids[0]))
    ]
    assert main(["pool", "check", str(pool), str(twin)]) == 0
    assert "note    duplicate: 3 of 3" in capsys.readouterr().out


def test_instances_that_ask_different_things_are_no_duplicates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pool", "check", str(bundled_sample("hidden_order")), "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["notes"]  # it is ambiguous, which is another kind
    assert not _duplicates(report)


# --- Records of items of every benchmark: through JSON and back they are the item; other records are refused in a line


def _items(name: str, folder: Path) -> Sequence[Any]:
    """Two items of every suite, or of every bundled pool."""
    bench = benchmark(name)
    if name == "replayscm":
        return [item for path in bundled_pools() for item in bench.items.read_pool(path).items[:2]]
    path = folder / "pool.jsonl"
    write_drawn(bench, path, list(bench.suites.names), 5, 2)
    return bench.items.read_pool(path).items


@pytest.fixture(scope="module", params=NAMES)
def named_items(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Sequence[Any]]:
    return request.param, _items(request.param, tmp_path_factory.mktemp("pool"))


def test_an_item_comes_back_from_its_record(named_items: tuple[str, Sequence[Any]]) -> None:
    name, items = named_items
    assert len(items) >= 8
    for item in items:
        assert benchmark(name).items.item_of_record(json.loads(json.dumps(benchmark(name).items.record(item)))) == item


def test_what_is_sealed_is_under_one_key_of_the_record(named_items: tuple[str, Sequence[Any]]) -> None:
    name, items = named_items
    assert {"id", "sealed"} <= benchmark(name).items.record(items[0]).keys()


def test_a_record_that_cannot_be_meant_is_one_line(named_items: tuple[str, Sequence[Any]]) -> None:
    name, items = named_items
    bench, record = benchmark(name), benchmark(name).items.record(items[0])
    for wrong in (
        {},
        {**record, "sealed": 3},
        {**record, "id": 3},
        {**record, "no such field": 0},
        {**record, "sealed": {**record["sealed"], "no such field": 0}},
        {**record, "id": {1, 2}},
    ):
        with pytest.raises(PoolError) as refused:
            bench.items.item_of_record(wrong)
        assert "\n" not in str(refused.value)


def test_messages_are_the_prompt(named_items: tuple[str, Sequence[Any]]) -> None:
    name, items = named_items
    for item in items:
        messages = benchmark(name).items.messages(item)
        assert "\n\n".join(message["content"] for message in messages) == benchmark(name).items.prompt(item)
        assert [message["role"] for message in messages] in (["user"], ["system", "user"])


def test_an_object_becomes_a_record_as_strictly_as_a_line() -> None:
    deep: dict[str, Any] = {}
    for _ in range(2_000):
        deep = {"id": deep}
    for wrong in (deep, {"id": "a", "results": [float("nan")]}, {"id": "\ud800"}):
        with pytest.raises(PoolError):
            convert_object(wrong, ProblemRecord)


# --- Capabilities of the registered benchmarks: every key leads to an object, and a refusal names who has it ----------
MODULES = (core, pages, pools, protocols, report, contract, variants, attribution)
KEYS = list(dict.fromkeys(key for module in MODULES for key in vars(module).values() if isinstance(key, Capability)))
REQUIRED = (core.ITEMS, core.SCORING, core.METRICS, core.FUNCTIONS, core.TRAINING, core.SUITES, PROTOCOLS, REPORT)
CLASSES: dict[Capability[Any], type] = {
    core.ITEMS: ItemFormats,
    core.SCORING: Scorable,
    core.METRICS: MetricSet,
    core.PLAY: Playable,
    core.SUITES: Drawable,
}
each_benchmark = pytest.mark.parametrize("name", NAMES)


@each_benchmark
def test_every_key_leads_to_an_object_of_its_class(name: str) -> None:
    bench = benchmark(name)
    common = {key for key in KEYS if key.place}
    assert common >= set(REQUIRED)
    for key in common | bench.provides.keys():
        provider = bench.require(key)
        assert provider is bench.capability(key)
        assert isinstance(provider, CLASSES.get(key, object)), key


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.subject)
def test_a_benchmark_without_a_capability_is_refused_with_those_that_have_it(key: Capability[Any]) -> None:
    having = [benchmark(name) for name in NAMES if benchmark(name).has(key)]
    assert having, "a key that nothing provides"
    for bench in {benchmark(name) for name in NAMES} - {*having}:
        with pytest.raises(CalibrantError) as refusal:
            bench.require(key)
        message, _, titles = str(refusal.value).partition("; it supports ")
        assert message == f"{key.subject} does not support {bench.title}"
        assert titles.replace(" and ", ", ").split(", ") == [benchmark.title for benchmark in having]


@each_benchmark
def test_a_benchmark_is_the_same_object_where_it_is_sent(name: str) -> None:
    assert pickle.loads(pickle.dumps(benchmark(name))) is benchmark(name)


def test_listing_benchmarks_loads_none_of_their_languages_and_solvers() -> None:
    program = (
        "import sys; from calibrant.bench.core.registry import benchmarks; benchmarks();"
        "names = ('calibrant.solvers.', 'calibrant.audits.', 'numba');"
        "print([name for name in sys.modules if name.startswith(names)])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


# --- Rows under other names and orders: a few rows of each benchmark, on the first items of its bundled pool ----------
# a row that ties decide, one that draws and one that is exact; python -m calibrant.bench.lab.renamings has them all
ROWS = {
    "blickets": ("static", "random", "copy"),
    "causalab": ("exact", "total-effects", "random"),
    "causim": ("exact", "truncated", "random_symbols"),
    "logic": ("exact", "vote", "greedy"),
}


def _row(name: str, row: str) -> Protocol:
    return next(protocol() for protocol in benchmark(name).require(PROTOCOLS) if protocol.name == row)


@pytest.mark.parametrize(("name", "row"), [(name, row) for name, rows in ROWS.items() for row in rows])
def test_rates_and_answers_do_not_move(name: str, row: str) -> None:
    bench = benchmark(name)
    items = bench.items.read_pool(bundled_sample(name)).items[:3]
    result = measure(bench, items, _row(name, row), times=2, seed=5)
    assert (result.moved, result.num_different, result.num_crashed) == ({}, 0, 0)


@pytest.mark.parametrize(
    ("name", "row"),
    [("blickets", "static"), ("causalab", "total-effects"), ("causim", "graph_only"), ("logic", "random")],
)
def test_without_the_canonical_form_they_move(name: str, row: str) -> None:
    protocol = _row(name, row)
    raw = type("Raw", (type(protocol),), {"reads_canonical": False}, frozen=True)()
    bench = benchmark(name)
    items = bench.items.read_pool(bundled_sample(name)).items[:6]
    result = measure(bench, items, raw, times=3, seed=5)
    assert result.moved or result.num_different


COPIES = {
    "blickets": "static",
    "causalab": "total-effects",
    "causim": "truncated",
    "logic": "greedy",
    "replayscm": "exact-mbde+dsl",
}
SHOWN_READINGS = {"conjunctive distinct_configurations"}  # a first reading of the empty detector counts among them


@pytest.mark.parametrize("name", COPIES)
def test_copies_of_every_kind_have_the_mapped_answers(name: str) -> None:
    bench = benchmark(name)
    items = bench.items.read_pool(bundled_sample("hidden_order" if name == "replayscm" else name)).items[:3]
    for kind in bench.require(VARIANTS).kinds:
        result = measure(bench, items, _row(name, COPIES[name]), times=1, seed=5, change=changer(bench, kind))
        moved = result.moved.keys() - (SHOWN_READINGS if (name, kind) == ("blickets", "equivalent") else set())
        assert (moved, result.num_different, result.num_crashed) == (set(), 0, 0), kind


def test_a_misspelt_kind_of_change_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        renamings.main([str(bundled_sample("ordered")), "--kinds", "nmaes"])
    assert "--kinds: 'nmaes' is none of all, " in capsys.readouterr().err
