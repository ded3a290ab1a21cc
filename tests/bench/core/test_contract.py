"""One contract over the benchmarks: truth, outcomes, exact rows, counts, replays, files and bytes.

What a benchmark lends to it, and the exceptions that it has, are in tests.support.contract.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibrant.bench.core.registry import NAMES, benchmark_of, bundled_pools
from calibrant.bench.pools.generated import write_drawn
from calibrant.dsl.episode import Step, TranscriptError, verify_transcript
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.item import Pool
from calibrant.dsl.replayscm.generation.problems import SETTINGS, sample_pool
from calibrant.dsl.replayscm.generation.strata import NAMED_STRATA
from calibrant.dsl.replayscm.pools import files as replayscm_files
from tests.support.benchmarks.blickets import Twin
from tests.support.contract.blickets import Blickets
from tests.support.contract.causalab import CausaLab
from tests.support.contract.causim import Causim
from tests.support.contract.logic import Logic
from tests.support.contract.replayscm import ReplayScm
from tests.support.contract.subject import Subject
from tests.support.effort import examples

SUBJECTS: tuple[Subject, ...] = (ReplayScm(), Blickets(), CausaLab(), Causim(), Logic())
PLAYED = [subject for subject in SUBJECTS if subject.interactive]
CHOICES = st.lists(st.integers(0, 59), max_size=25)
each = pytest.mark.parametrize("subject", SUBJECTS, ids=[subject.name for subject in SUBJECTS])
played = pytest.mark.parametrize("subject", PLAYED, ids=[subject.name for subject in PLAYED])
unhurried = settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def test_every_benchmark_is_under_the_contract() -> None:
    assert tuple(subject.name for subject in SUBJECTS) == NAMES


# --- 1 and 2: the truth is a member, outcomes partition ------------------------------------------------------------


@each
@unhurried
@given(data=st.data())
def test_the_truth_is_a_member_whatever_is_read_and_nothing_grows(subject: Subject, data: st.DataObject) -> None:
    item = data.draw(st.sampled_from(subject.items()))
    spaces = subject.spaces(item, subject.evidence(item, data.draw(CHOICES)))
    sizes = [subject.size(space) for space in spaces]
    assert sizes == sorted(sizes, reverse=True)
    assert spaces[-1].count >= 1
    assert all(subject.truth_fits(item, space) for space in spaces)


@each
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


@each
def test_the_exact_row_submits_the_one_answer_that_is_left_and_gets_the_best_score(subject: Subject) -> None:
    settled = list(subject.settled())
    assert len(settled) >= subject.settles
    for found in settled:
        assert (found.submitted, found.best) == (found.left, True), found.instance


# --- 4: counts -----------------------------------------------------------------------------------------------------


@each
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
    again = verify_transcript(subject.benchmark.play.open(item), steps).steps
    assert [_seen(step) for step in again] == [_seen(step) for step in steps]
    read = [number for number, step in enumerate(steps) if step.reading is not None]
    if read:
        number = data.draw(st.sampled_from(read))
        false = replace(steps[number], reading=subject.untrue(steps[number].reading))
        with pytest.raises(TranscriptError) as caught:
            verify_transcript(subject.benchmark.play.open(item), [*steps[:number], false, *steps[number + 1 :]])
        assert caught.value.number == number


@played
def test_rows_answer_alike_where_only_what_they_read_is_known(subject: Subject) -> None:
    """Every row on a twin without what is sealed: one that peeks answers otherwise, and passes all else."""
    for item in subject.every()[::5]:
        for protocol in (make() for make in subject.protocols().values()):
            episode = subject.benchmark.play.open(item)
            opening = len(episode.steps)
            first = protocol.answer(episode)
            twin = Twin(episode, opening)
            assert protocol.answer(twin) == first, (item.id, protocol)
            assert [_seen(step) for step in twin.steps] == [_seen(step) for step in episode.steps]


@each
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


def _written(subject: Subject, path: Path, seed: int) -> None:
    path.parent.mkdir()
    if subject.name == "replayscm":
        replayscm_files.write_pool(sample_pool(NAMED_STRATA[:2], 1, seed, SETTINGS[0]), path)
    else:
        suites = subject.benchmark.suites.names
        assert write_drawn(subject.benchmark, path, suites, seed, 1) == len(suites)


@each
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


@each
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
