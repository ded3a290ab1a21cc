"""Figures of lab: learners of blickets against published ones, labels of CausaLab computed again."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import cycle, islice
from random import Random

import pytest

from calibrant.audits.causalab.items import generate_labelled
from calibrant.bench.blickets.agents import AGENTS, agent, play_agent
from calibrant.bench.blickets.paper import is_easy, is_hard, is_order, is_stochastic
from calibrant.bench.blickets.rates import Counts, Share, count_classes
from calibrant.bench.causalab.benchmark import BENCHMARK
from calibrant.bench.lab import causalab
from calibrant.bench.lab.blickets import (
    SEED,
    STATED,
    Stated,
    agent_table,
    all_played,
    difference_of_means,
    difference_of_shares,
    learner_table,
)
from calibrant.bench.lab.blickets import main as blickets_main
from calibrant.bench.lab.causalab import main as causalab_main
from calibrant.bench.lab.causalab import method_results, recompute_labels, relabelled_suite, weighted_graphs
from calibrant.bench.pools.generated import write_drawn
from calibrant.bench.report.layout import NOTHING, Source
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.generation import SUITES, sample_items
from calibrant.dsl.blickets.item import BlicketItem, Condition, Mechanism, Sealed, Task, all_rules
from calibrant.dsl.blickets.score import grade
from calibrant.dsl.causalab.generation import Plan, with_labels
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.errors import CalibrantError
from calibrant.solvers.blickets.conditions import RELIABILITIES, NoiseSpace
from calibrant.solvers.blickets.learner import Greedy, learn, submit_answer
from tests.support.benchmarks.causalab import released_suite
from tests.support.binomial import within
from tests.support.shared import shared_file


# --- Exact learners beside a prototype's figures: what ties decide, what is called a difference, and the command ------
@pytest.mark.parametrize(
    ("suite", "accuracy"),
    [("easy-5", 0.94), ("hard-3", 0.25), ("stochastic", 0.36), ("order", 0.25)],
)
def test_with_ties_at_random_the_static_learner_is_as_stated(suite: str, accuracy: float) -> None:
    found = count_classes(episode.grade for episode in play_agent("static-at-random", suite, 150, SEED))
    assert within(found.correct, accuracy, 150)


def test_ties_alone_decide_between_all_and_hardly_any_of_four_ordered_objects() -> None:
    first = count_classes(episode.grade for episode in play_agent("static", "order-4-of-4", 30, SEED))
    drawn = count_classes(episode.grade for episode in play_agent("static-at-random", "order-4-of-4", 30, SEED))
    assert first.correct == 30
    assert within(drawn.correct, 0.1, 30)


@pytest.mark.parametrize(
    ("suite", "steps"), [("conjunctive", 15.6), ("easy-3", 15.5), ("easy-5", 17.0), ("hard-3", 16.1)]
)
def test_with_ties_at_random_the_switch_aware_learner_takes_the_stated_steps(suite: str, steps: float) -> None:
    grades = [episode.grade for episode in play_agent("switch-aware-at-random", suite, 100, SEED)]
    assert all(found.correct for found in grades)
    assert not any(found.exposed == "exactly-N" for found in grades)
    assert sum(found.steps for found in grades) / 100 == pytest.approx(steps, abs=1)


def test_belief_in_a_noisy_rule_is_calibrated() -> None:
    """Over its own prior a learner that stops at a belief of .8 is right that often at least."""
    right = 0
    for number in range(200):
        rng = Random(number)
        rule, p = rng.choice(all_rules(4)), rng.choice(RELIABILITIES)
        sealed = Sealed((Mechanism(rule),), p=p, noise_seed=number)
        item = BlicketItem("n", Condition.STOCHASTIC, Task(tuple("ABCD"), 100), sealed)
        episode = BlicketEpisode(item)
        submit_answer(episode, learn(episode, Greedy(item.task, NoiseSpace.full(4), 0.2)).guess)
        right += bool(grade(item, episode.steps).correct)
    assert within(right, 0.85, 200) or right > 0.85 * 200


def test_another_delta_has_a_name() -> None:
    assert agent("noise-aware@0.2").name == "noise-aware@0.2"
    assert agent("order-aware-at-random@0.05").name == "order-aware-at-random@0.05"
    few, many = (
        sum(episode.grade.steps for episode in play_agent(name, "stochastic", 10, SEED))
        for name in ("noise-aware@0.2", "noise-aware@0.001")
    )
    assert few < many


@pytest.mark.parametrize(
    ("ours", "stated", "expected"),
    [
        (Share(250, 500), 0.5, []),
        (Share(250, 500), 0.56, []),  # chance: the two samples differ by 1.9 of their standard error
        (Share(250, 500), 0.6, ["-10.0!"]),
        (Share(500, 500), 1.0, []),
        (Share(500, 500), 0.98, ["+2.0"]),
        (Share(2, 4), 0.1, ["+40.0!"]),
    ],
)
def test_shares_differ_where_chance_does_not_explain_it(ours: Share, stated: float, expected: list[str]) -> None:
    assert list(difference_of_shares(ours, stated)) == expected


@pytest.mark.parametrize(
    ("ours", "stated", "expected"),
    [
        ([7, 9] * 250, 8.1, []),
        ([7, 9] * 250, 8.3, ["steps -0.3"]),
        ([7, 9] * 250, 6.5, ["steps +1.5!"]),
        ([3], 3.0, []),
    ],
)
def test_means_differ_where_chance_does_not_explain_it(ours: list[int], stated: float, expected: list[str]) -> None:
    assert list(difference_of_means(ours, stated)) == expected


def test_a_stated_row_is_followed_by_ours_and_by_ours_with_ties_at_random() -> None:
    stated = (Stated("order-4-of-4", "static", 0.1), Stated("hard-3", "seek", None, 16.6, None, 1.0))
    table = learner_table(20, stated=stated)
    assert [(row.source, *row.labels) for row in table.rows] == [
        (Source.PROTOTYPE, "order-4-of-4", "static"),
        (Source.OURS, "order-4-of-4", "static"),
        (Source.OURS, "order-4-of-4", "static-at-random"),
        (Source.PROTOTYPE, "hard-3", "seek"),
        (Source.OURS, "hard-3", "seek"),
    ]
    assert [cell.text for cell in table.rows[0].cells] == ["10.0", *[NOTHING.text] * 4]
    assert [cell.text for cell in table.rows[3].cells] == [NOTHING.text, "16.6", NOTHING.text, "100.0", NOTHING.text]
    assert table.rows[1].cells[4].text == "accuracy +90.0!"
    assert table.rows[2].cells[4].text == "no"


def test_the_command_prints_every_stated_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(STATED) == 31
    monkeypatch.setattr("calibrant.bench.lab.blickets.STATED", STATED[:1])
    assert blickets_main(["learners", "--episodes", "2"]) == 0
    assert any(line.startswith("prototype") for line in capsys.readouterr().out.splitlines())


# --- Agents under the paper's conditions: the suites, that anybody gets the same episodes, and the measured rows ------
# Rates are tested on 100 episodes against those that were measured on 500, with exact binomial bounds: a count outside
# them has a probability of at most 1e-4.
EPISODES = 50


@pytest.mark.parametrize(
    ("suite", "conditions"),
    [
        ("conjunctive", (False, False, False, False, False)),
        ("easy-3", (True, False, False, False, False)),
        ("easy-5", (False, True, False, False, False)),
        ("easy-7", (False, False, False, False, False)),
        ("hard-3", (False, False, True, False, False)),
        ("hard-3-CD", (False, False, False, False, False)),
        ("forced-exposure", (False, False, False, False, False)),
        ("switch-by-steps", (False, False, False, False, False)),
        ("several-switches", (False, False, False, False, False)),
        ("stochastic", (False, False, False, True, False)),
        ("order", (False, False, False, False, False)),
        ("order-2-of-4", (False, False, False, False, True)),
    ],
)
def test_items_are_under_the_conditions_that_the_paper_prints(suite: str, conditions: tuple[bool, ...]) -> None:
    for item in islice(sample_items(SUITES[suite], 1), 5):
        found = is_easy(item, 3), is_easy(item, 5), is_hard(item), is_stochastic(item), is_order(item)
        assert found == conditions


@pytest.mark.parametrize("suite", ["forced-exposure", "forced-moves"])
def test_a_refused_submission_is_made_again(suite: str) -> None:
    learners = [name for name in AGENTS if name.endswith("aware") or name in ("static", "seek", "static-at-random")]
    assert len(learners) >= 7
    for name in learners:
        verdicts = [episode.grade.correct for episode in play_agent(name, suite, 4, 1)]
        assert len(verdicts) == 4, name
        assert None not in verdicts, name  # of an episode without an answer


def test_every_agent_plays_the_same_way_again() -> None:
    """In one suite after the other; tests/baselines/blickets/test_grid.py has every switch of an agent."""
    for name, suite in zip(AGENTS, cycle(("easy-3", "graded", "forced-exposure")), strict=False):
        assert list(play_agent(name, suite, 2, 1)) == list(play_agent(name, suite, 2, 1)), name


def test_episodes_do_not_depend_on_the_number_of_processes() -> None:
    work = (["base", "quiet"], ["easy-3", "order-2-of-4"], 3)
    assert all_played(*work, jobs=2) == all_played(*work)


def test_agents_with_any_number_of_confirmations_have_names() -> None:
    assert agent("script/db/confirm-7").name == "script/db/confirm-7"
    for name in ("script/db/confirm-0", "script/db/confirm-100", "script/x/confirm-2", "y/db/confirm-2", "nobody"):
        with pytest.raises(CalibrantError, match=f"^unknown agent '{name}'; known: static, "):
            agent(name)


# --- measured rows ----------------------------------------------------------------------------------------------------


@cache
def _counts(name: str, suite: str) -> Counts:
    return count_classes(episode.grade for episode in play_agent(name, suite, EPISODES, SEED))


@pytest.mark.parametrize(
    ("name", "suite", "accuracy"),
    [
        ("static", "conjunctive", 1.0),
        ("static", "easy-5", 0.94),
        ("switch-aware", "easy-3", 1.0),
        ("switch-aware", "easy-5", 1.0),
        ("switch-aware", "hard-3", 1.0),
        ("seek", "hard-3", 1.0),
        ("static", "stochastic", 0.36),
        ("noise-aware", "stochastic", 0.994),
        ("order-aware", "order", 1.0),
        ("order-aware", "order-2-of-4", 1.0),
        ("order-aware", "order-3-of-4", 1.0),
        ("order-aware", "order-4-of-4", 1.0),
        ("quiet", "conjunctive", 1.0),
        ("quiet", "easy-3", 1.0),
        ("quiet", "hard-3", 1.0),
    ],
)
def test_accuracy_is_as_measured(name: str, suite: str, accuracy: float) -> None:
    counts = _counts(name, suite)
    if accuracy == 1:
        assert counts.correct == EPISODES
    else:
        assert within(counts.correct, accuracy, EPISODES)


@pytest.mark.parametrize("suite", ["easy-3", "hard-3"])
def test_without_knowledge_of_switches_the_ties_decide(suite: str) -> None:
    counts = _counts("static", suite)
    assert within(counts.correct, 0.2, EPISODES) or within(counts.correct, 0.35, EPISODES)
    assert counts.exactly_n == EPISODES - counts.correct


@pytest.mark.parametrize(("name", "rate"), [("switch-aware", 0.95), ("seek", 1.0), ("quiet", 0.0)])
@pytest.mark.parametrize("suite", ["easy-3", "hard-3"])
def test_exactly_n_is_avoidable_without_knowing_n(name: str, rate: float, suite: str) -> None:
    counts = _counts(name, suite)
    assert counts.exactly_n == 0
    assert counts.eligible is not None
    assert within(counts.eligible, rate, EPISODES)


# --- the table --------------------------------------------------------------------------------------------------------


def test_our_rows_and_then_the_papers_stand_under_each_condition() -> None:
    table = agent_table(all_played(["static", "quiet"], ["conjunctive", "hard-3", "stochastic"], 4))
    assert [(row.source is Source.PAPER, *row.labels) for row in table.rows] == [
        (False, "conjunctive", "static"),
        (False, "conjunctive", "quiet"),
        (False, "hard-3", "static"),
        (False, "hard-3", "quiet"),
        (True, "hard-3", "Base"),
        (True, "hard-3", "CG"),
        (True, "hard-3", "CG+DB"),
        (False, "stochastic", "static"),
        (False, "stochastic", "quiet"),
        (True, "stochastic", "Base"),
        (True, "stochastic", "CG"),
        (True, "stochastic", "CG+DB"),
    ]
    quiet = table.rows[3]
    assert [cell.text for cell in quiet.cells] == [
        "100.0",
        quiet.cells[1].text,
        "0.0",
        "0.0",
        NOTHING.text,
        NOTHING.text,
    ]
    assert [cell.text for cell in table.rows[6].cells] == ["90.0", NOTHING.text, "6.0", "86.0", "95.3", "89.1"]


def test_agents_that_are_wrong_before_the_switch_or_never_answer_are_counted_too() -> None:
    table = agent_table(all_played(["random", "abstain"], ["hard-3"], 20))
    abstain = next(row for row in table.rows if row.labels[1] == "abstain")
    assert [cell.text for cell in abstain.cells] == [
        "0.0",
        "0.0",
        "0.0",
        "0.0",
        NOTHING.text,
        NOTHING.text,
    ]


@pytest.mark.parametrize("table", ["standing", "paper"])
def test_the_command_prints_a_table(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        blickets_main([table, "--agents", "quiet", "script/db/confirm-1", "--suites", "hard-3", "--episodes", "3"]) == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("ours") for line in lines) == (2 if table == "standing" else 10)
    assert any(line.startswith("paper") for line in lines)


@pytest.mark.parametrize("wrong", [["--agents", "nobody"], ["--episodes", "0"], ["--suites", "x"], ["--jobs", "two"]])
def test_a_wrong_argument_is_one_line_and_code_two(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        blickets_main(["standing", *wrong])
    assert "error: argument" in capsys.readouterr().err.splitlines()[-1]


# --- Labels computed again: the graphs that are listed, a false label that is noticed, and the command ----------------
def test_every_weighted_graph_is_listed_once() -> None:
    """Acyclic graphs with three kinds of edges on 1, 2, 3 and 4 nodes: 1, 7, 289, 63,487; given the frequency's row."""
    for nodes, graphs in ((2, 1), (3, 7), (4, 289)):
        listed = weighted_graphs(nodes, sink=True)
        assert len(listed) == graphs * (4 ** (nodes - 1) - 1)
        assert len({graph.tobytes() for graph in listed}) == len(listed)
    assert len(weighted_graphs(3, sink=False)) == 289 - 7 * 4**2  # without those whose last node has no parent
    assert len(weighted_graphs(4, sink=False)) == 63_487 - 289 * 4**3


@pytest.mark.parametrize(
    ("suite", "count"), [("3nodes", 8), ("4nodes", 4), ("4nodes_freqparent", 2), ("4nodes_hidden_n1", 2)]
)
def test_labels_of_generated_items_are_those_of_brute_force(suite: str, count: int) -> None:
    found = relabelled_suite(suite, seed=11, count=count)
    assert found.wrong == ()
    assert len(found.labels) == count
    assert found.compared["winnable"] == found.compared["members"] == count
    assert found.compared.get("fewest_settings", 0) == (0 if "hidden" in suite else count)


def test_the_digest_is_that_of_the_items() -> None:
    one, two, other = (relabelled_suite("6nodes_golden", seed=seed, count=2) for seed in (11, 11, 12))
    assert one.digest == two.digest != other.digest
    assert one.wrong == ()


@pytest.mark.parametrize("label", ["fewest_settings", "members", "members_bounded", "imec", "winnable", "decidable"])
def test_a_false_label_is_noticed(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def falsified(plan: Plan, seed: int, count: int) -> Iterator[LabItem]:
        for item in generate_labelled(plan, seed, count):
            labels = item.sealed.labels
            yield with_labels(item, {**labels, label: labels[label] + 1})

    monkeypatch.setattr(causalab, "generate_labelled", falsified)
    found = relabelled_suite("3nodes", seed=1, count=2)
    assert [f": {label} is " in text for text in found.wrong] == [True, True]


def test_an_item_that_depends_on_how_many_are_drawn_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        causalab, "generate_labelled", lambda plan, seed, count: generate_labelled(plan, seed + count, count)
    )
    found = relabelled_suite("3nodes", seed=1, count=4)
    assert sum("drawn again it is another one" in text for text in found.wrong) == 2


def test_labels_travel_with_items_that_are_written(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("labels") / "pool.jsonl"
    assert write_drawn(BENCHMARK, path, ["4nodes"], 3, 2) == 2
    for item in BENCHMARK.items.read_pool(path).items:
        again = recompute_labels(item)
        assert again == {name: item.sealed.labels[name] for name in again}
        assert "fewest_settings" in again
        assert "fewest_settings" not in BENCHMARK.items.prompt(item)


def test_the_command_prints_a_line_for_each_suite(capsys: pytest.CaptureFixture[str]) -> None:
    assert causalab_main(["labels", "--count", "2", "--suites", "3nodes", "4nodes_golden"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["Suite", "3nodes", "4nodes_golden"]
    assert [line.split()[1] for line in lines[1:]] == ["2", "2"]
    with pytest.raises(SystemExit):
        causalab_main(["labels", "--count", "0"])


# The calibration rows over the released suites; what they stand at is in tests/bench/causalab/test_benchmark.py
def test_results_do_not_depend_on_the_number_of_processes() -> None:
    folder = shared_file("data", part="causalab")
    here, there = (method_results(folder, ["3nodes"], ["exact", "abstain"], 1, "released", jobs) for jobs in (1, 2))
    assert here == there
    assert list(here) == [("3nodes", "exact"), ("3nodes", "abstain")]
    assert {one.episodes for one in here.values()} == {len(released_suite("3nodes"))}
