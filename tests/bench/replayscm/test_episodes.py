"""Extended items: verdicts, public functions, metrics, and items without held-out worlds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest

import calibrant
from calibrant.bench.core.attribution import CHANCE
from calibrant.bench.core.metrics import InvalidHandling, ObservationReader
from calibrant.bench.core.registry import benchmark
from calibrant.bench.core.verdict import MeanScore
from calibrant.bench.protocols import protocols_of
from calibrant.bench.replayscm.episodes import ExtendedVerdicts, text_episode
from calibrant.bench.replayscm.fields import VerdictLine
from calibrant.bench.report.sources import scored_answers
from calibrant.bench.runs.records import folder_records
from calibrant.bench.runs.runner import run
from calibrant.bench.runs.workers import timed_answer
from calibrant.bench.scoring.lines import json_line
from calibrant.bench.scoring.predictions import Predictions
from calibrant.bench.scoring.scorer import PoolScorer, steps_of
from calibrant.bench.training import attributed, conversation, lesson, score_replies, verdict
from calibrant.dsl.episode import ActionError, Step, TranscriptError
from calibrant.dsl.errors import CalibrantError, PoolError
from calibrant.dsl.replayscm.episode import ScmEpisode, clean_rows, steps_evidence, task_class, world_evidence
from calibrant.dsl.replayscm.extensions.reference import posterior_weights
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.files import record_from_problem, write_pool
from calibrant.dsl.replayscm.pools.records import ProblemRecord, problem_from_record
from calibrant.solvers.outcome import Found
from tests.support.commands import called
from tests.support.replayscm.extensions import frontier_vectors, gold_submission, problem_of, small_problem
from tests.support.replayscm.random_problems import gold_problem

# --- Verdicts on extended items: gold is right, episodes count worlds and refusals, attributions follow listing -------
REPLAYSCM = benchmark("replayscm")


def _played(problem: Problem, actions: Sequence[dict[str, Any]]) -> list[Step[Any]]:
    episode = ScmEpisode(problem)
    for action in actions:
        episode.act(action)
    return list(episode.steps)


@pytest.mark.parametrize("rate", [None, "1/10"])
@pytest.mark.parametrize("num_hidden", [0, 1])
def test_gold_is_right_and_replays(rate: str | None, num_hidden: int) -> None:
    for seed in range(3):
        problem = small_problem(seed, rate=rate, num_hidden=num_hidden, is_episode=False)
        record = REPLAYSCM.scoring.score(problem, gold_submission(problem), ())
        assert record["valid"]
        assert record["correct"]
        assert record["heldoutWorldExactAccuracy"] in (1.0, None)
        assert ("trainMatch" in record) is (rate is not None)
        if rate is None:
            assert record["trainExact"]
            assert record["structure"]["exact_map"]
        else:
            assert record["excessLogLoss"] == pytest.approx(0, abs=1e-12)


def test_renamed_hidden_variables_are_no_error() -> None:
    problem = small_problem(3, num_hidden=2, is_episode=False)
    answer = gold_submission(problem)["mechanisms"]
    swap = {"H1": "H2", "H2": "H1"}

    def swapped(text: str) -> str:
        return " ".join(swap.get(word, word) for word in text.replace("(", "( ").replace(")", " )").split())

    mechanisms = {swap.get(v, v): swapped(text) for v, text in answer.items()}
    record = REPLAYSCM.scoring.score(problem, {"mechanisms": mechanisms}, ())
    assert record["correct"]
    assert record["structure"]["exact_map"]


@pytest.mark.parametrize("is_episode", [False, True])
def test_without_held_out_worlds_an_answer_is_neither_right_nor_wrong(*, is_episode: bool) -> None:
    problem = small_problem(3, rate="1/20", is_episode=is_episode)
    problem = replace(problem, sealed=replace(problem.sealed, heldout=replace(problem.sealed.heldout, worlds=())))
    steps = _played(problem, [{"submit": gold_submission(problem)}]) if is_episode else []
    answers: list[dict[str, Any]] = [gold_submission(problem), {"mechanisms": {}}]
    for answer in answers:
        played = steps if answer["mechanisms"] else []
        record = REPLAYSCM.scoring.score(problem, answer, played)
        assert record["heldoutExact"] is record["heldoutAllWorldsExact"] is None
        assert record["correct"] is None
        metrics = REPLAYSCM.metrics
        assert metrics.success.judge(record, problem.setting) is None
        verdict = metrics.verdict(record, problem.setting, InvalidHandling.PUBLISHED)
        values = {metric.key: metric.value(verdict) for metric in metrics.columns}
        assert values["heldout_exact"] is values["heldout_exact_given_train_exact"] is None


def test_an_episode_counts_worlds_refusals_and_what_is_left() -> None:
    problem = small_problem(1)
    actions = [{"do": {}}, {"do": {"X9": 1}}, "nonsense", {"submit": gold_submission(problem)}]
    steps = _played(problem, actions)  # type: ignore[arg-type]  # an action that is none
    verdicts = ExtendedVerdicts(problem, with_regret=True)
    record = verdicts.record(verdicts.score(None, steps), steps)
    assert (record["worlds"], record["refusals"]) == (1, 2)
    members = [m for m, w in posterior_weights(task_class(problem.task), steps_evidence(steps)) if w]
    assert record["membersLeft"] == str(len(members))
    scm_class = task_class(problem.task)
    every = range(1 << len(scm_class.roots))
    candidates = [{v: bit} for v in scm_class.observed for bit in (0, 1)]
    splits = any(len({clean_rows(scm_class, m, do, every) for m in members}) > 1 for do in candidates)
    assert record["premature"] or not splits
    assert len(record["regret"]) == 1
    assert record["regret"][0]["exact"]
    assert record["regret"][0]["regret"] >= 0


def test_an_episode_by_greedy_has_no_regret_and_no_excess() -> None:
    line = next(line for line in frontier_vectors("episode") if line["id"].endswith("-plain0"))
    problem = problem_of(line)
    labels = {"clairvoyant": str(line["clairvoyant"]), "floor": str(line["floor"])}
    problem = replace(problem, sealed=replace(problem.sealed, labels=labels))
    submission: dict[str, Any] = {"submit": {"mechanisms": {}}}
    greedy = [{"do": line["candidates"][place]} for place in line["greedy_against_gold"][:2]]
    verdicts = ExtendedVerdicts(problem, with_regret=True)
    played = _played(problem, [*greedy, {"look": 1}, submission])
    record = verdicts.record(verdicts.score(None, played), played)
    assert [(step["regret"], step["exact"]) for step in record["regret"]] == [(0, True), (0, True)]
    assert (record["worlds"], record["refusals"]) == (2, 1)
    assert int(record["shortOfFloor"]) == int(record["membersLeft"]) - line["floor"] > 0
    assert "excess" not in record
    assert not record["premature"]  # all worlds were spent
    hasty = _played(problem, [submission])
    record = verdicts.record(verdicts.score(None, hasty), hasty)
    assert record["premature"]
    assert record["regret"] == []


@pytest.mark.parametrize("rate", [None, "1/20"])
def test_attributions_equal_listing(rate: str | None) -> None:
    for seed in range(4 if rate is None else 2):  # listing SCMs under noise takes 2 s an item
        problem = small_problem(seed, rate=rate)
        steps = _played(problem, [{"do": {"X1": 1}}, {"do": {"X4": 0}}, {"submit": gold_submission(problem)}])
        score = REPLAYSCM.scoring.score(problem, {}, steps)
        attribution = REPLAYSCM.attribution(problem, {}, steps, score)
        assert attribution is not None
        scm_class = task_class(problem.task)
        heldout = [row for world in problem.sealed.heldout.worlds for row in world_evidence(scm_class, world)]
        places = [scm_class.observed.index(root) for root in scm_class.roots]
        shares: dict[Any, Fraction] = {}
        for member, weight in posterior_weights(scm_class, steps_evidence(steps)):
            if weight:
                behaviour = tuple(
                    clean_rows(
                        scm_class,
                        member,
                        world.constants,
                        [sum(int(row[p]) << i for i, p in enumerate(places)) for row in world.rows],
                    )
                    for world in heldout
                )
                shares[behaviour] = shares.get(behaviour, Fraction(0)) + weight
        top = max(shares.values()) / sum(shares.values())
        assert attribution["decided"] is (len(shares) == 1 if rate is None else top >= Fraction(99, 100))
        if rate is None:
            assert attribution["fits"] is True
        else:
            assert attribution["fits"] is None
            assert attribution["posterior"] <= float(top) + 1e-12


def test_forecasts_are_scored_against_the_law() -> None:
    problem = small_problem(2, rate="1/10", is_episode=False, is_forecast=True)
    verdicts = ExtendedVerdicts(problem)
    laws = verdicts.evaluator._laws
    stated = {"forecast": [[{v: float(p) for v, p in row.items()} for row in rows] for rows in laws]}
    best = REPLAYSCM.scoring.score(problem, stated, ())
    assert best["correct"]
    assert best["excessBrier"] == pytest.approx(0, abs=1e-12)
    flat = REPLAYSCM.scoring.score(
        problem, {"forecast": [[dict.fromkeys(row, 0.5) for row in rows] for rows in laws]}, ()
    )
    assert flat["logLoss"] == pytest.approx(1)
    assert not flat["correct"]
    assert REPLAYSCM.scoring.score(problem, {"forecast": [[{"X1": 0.5}]]}, ())["stage"] == "schema"
    implied = REPLAYSCM.scoring.score(problem, gold_submission(problem), ())
    assert implied["excessLogLoss"] == pytest.approx(0, abs=1e-12)


def test_lines_of_score_replay_transcripts_and_fit_their_schema(tmp_path: Path) -> None:
    episode, passive = small_problem(1), small_problem(2, rate="1/10", is_episode=False)
    pool = tmp_path / "pool.jsonl"
    write_pool(Pool("pool", (episode, passive)), pool)
    steps = _played(episode, [{"do": {"X1": 1}}, {"submit": gold_submission(episode)}])
    listed = [{"action": s.action, "reading": s.reading, "refused": s.refused, "cost": s.cost} for s in steps]
    false = [*listed[:1], {**listed[1], "reading": {"world": 1, "rows": ["0000"] * 4}}, *listed[2:]]
    answer = gold_submission(passive)
    lines = [
        {"instanceId": episode.id, "model": "a", "steps": listed},
        {"instanceId": episode.id, "model": "b", "response": f"It is {answer_text(gold_submission(episode))}"},
        {"instanceId": episode.id, "model": "c", "response": "I do not know"},
        {"instanceId": passive.id, "model": "a", "response": answer_text(answer)},
        {"instanceId": passive.id, "model": "b", "response": "[]"},
    ]
    predictions = tmp_path / "predictions.jsonl"
    predictions.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    scorer = PoolScorer([pool])
    scored = [scorer.score(one).line for one in Predictions(predictions, scorer)]
    for line in scored:
        msgspec.json.decode(json_line(line).encode(), type=VerdictLine)
    assert [line["correct"] for line in scored] == [True, True, False, True, False]
    assert [line.get("worlds") for line in scored] == [1, 0, 0, None, None]
    assert scored[2]["failureExplanation"] == "nothing was submitted"
    predictions.write_bytes(msgspec.json.encode({"instanceId": episode.id, "model": "a", "steps": false}) + b"\n")
    with pytest.raises(Exception, match="step 1") as caught:
        list(Predictions(predictions, scorer))
    assert isinstance(caught.value.__context__, TranscriptError)


def answer_text(answer: dict[str, Any]) -> str:
    return msgspec.json.encode(answer).decode()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (lambda asked: asked[:-1], "2 worlds to forecast, 3 held out"),
        (lambda asked: [asked[1], asked[0], *asked[2:]], "its intervention is not that of the held-out world"),
        (
            lambda asked: [{**asked[0], "constants": {}}, *asked[1:]],
            "its intervention is not that of the held-out world",
        ),
        (lambda asked: [{**w, "contexts": w["contexts"][::-1]} for w in asked], "its contexts are not the rows"),
        (lambda asked: [{**w, "contexts": w["contexts"][:-1]} for w in asked], "its contexts are not the rows"),
    ],
)
def test_worlds_to_forecast_are_the_held_out_ones(changes: Callable[[Any], Any], message: str) -> None:
    """Scores compare them cell by cell, so another order is refused when the item is read."""
    record = msgspec.to_builtins(record_from_problem(small_problem(1, is_episode=False, is_forecast=True)))
    record["asked"] = changes(record["asked"])
    with pytest.raises(PoolError, match=message) as error:
        problem_from_record(msgspec.convert(record, ProblemRecord))
    assert "\n" not in str(error.value)


def test_tables_attribute_the_ties_of_an_episode(tmp_path: Path) -> None:
    """Row `abstain` has three most probable SCMs here: each is attributed as the benchmark attributes it alone."""
    item = small_problem(0, num_worlds=2)
    write_pool(Pool("pool", (item,)), tmp_path / "pool.jsonl")
    run(protocols_of(REPLAYSCM)["abstain"](), [tmp_path / "pool.jsonl"], tmp_path / "runs")
    ((_, score),) = scored_answers([tmp_path / "runs"])
    (record,) = folder_records(tmp_path / "runs")
    assert isinstance(score, MeanScore)
    assert isinstance(record.steps, list)
    steps = steps_of(record.steps)
    expected = [REPLAYSCM.attribution(item, {}, steps, part) for _, part in score.parts]
    assert [part["attribution"] for _, part in score.parts] == expected
    assert sum(times for times, _ in score.parts) == 3


@pytest.mark.parametrize(("rate", "is_episode"), [("1/10", True), (None, True), ("1/10", False)])
def test_ties_are_scored_as_if_each_were_submitted(rate: str | None, is_episode: bool) -> None:
    item = small_problem(0, rate=rate, is_episode=is_episode, num_worlds=2)
    answer = timed_answer(protocols_of(REPLAYSCM)["abstain" if is_episode else "exact"](), REPLAYSCM.handout(item))
    ties, steps = answer.result.ties, answer.steps or ()
    assert ties is not None
    assert ties.count == len(ties.answers) > 1
    assert answer.result.answer in ties.answers
    records = REPLAYSCM.scoring.score_ties(item, ties.answers, steps)
    for submission, record in zip(ties.answers, records, strict=True):
        replayed = [Step({"submit": submission}, None, "", 0) if "submit" in s.action else s for s in steps]
        assert record == REPLAYSCM.scoring.score(item, submission, replayed)


# --- Conditions of views: a metric that is not read of a verdict is one that the verdict does not have ----------------
ATTRIBUTION = {"kind": "earned", "decided": True, "fits": True, "members": "1", "class": "in words"}
EXPECTED = {"uniform": 0.25, "draw": 0.5, "best": 0.75}  # of guessers, which a table reads beside attributions


def _scores() -> Iterator[dict[str, Any]]:
    """Yield scores of plain and extended items, right, invalid, in episodes, as forecasts."""
    plain = gold_problem(1)
    yield REPLAYSCM.scoring.score(plain, {"mechanisms": {}}, ())
    yield REPLAYSCM.scoring.score(plain, gold_submission(plain), ())
    noisy, forecast = (small_problem(2, rate="1/10", is_episode=False, is_forecast=asked) for asked in (False, True))
    for item in (noisy, forecast):
        yield REPLAYSCM.scoring.score(item, gold_submission(item), ())
        yield REPLAYSCM.scoring.score(item, {"forecast": []}, ())
    laws = ExtendedVerdicts(forecast).evaluator._laws
    even = {"forecast": [[dict.fromkeys(row, 0.5) for row in rows] for rows in laws]}
    yield REPLAYSCM.scoring.score(forecast, even, ())
    for rate in (None, "1/20"):
        played = small_problem(1, rate=rate)
        submitted: list[dict[str, Any]] = [{"do": {}}, {"submit": gold_submission(played)}]
        for actions in (submitted, [{"do": {"X9": 1}}]):
            episode = ScmEpisode(played)
            for action in actions:
                episode.act(action)
            verdicts = ExtendedVerdicts(played, with_regret=True)
            yield verdicts.record(verdicts.score(None, list(episode.steps)), list(episode.steps))


@pytest.mark.parametrize("handling", InvalidHandling)
def test_metrics_that_are_not_read_are_none(handling: InvalidHandling) -> None:
    reader = ObservationReader(REPLAYSCM.metrics, handling, with_hidden=True)
    defined = set[str]()
    for score in _scores():
        for line in (
            score,
            {**score, "attribution": ATTRIBUTION, CHANCE: EXPECTED},
            {**score, "attribution": None, CHANCE: dict.fromkeys(EXPECTED)},
        ):
            for setting in ("Hidden-order", "Hidden-roots", "Episode Hidden-order+noise", "Alt-Ordered"):
                verdict = REPLAYSCM.metrics.verdict(line, setting, handling)
                values = [column.value(verdict) for column in reader.columns]
                assert reader.read_values(setting, line)[0] == tuple(values)
                defined |= {c.key for c, value in zip(reader.columns, values, strict=True) if value is not None}
    conditional = [view for view in REPLAYSCM.metrics.views.values() if view.applies is not None]
    of_verdicts = {metric.key for view in conditional for metric in view.metrics if not metric.skill_of}  # else of rows
    assert of_verdicts - defined <= {"excess", "right_given_undecided"}


# --- Extended items behind the public names, in trainers' conversations, reports and in commands that refuse them -----


def test_public_names_score_solve_and_count() -> None:
    item = small_problem(1)
    episode = calibrant.open_episode(item)
    episode.act({"do": {"X1": 1}})
    score = calibrant.score(item, gold_submission(item), steps=episode.steps)
    assert score.correct
    assert score.to_dict()["worlds"] == 1
    solved = calibrant.solve(item)
    assert isinstance(solved, Found)
    assert calibrant.score(item, solved.value.answer, steps=solved.value.steps).valid
    after = calibrant.version_space(item, steps=episode.steps).count
    assert 1 <= after <= calibrant.version_space(item).count
    with pytest.raises(CalibrantError, match="no options"):
        calibrant.solve(item, max_parents=3)
    passive = small_problem(1, is_episode=False)
    with pytest.raises(CalibrantError, match="no steps"):
        calibrant.score(passive, gold_submission(passive), steps=episode.steps)
    with pytest.raises(CalibrantError, match="noise or hidden"):
        calibrant.version_space(small_problem(1, rate="1/10"))


@pytest.mark.parametrize(
    ("text", "do"),
    [("do X1=1, X2=0\n", {"X1": 1, "X2": 0}), ("do", {}), ("do X1=2", {"X1": 2}), ('{"do": {"X1": 1}}', {"X1": 1})],
)
def test_worlds_are_asked_for_by_hand(text: str, do: dict[str, int]) -> None:
    assert REPLAYSCM.play.parse_action(small_problem(1), text) == {"do": do}


@pytest.mark.parametrize("text", ["do X1", "do X1=1 please", "X1=1", "done"])
def test_no_world_is_guessed_from_talk(text: str) -> None:
    with pytest.raises(ActionError):
        REPLAYSCM.play.parse_action(small_problem(1), text)


def test_replies_are_rewarded() -> None:
    item = small_problem(2)
    submission = json.dumps({"submit": gold_submission(item)})
    replies = ['ACTION: {"do": {"X2": 0}}', "I think about it", f"ACTION: {submission}"]
    result = score_replies(REPLAYSCM, item, replies)
    assert result.answered
    assert result.verdict.correct
    assert result.verdict.to_dict()["refusals"] == 1
    task = lesson("replayscm", json.dumps(REPLAYSCM.items.record(item)))
    assert verdict(task, result) == 1
    assert attributed(task, result) in (0.5, 1.0)
    bare = score_replies(REPLAYSCM, item, [json.dumps(gold_submission(item))])
    assert bare.verdict.correct
    assert not score_replies(REPLAYSCM, item, []).answered


def test_shares_of_maps_and_forecasts_lie_between_wrong_and_right() -> None:
    share = REPLAYSCM.training.share
    for item in (small_problem(1, is_episode=False), small_problem(2, rate="1/10", is_episode=False)):
        scm_class = item.task.disclosure
        roots = scm_class.roots or ()
        constant = {"mechanisms": dict.fromkeys(gold_submission(item)["mechanisms"], f"(xor {roots[0]} {roots[0]})")}
        scores = [calibrant.score(item, answer) for answer in ({}, constant, gold_submission(item))]
        shares = [share(item, score) for score in scores]
        assert shares == sorted(shares)
        assert (shares[0], shares[-1]) == (0.0, 1.0)
        assert (shares[1] == 1.0) is scores[1].correct


def test_noise_excludes_no_legal_answer() -> None:
    """An answer to noisy evidence that decides nothing is worth a half if it is legal, right or not."""
    passive = small_problem(2, rate="1/10", is_episode=False, num_worlds=1)
    task = lesson("replayscm", json.dumps(REPLAYSCM.items.record(passive)))
    assert task.decided is False
    assert attributed(task, score_replies(REPLAYSCM, passive, [json.dumps(gold_submission(passive))])) == 0.5
    assert attributed(task, score_replies(REPLAYSCM, passive, ["no answer"])) == 0
    episode = small_problem(2, rate="1/10")
    at_once = score_replies(REPLAYSCM, episode, [json.dumps(gold_submission(episode))])
    task = lesson("replayscm", json.dumps(REPLAYSCM.items.record(episode)))
    assert attributed(task, at_once) in (0.5, 1.0)


def test_an_environment_ends_after_its_replies() -> None:
    item = small_problem(2, num_worlds=2)
    environment = text_episode(item)
    assert "World 0" in environment.reset()[-1]["content"]
    reactions = [environment.reply("no action")]
    while not reactions[-1].done:
        reactions.append(environment.reply("no action"))
    assert (len(reactions), reactions[-1].reward) == (2 * 2 + 10, 0)
    assert reactions[-1].info["score"]["refusals"] == len(reactions)
    assert conversation(REPLAYSCM, item).messages[0]["content"] == ""


@pytest.mark.parametrize(
    "line",
    [
        ["harden", "POOL", "--out", "OUT", "--workers", "1"],
        ["separate", "POOL", "ID"],
        ["pool", "alternatives", "POOL", "OUT"],
        ["pool", "convert", "POOL", "YAML"],
    ],
)
@pytest.mark.parametrize("is_episode", [False, True])
def test_commands_for_plain_items_refuse_extended_ones(line: list[str], is_episode: bool, tmp_path: Path) -> None:
    item = small_problem(3, rate="1/10", is_episode=is_episode)
    write_pool(Pool("pool", (item,)), tmp_path / "pool.jsonl")
    names = {
        "POOL": tmp_path / "pool.jsonl",
        "OUT": tmp_path / "out.jsonl",
        "YAML": tmp_path / "out.yaml",
        "ID": item.id,
    }
    done = called(*[names.get(word, word) for word in line])
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("is_episode", [False, True])
def test_extended_items_are_explained(is_episode: bool, tmp_path: Path) -> None:
    item = small_problem(3, rate="1/10", is_episode=is_episode)
    write_pool(Pool("pool", (item,)), tmp_path / "pool.jsonl")
    done = called("show", tmp_path / "pool.jsonl", item.id, "--why")
    assert done.returncode == 0
    assert done.stdout.startswith(f"Why is \u201c{item.id}\u201d open")
    done = called("show", tmp_path / "pool.jsonl", item.id, "--why", "--public")
    assert re.fullmatch(rf"{item.id} is item-[0-9a-f]{{16}} there, an id that tells nothing of it\n", done.stderr)
    assert re.match("Why is \u201citem-[0-9a-f]{16}\u201d open", done.stdout)  # ids may name what is sealed


def test_reports_draw_bits_by_world_and_calibration(tmp_path: Path) -> None:
    """Run, report, plots and page of items with noise and without, through the commands alone."""
    pool, runs, page = tmp_path / "pool.jsonl", tmp_path / "runs", tmp_path / "report.html"
    write_pool(Pool("pool", tuple(small_problem(seed, rate=rate) for seed, rate in enumerate((None, "1/10")))), pool)
    assert called("run", "greedy,random", pool, "--out", runs, "--workers", "1").returncode == 0
    done = called("report", runs, "--pool", pool, "--out", page, "--no-times", "--plots", tmp_path / "plots")
    assert done.returncode == 0, done.stderr
    for name in ("bits_left", "posterior_calibration"):
        assert "<svg" in (tmp_path / "plots" / f"{name}.svg").read_text("utf-8")
    text = page.read_text("utf-8")
    for title in ("Bits left by world", "Calibration of posteriors"):
        assert f'role="img" aria-label="{title}"' in text
    shown = called("show", pool, "small_0_None_0", "--run", runs, "--html", tmp_path / "episode.html")
    assert shown.returncode == 0, shown.stderr
