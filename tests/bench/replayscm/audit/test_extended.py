"""Audits of extended items, and items without held-out worlds."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.audits.claims import Refused
from calibrant.bench.cli import main
from calibrant.bench.core.metrics import InvalidHandling
from calibrant.bench.core.registry import benchmark, bundled_pool
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.core.verdict import MeanScore
from calibrant.bench.difficulty.models import read_outcomes
from calibrant.bench.lab.replayscm import rename
from calibrant.bench.pages.capabilities import EPISODE_VIEWS
from calibrant.bench.play.game import Game, PlayPool, game_record, game_verdict
from calibrant.bench.play.results import PersonRow, csv_text, summary_lines
from calibrant.bench.replayscm.audit.extended import (
    check_certificate,
    clairvoyant_minimum,
    evidence_certificate,
    finding_records,
    item_labels,
    minimum_certificate,
)
from calibrant.bench.replayscm.episodes import submitted_steps, text_episode
from calibrant.bench.report.overview.contract import GUIDE
from calibrant.bench.report.sources import scored_answers
from calibrant.bench.report.table import DrawnTies
from calibrant.datasets import bundled_pool as packaged_pool
from calibrant.dsl.replayscm.episode import ScmEpisode
from calibrant.dsl.replayscm.extensions.extension import NoiseKind, NoiseModel
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.dsl.replayscm.world import Intervention
from calibrant.rewards import verdict
from tests.support.commands import called
from tests.support.replayscm.extensions import gold_submission, small_problem

# --- Generated extended items with labels, audits, certificates and their checks, through the commands ----------------
STRATA = "hs_n6_easy_calibration,hs_n6_easy_calibration_noise1in20"


def test_generate_writes_labelled_items_again(tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    line: list[str] = []
    for path in (one, two):
        line = ["generate", "--form", "episode", "--strata", STRATA, "--per-stratum", "1", "--seed", "3"]
        result = called(*line, "--out", path, "--workers", "1")
        assert result.returncode == 0, result.stderr
    assert one.read_bytes() == two.read_bytes()
    plain, noisy = read_pool(one).problems
    assert {"bits_start", "greedy_worlds", "clairvoyant", "floor", "bayes_error"} <= plain.sealed.labels.keys()
    assert "blind" in noisy.sealed.labels
    assert int(plain.sealed.labels["clairvoyant"]) <= int(plain.sealed.labels["greedy_worlds"])
    assert called("pool", "check", one).returncode == 0
    assert len((tmp_path / "one.audits.jsonl").read_text("utf-8").splitlines()) == 2
    refused = called(*line, "--out", tmp_path / "three.jsonl", "--setting", "block")
    assert refused.returncode == 2, refused.stderr
    assert [line.split()[0] for line in refused.stderr.splitlines()] == ["error", "hint"], refused.stderr


def test_audits_name_findings_and_certificates_hold(tmp_path: Path) -> None:
    pool, certificates = tmp_path / "pool.jsonl", tmp_path / "certificates"
    items = tuple(small_problem(seed, rate=rate, is_episode=is_episode) for seed, rate, is_episode in CASES)
    write_pool(Pool("pool", items), pool)
    done = called("audit", pool, "--workers", "1", "--certificates", certificates, "--html", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    assert f"of {len(items)} instances with a stated class" in done.stdout
    files = sorted(certificates.glob("*.json"))
    assert len(files) == sum(2 if not rate and is_episode else 1 for _, rate, is_episode in CASES)
    assert called("verify", *files, pool).returncode == 0
    ambiguous = {finding["instance"] for finding in _findings(pool) if finding["kind"] in ("ambiguous", "unwinnable")}
    failing = called("audit", pool, "--workers", "1", "--fail-on", "ambiguous")
    assert failing.returncode == (1 if ambiguous else 0)


def test_certificates_that_need_no_extra_are_written_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The extra is named for each certificate that needs it; the bundled episodes are such items, too."""
    monkeypatch.setitem(sys.modules, "highspy", None)
    pool, certificates = tmp_path / "pool.jsonl", tmp_path / "certificates"
    items = tuple(small_problem(seed, rate=rate, is_episode=is_episode) for seed, rate, is_episode in CASES)
    write_pool(Pool("pool", items), pool)
    done = called("audit", pool, "--workers", "1", "--certificates", certificates)
    assert done.returncode == 0, done.stderr
    files = sorted(certificates.glob("*.json"))
    assert len(files) == len(CASES)
    missing = [line for line in (done.stdout + done.stderr).splitlines() if "highspy is missing" in line]
    assert [line.partition(":")[0] for line in missing] == [f"no certificate of the fewest worlds of {items[0].id}"]
    assert "pip install 'calibrant[large]'" in missing[0]
    assert called("verify", *files, pool).returncode == 0


def test_a_pool_of_plain_and_extended_items_has_one_page(tmp_path: Path) -> None:
    plain = read_pool(bundled_pool("ordered")).problems[0]
    items = (plain, small_problem(3, rate="1/10", is_episode=False))
    pool, page = tmp_path / "pool.jsonl", tmp_path / "page.html"
    write_pool(Pool("pool", items), pool)
    done = called("audit", pool, "--workers", "1", "--html", page)
    assert done.returncode == 0, done.stderr
    text = page.read_text("utf-8")
    (rows,) = re.findall(r'<script type="application/json" id="rows">(.*?)</script>', text, re.DOTALL)
    (head,) = re.findall(r'<table id="index">.*?<thead>(.*?)</thead>', text, re.DOTALL)
    listed = json.loads(rows)
    assert [(page, item_id) for page, item_id, *_ in listed] == [(k, item.id) for k, item in enumerate(items)]
    assert {len(row) for row in listed} == {head.count("<th") + 1}
    assert "Findings by kind" in text
    assert "Ambiguity profile" in text


LABELLED: Sequence[tuple[str | None, int, bool]] = (
    *((None, 1, is_episode) for is_episode in (True, False)),
    *(("1/10", num_hidden, is_episode) for num_hidden in (0, 1) for is_episode in (True, False)),
)
CASES = ((0, None, True), (1, "1/10", True), (2, None, False), (3, "1/10", False))


def _findings(pool: Path) -> list[dict[str, Any]]:
    done = called("audit", pool, "--workers", "1", "--json")
    return [finding for record in json.loads(done.stdout)["instances"] for finding in record["extended"]]


def test_certificates_are_of_one_item() -> None:
    """A certificate of another item, or of other worlds, is refused before it is recounted."""
    one, other = small_problem(1, is_episode=False), small_problem(2, is_episode=False)
    document = json.loads(json.dumps(evidence_certificate(one)))
    assert "recounted" in check_certificate(document, one)
    with pytest.raises(Refused):
        check_certificate(document, other)
    with pytest.raises(Refused, match="rows"):
        check_certificate({**document, "rows": document["rows"][1:]}, one)


def test_certificates_are_for_items_whose_claims_they_can_prove() -> None:
    """Worlds of chosen contexts have another minimum; rates of each variable have another mass than a common one."""
    pytest.importorskip("highspy")
    episode, chosen = small_problem(1), small_problem(1, contexts="chosen")
    minimum = json.loads(json.dumps(minimum_certificate(episode)))
    assert "prove" in check_certificate(minimum, episode)
    with pytest.raises(Refused, match="all contexts"):
        check_certificate(minimum, chosen)
    grid = ((Fraction(1, 10), Fraction(1, 2)), (Fraction(1, 5), Fraction(1, 2)))
    shared, each = (_with_noise(NoiseModel(kind, grid)) for kind in (NoiseKind.SHARED, NoiseKind.EACH))
    mass = json.loads(json.dumps(evidence_certificate(shared)))
    assert "recounted" in check_certificate(mass, shared)
    with pytest.raises(Refused, match="own rate"):
        check_certificate(mass, each)


def _with_noise(noise: NoiseModel) -> Problem:
    problem = small_problem(1, is_episode=False)
    assert problem.task.extension is not None
    extension = replace(problem.task.extension, noise=noise)
    return replace(problem, task=replace(problem.task, extension=extension))


def test_labels_bound_each_other() -> None:
    for seed in range(3):
        problem = small_problem(seed)
        labels = dict(item_labels(problem))
        minimum = clairvoyant_minimum(problem)
        assert minimum is not None
        assert labels["clairvoyant"] == str(len(minimum.worlds))
        if not labels["greedy_worlds"].startswith("more"):
            assert int(labels["greedy_worlds"]) >= 0
        assert 0 <= float(labels["bayes_error"]) < 1


@settings(max_examples=3, deadline=None)
@given(st.sampled_from(LABELLED), st.integers(0, 10**6))
def test_labels_are_of_the_item_and_not_of_its_spelling(case: tuple[str | None, int, bool], seed: int) -> None:
    rate, num_hidden, is_episode = case
    item = small_problem(seed % 50, rate=rate, num_hidden=num_hidden, is_episode=is_episode)
    renamed = rename(item, Random(seed))
    labels, other = dict(item_labels(item)), dict(item_labels(renamed.item))
    assert _in_names(labels.pop("hidden_needed", ""), renamed.names) == _in_names(other.pop("hidden_needed", ""), {})
    assert labels == other


def _in_names(text: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return values by name of a label such as `H1 0.9 H2 1`."""
    words = text.split()
    return {names.get(name, name): value for name, value in zip(words[::2], words[1::2], strict=True)}


def test_rows_that_do_not_follow_the_seed_are_told_how_measured_rows_are_given(tmp_path: Path) -> None:
    pool = tmp_path / "pool.jsonl"
    problem = small_problem(0, rate="1/4", is_episode=False)
    for seed, code in ((problem.sealed.seed, 0), ((problem.sealed.seed or 0) + 1, 1), (None, 0)):
        write_pool(Pool("pool", (replace(problem, sealed=replace(problem.sealed, seed=seed)),)), pool)
        done = called("pool", "check", pool)
        assert done.returncode == code
        assert ("flips follow from sealed.seed: leave it out for measured rows" in done.stdout) is bool(code)


REFUSALS = {
    "noise": {"noise": {"readout": "1/10"}},
    "rates of 1/2": {"noise": "1/2"},
    "hidden roots": {"hidden": {"H1": []}},
    "hidden parents of hidden variables": {"hidden": {"H1": ["X1", "X2"], "H2": ["H1", "X1"]}},
    "three hidden variables": {"hidden": {f"H{i}": ["X1"] for i in range(3)}},
    "five stated parents": {"hidden": {"H1": ["X1", "X2", "X3", "X4", "X5"]}},
    "unknown parents of many": {"hidden": {"H1": None}, "max_parents": 4},
    "hidden roots of the disclosure": {"disclosure": {"type": "hidden_roots", "root_count": 2}},
    "alternative": {"reference": {"X3": "X1", "X4": "X1"}, "kind": "CIND_A_SCM_ALT_EXP"},
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_not_supported_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    pool = tmp_path / "pool.jsonl"
    write_pool(Pool("pool", (small_problem(0, rate="1/10", is_episode=False),)), pool)
    header, line = pool.read_text("utf-8").splitlines()
    record = json.loads(line) | REFUSALS[name]
    pool.write_text(f"{header}\n{json.dumps(record)}\n", encoding="utf-8")
    done = called("pool", "check", pool)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert "small_0" in done.stderr


def test_an_audit_says_of_blind_rows_what_a_run_shows(tmp_path: Path) -> None:
    """Which noisy rows are kept depends on their order, and a run answers the canonical form."""
    items = tuple(small_problem(seed, rate="1/10", is_episode=False) for seed in range(24))
    pool, runs = tmp_path / "pool.jsonl", tmp_path / "runs"
    write_pool(Pool("pool", items), pool)
    claimed = {
        problem.id
        for problem in read_pool(pool).problems
        if "trivial" in [finding.kind for finding in finding_records(problem)]
    }
    assert called("run", "noise-blind", pool, "--out", runs, "--workers", "1").returncode == 0
    records = map(json.loads, (runs / "records.jsonl").read_text("utf-8").splitlines())
    assert claimed == {record["instance"] for record in records if record["score"]["heldoutExact"]} != set()


# --- Items without held-out worlds beside others: no command counts an answer to them as wrong ------------------------


def _problems() -> list[Problem]:
    """Return an item with held-out worlds, and one without."""
    judged, other = (small_problem(seed, rate="1/20", is_episode=False) for seed in (3, 4))
    heldout = replace(other.sealed.heldout, worlds=())
    return [replace(judged, id="judged"), replace(other, id="unjudged", sealed=replace(other.sealed, heldout=heldout))]


@pytest.fixture
def scored(tmp_path: Path) -> tuple[Path, Path]:
    """Return a pool, and the verdicts on gold for each of its items."""
    pool, answers, scores = tmp_path / "pool.jsonl", tmp_path / "answers.jsonl", tmp_path / "scores.jsonl"
    problems = _problems()
    write_pool(Pool("pool", problems), pool)
    lines = [{"id": problem.id, "model": "gold", "answer": gold_submission(problem)} for problem in problems]
    answers.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    assert main(["score", str(pool), str(answers), "--out", str(scores)]) == 0
    return pool, scores


def test_difficulty_is_of_items_that_have_a_right_answer(scored: tuple[Path, Path]) -> None:
    pool, scores = scored
    outcomes = read_outcomes([scores], [pool])
    assert [item.id for item in outcomes.items] == ["judged"]
    assert outcomes.rates.tolist() == [[1.0]]


def test_words_on_an_answer_give_no_verdict_where_there_is_none(scored: tuple[Path, Path]) -> None:
    guide = benchmark("replayscm").require(GUIDE)
    explained = {
        context.instance: guide.explain(None, context, {}, (), score) for context, score in scored_answers([scored[1]])
    }
    chips = {name: [text for _, text in explanation.chips] for name, explanation in explained.items()}
    assert "held-out exact" in chips["judged"]
    assert not any("held-out" in text for text in chips["unjudged"])
    assert explained["unjudged"].sentences[0].startswith("The answer is neither right nor wrong")


def test_means_over_people_leave_out_what_nobody_can_get_right() -> None:
    def row(item: str, position: int, correct: int | None) -> PersonRow:
        return PersonRow(
            "p1", position, "replayscm", "pool", item, "", "", "none", correct, "", "", 0, 0, 1.0, 1.0, "2026-01-01"
        )

    rows = [row("judged", 1, 1), row("unjudged", 2, None)]
    lines = [line for line in summary_lines(rows) if "right" in line]
    assert [line.split("1.000")[0].split() for line in lines] == [
        ["replayscm", "right"],
        ["replayscm", "right", "at", "item", "1"],
    ]
    assert ",1,,," in csv_text(rows).splitlines()[1]
    assert csv_text(rows).splitlines()[2].split(",")[8] == ""


def test_ties_are_counted_among_items_that_have_a_right_answer() -> None:
    ties, context = DrawnTies(), AnswerContext("exact", "p", "d", 2, "a", "Ordered", "", benchmark="replayscm")
    right, wrong = {"heldoutExact": True, "trainExact": True}, {"heldoutExact": False, "trainExact": True}
    ties.add(context, MeanScore(right, ((1, right), (1, wrong)), is_drawn=True))
    before = list(ties.lines())
    ties.add(context, {"heldoutExact": None, "trainExact": True})
    assert list(ties.lines()) == before
    assert before


def test_a_trainer_gets_no_verdict_where_there_is_none() -> None:
    problems = _problems()
    completions = [[{"role": "assistant", "content": json.dumps(gold_submission(problem))}] for problem in problems]
    records = [json.dumps(benchmark("replayscm").items.record(problem)) for problem in problems]
    assert verdict(completions, records, ["replayscm"] * 2) == [1.0, None]


@pytest.mark.parametrize("pool", ["hidden-order", "hidden-roots", "ordered"])
def test_plain_items_without_held_out_cells_have_no_verdict_either(pool: str, tmp_path: Path) -> None:
    """Neither a valid nor an invalid answer, as an object or a text; targets may also leave no cell to score."""
    bench = benchmark("replayscm")
    success = bench.metrics.success
    item = next(iter(bench.items.read_pool(packaged_pool(pool)).items))
    gold = bench.training.gold(item)
    assert gold is not None
    everything = Intervention(assigned=item.task.variables)
    world = replace(item.sealed.heldout.worlds[0], intervention=everything)
    heldouts = (replace(item.sealed.heldout, worlds=worlds) for worlds in ((), (world,)))
    bares = [replace(item, id="bare", sealed=replace(item.sealed, heldout=heldout)) for heldout in heldouts]
    for bare in bares:
        for answer in (gold, {}, {"mechanisms": {"X1": "(((("}}):
            assert success.judge(bench.scoring.score(item, answer, ()), item.setting) is (answer is gold)
            score = bench.scoring.score(bare, answer, ())
            assert success.judge(score, bare.setting) is None
            assert bench.attribution(bare, answer, (), score) is None
    path, file = tmp_path / "pool.jsonl", tmp_path / "answers.jsonl"
    write_pool(Pool("pool", [item, *bares[:1]]), path)
    file.write_text("".join(json.dumps({"id": name, "response": "none"}) + "\n" for name in (item.id, "bare")))
    out = tmp_path / "scores.jsonl"
    assert main(["score", str(path), str(file), "--out", str(out)]) == 0
    judged, unjudged = scored_answers([out])
    assert [success.judge(score, context.setting) for context, score in (judged, unjudged)] == [False, None]


def test_an_environment_rewards_no_answer_where_nothing_is_held_out() -> None:
    item = small_problem(4, rate="1/20")
    bare = replace(item, sealed=replace(item.sealed, heldout=replace(item.sealed.heldout, worlds=())))
    for answer, reward in ((gold_submission(item), 1.0), ({"mechanisms": {}}, 0.0)):
        for problem, expected in ((item, reward), (bare, None)):
            episode = text_episode(problem)
            episode.reset()
            reaction = episode.reply(f"ACTION: {json.dumps({'submit': answer})}")
            assert reaction.done
            assert reaction.reward == expected


@pytest.mark.parametrize("is_episode", [False, True])
def test_correct_is_null_at_every_door(tmp_path: Path, is_episode: bool) -> None:
    """Scores, records of play, attributions, text views and table values."""
    bench, item = benchmark("replayscm"), small_problem(4, rate="1/20", is_episode=is_episode)
    bare = replace(item, sealed=replace(item.sealed, heldout=replace(item.sealed.heldout, worlds=())))
    answers: list[dict[str, Any]] = [gold_submission(item), {"mechanisms": {}}]
    for answer in answers:
        steps = submitted_steps(bare, answer) if is_episode else ()
        score = bench.scoring.score(bare, answer, steps)
        assert (score["correct"], score["heldoutExact"]) == (None, None)
        assert bench.attribution(bare, answer, steps, score) is None
        values = {
            m.key: m.value(bench.metrics.verdict(score, bare.setting, InvalidHandling.PUBLISHED))
            for m in bench.metrics.hidden
        }
        assert values["task_correct"] is None
    assert bench.scoring.score(item, gold_submission(item), ())["correct"] is not None
    path, file = tmp_path / "pool.jsonl", tmp_path / "answers.jsonl"
    write_pool(Pool("pool", [bare]), path)
    file.write_text(json.dumps({"id": bare.id, "answer": gold_submission(item)}) + "\n", encoding="utf-8")
    out = tmp_path / "scores.jsonl"
    assert main(["score", str(path), str(file), "--out", str(out)]) == 0
    (line,) = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    assert line["correct"] is None
    if is_episode:
        game = Game(PlayPool(path), bare.id)
        game.give_up()
        verdict_of_play = game_verdict(bench, game.shown, game_record(game, "p1", {}, ""))
        assert verdict_of_play["right"] is None
        assert verdict_of_play["score"]["correct"] is None
        episode = ScmEpisode(bare)
        episode.act({"submit": gold_submission(item)})
        text = bench.require(EPISODE_VIEWS).text(bare, episode.steps, "gold")
        assert "; neither right nor wrong: nothing is held out" in text
        assert "not right" not in text
