"""The command `python -m calibrant.bench.lab.blickets`: agents under the paper's conditions, its tables, findings.

`learners` is the table of the exact learners beside the figures that a prototype gave.

The prototype's figures came with the benchmark's description; its code did not. Rows of a learner `at random` show the
effect of ties: among equally good configurations the first is taken elsewhere, there one is drawn.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations, product
from math import sqrt
from multiprocessing import get_context
from random import Random
from statistics import mean, stdev
from typing import NamedTuple

from calibrant.audits.blickets import printed
from calibrant.audits.claims import ClaimStatus, Finding
from calibrant.baselines.blickets.rows import GRID
from calibrant.bench.answers.rates import NORMAL_95
from calibrant.bench.blickets import paper as blickets_paper
from calibrant.bench.blickets.agents import AT_RANDOM, agent, play_agent
from calibrant.bench.blickets.rates import Counts, Share, count_classes
from calibrant.bench.lab.renamings import Alike, RenamedItem, permuted_names, shuffled
from calibrant.bench.papers import text_of
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Source, Table, TableRow
from calibrant.dsl.blickets.generation import SUITES
from calibrant.dsl.blickets.item import BlicketItem, object_role, reorder_objects
from calibrant.dsl.errors import CalibrantError, short_repr

# --- Results of agents under the paper's conditions: accuracy, steps and outcome of the switch, with intervals --------
SEED = 2026
DEFAULT_SUITES = (
    "conjunctive",
    "easy-3",
    "easy-5",
    "hard-3",
    "stochastic",
    "order",
    "order-2-of-4",
    "order-3-of-4",
    "order-4-of-4",
)
DEFAULT_AGENTS = ("static", "switch-aware", "seek", "noise-aware", "order-aware", "base", "cg", "cg+db", "quiet")
_PRINTED_COUNTS = {"easy-3": "5a", "easy-5": "11", "hard-3": "6"}
_PRINTED_PERCENT = {"stochastic": 2, "order-2-of-4": 3}  # rows of Table 7


def all_played(
    agents: Sequence[str], suites: Sequence[str], episodes: int, *, seed: int = SEED, jobs: int = 1
) -> list[blickets_paper.PlayedEpisode]:
    """Return the episodes of each agent on the same items of each suite, ordered by suite, then agent, then item."""
    pairs = [(agent, suite) for suite, agent in product(suites, agents)]
    return [episode for part in played_pairs(pairs, episodes, seed=seed, jobs=jobs) for episode in part]


def played_pairs(
    pairs: Sequence[tuple[str, str]], episodes: int, *, seed: int = SEED, jobs: int = 1
) -> list[list[blickets_paper.PlayedEpisode]]:
    """Play the episodes of each pair of an agent and a suite."""
    work = [(agent, suite, episodes, seed) for agent, suite in pairs]
    if jobs == 1:
        return list(map(_part, work))
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return list(pool.map(_part, work))


def _part(work: tuple[str, str, int, int]) -> list[blickets_paper.PlayedEpisode]:
    return list(play_agent(*work))


HEADINGS = (
    Heading("accuracy", "Accuracy"),
    Heading("steps", "Steps"),
    Heading("exactly_n_rate", "Exactly-N rate"),
    Heading("eligible_rate", "RE rate"),
    Heading("eligible_accuracy", "RE accuracy"),
    Heading("switched_accuracy", "All switched"),
)


def agent_table(episodes: Iterable[blickets_paper.PlayedEpisode]) -> Table:
    """Return a table of agents by suite, in order of first occurrence, with the paper's rows after each suite."""
    groups: dict[str, dict[str, list[blickets_paper.PlayedEpisode]]] = {}
    for episode in episodes:
        groups.setdefault(episode.suite, {}).setdefault(episode.agent, []).append(episode)
    rows: list[TableRow] = []
    for suite, by_agent in groups.items():
        rows += [TableRow((suite, agent), _cells(played_by)) for agent, played_by in by_agent.items()]
        rows += _list_printed(suite)
    return Table(
        "standing",
        "Agents under the paper's conditions",
        "Percent with 95 % score intervals, means with normal ones. RE: more than N activations. All switched: accuracy"
        " over episodes with N activations or more.",
        (Heading("condition", "Condition"), Heading("agent", "Agent")),
        HEADINGS,
        tuple(rows),
        (f"Rows of source paper are those of {blickets_paper.paper().source}.",),
    )


def _cells(episodes: Sequence[blickets_paper.PlayedEpisode]) -> tuple[Cell, ...]:
    grades = [episode.grade for episode in episodes]
    counts = count_classes(grades)
    shares = (counts.exactly_n_rate, counts.eligible_rate, counts.eligible_accuracy, counts.switched_accuracy)
    return (
        blickets_paper.share_cell(counts.accuracy, with_interval=True),
        mean_cell([grade.steps for grade in grades]),
        *(blickets_paper.share_cell(share, with_interval=True) for share in shares),
    )


def mean_cell(values: Sequence[int]) -> Cell:
    middle = mean(values)
    if len(values) < 2:
        return Cell(f"{middle:.1f}")
    half_width = NORMAL_95 * stdev(values) / sqrt(len(values))
    return Cell(f"{middle:.1f}", f"{middle - half_width:.1f}", f"{middle + half_width:.1f}")


def _list_printed(suite: str) -> Iterator[TableRow]:
    if suite in _PRINTED_COUNTS:
        for (agent,), counts in blickets_paper.printed_counts(_PRINTED_COUNTS[suite]):
            shares = (counts.exactly_n_rate, counts.eligible_rate, counts.eligible_accuracy, counts.switched_accuracy)
            cells = (blickets_paper.share_cell(counts.accuracy), NOTHING, *map(blickets_paper.share_cell, shares))
            yield TableRow((suite, agent), cells, Source.PAPER)
    if suite in _PRINTED_PERCENT:
        texts = blickets_paper.paper().tables["7"].rows[_PRINTED_PERCENT[suite]][1:]
        for agent, text in zip(blickets_paper.PRINTED_AGENTS, texts, strict=True):
            accuracy = NOTHING if text == blickets_paper.NOT_PRINTED else Cell(text)
            yield TableRow((suite, agent), (accuracy, *[NOTHING] * 5), Source.PAPER)


# --- Exact learners beside the figures of a prototype, over 500 episodes a condition, with their differences ----------
STATED_EPISODES = 500
ALLOWED_SHARE, ALLOWED_STEPS = 0.03, 1.0


class Stated(NamedTuple):
    """Results of the prototype; None where no figure is stated."""

    suite: str
    agent: str
    accuracy: float | None = None
    steps: float | None = None
    exactly_n: float | None = None
    eligible: float | None = None

    @property
    def figures(self) -> tuple[float | None, ...]:
        return self.accuracy, self.steps, self.exactly_n, self.eligible


STATED = (
    Stated("conjunctive", "static", 1.0, 7.5),
    Stated("conjunctive", "switch-aware", 1.0, 15.6),
    Stated("conjunctive", "seek", None, 39.3),
    Stated("easy-3", "static", 0.25, 7.5),
    Stated("easy-3", "switch-aware", 1.0, 15.5, 0.0, 0.95),
    Stated("easy-3", "seek", None, 15.9, None, 1.0),
    Stated("easy-5", "static", 0.94, 7.5),
    Stated("easy-5", "switch-aware", 1.0, 17.0, 0.0, 0.44),
    Stated("easy-5", "seek", None, 23.0, None, 1.0),
    Stated("hard-3", "static", 0.25, 7.5, 0.75),
    Stated("hard-3", "switch-aware", 1.0, 16.1, 0.0, 0.95),
    Stated("hard-3", "seek", None, 16.6, None, 1.0),
    Stated("hard-3-edge", "static", 1.0),
    Stated("stochastic", "static", 0.36, 7.7),
    Stated("stochastic", "noise-aware", 0.994, 19.4),
    Stated("stochastic", "noise-aware@0.2", 0.718, 11.4),
    Stated("stochastic", "noise-aware@0.1", 0.846, 13.1),
    Stated("stochastic", "noise-aware@0.05", 0.93, 14.8),
    Stated("stochastic", "noise-aware@0.001", 1.0, 27.5),
    Stated("order", "static", 0.25, 6.5),
    Stated("order", "order-aware", 1.0, 11.7),
    Stated("order-2-of-4", "static", 0.32),
    Stated("order-2-of-4", "order-aware", 1.0, 8.7),
    Stated("order-3-of-4", "static", 0.15),
    Stated("order-3-of-4", "order-aware", 1.0, 16.1),
    Stated("order-4-of-4", "static", 0.1),
    Stated("order-4-of-4", "order-aware", 1.0, 21.3),
    Stated("hard-3", "script/db/confirm-1", None, None, 0.0),
    Stated("hard-3", "script/db/confirm-2", None, None, 1.0),
    Stated("hard-3", "script/db/confirm-3", None, None, 0.45),
    Stated("hard-3", "script/db/silent", None, None, 0.0),
)
LEARNER_HEADINGS = (
    Heading("accuracy", "Accuracy"),
    Heading("steps", "Steps"),
    Heading("exactly_n_rate", "Exactly-N rate"),
    Heading("eligible_rate", "RE rate"),
    Heading("differs", "Differs"),
)
_MEASURES = ("accuracy", "steps", "exactly-N", "RE rate")


def learner_table(episodes: int, *, seed: int = SEED, jobs: int = 1, stated: Sequence[Stated] | None = None) -> Table:
    """Return each row of the prototype, then ours, then the same learner with other ties or another class."""
    pairs = [(line, agent) for line in (STATED if stated is None else stated) for agent in _list_agents(line.agent)]
    parts = played_pairs([(agent, line.suite) for line, agent in pairs], episodes, seed=seed, jobs=jobs)
    rows: list[TableRow] = []
    for (line, system), played in zip(pairs, parts, strict=True):
        if system == line.agent:
            rows.append(TableRow((line.suite, system), (*_stated_cells(line), NOTHING), Source.PROTOTYPE))
        rows.append(TableRow((line.suite, system), _learner_cells(line, played)))
    return Table(
        "learners",
        "Exact learners beside a prototype's",
        "Percent with 95 % score intervals, means with normal ones. Differs: beyond chance (95 %, both being samples);"
        f" ! beyond {100 * ALLOWED_SHARE:.0f} points or {ALLOWED_STEPS:.0f} step.",
        (Heading("condition", "Condition"), Heading("agent", "Agent")),
        LEARNER_HEADINGS,
        tuple(rows),
    )


def _list_agents(agent: str) -> Iterator[str]:
    yield agent
    if f"{agent}-at-random" in {variant.name for variant in AT_RANDOM}:
        yield f"{agent}-at-random"
    if agent.startswith("noise-aware"):
        yield agent.replace("noise-aware", "maybe-noise")


def _stated_cells(line: Stated) -> Iterator[Cell]:
    for measure, figure in zip(_MEASURES, line.figures, strict=True):
        percent = "" if figure is None else f"{figure:.1f}" if measure == "steps" else f"{100 * figure:.1f}"
        yield Cell(percent) if percent else NOTHING


def _learner_cells(line: Stated, played: Sequence[blickets_paper.PlayedEpisode]) -> tuple[Cell, ...]:
    counts = count_classes(episode.grade for episode in played)
    steps = [episode.grade.steps for episode in played]
    shares = (counts.exactly_n_rate, counts.eligible_rate)
    return (
        blickets_paper.share_cell(counts.accuracy, with_interval=True),
        mean_cell(steps),
        *(blickets_paper.share_cell(share, with_interval=True) for share in shares),
        Cell(", ".join(_differences(line, counts.accuracy, steps, *shares)) or "no"),
    )


def _differences(
    line: Stated, accuracy: Share, steps: Sequence[int], exactly_n: Share | None, eligible: Share | None
) -> Iterator[str]:
    shares = (accuracy, None, exactly_n, eligible)
    for measure, figure, share in zip(_MEASURES, line.figures, shares, strict=True):
        if figure is None:
            continue
        if measure == "steps":
            yield from difference_of_means(steps, figure)
        elif share is not None:
            yield from (f"{measure} {text}" for text in difference_of_shares(share, figure))


def difference_of_shares(share: Share, stated: float) -> Iterator[str]:
    """Yield the difference in points if chance between two samples does not explain it.

    stated: the printed share, rounded to 1/200
    """
    pooled = (share.hits + stated * STATED_EPISODES) / (share.total + STATED_EPISODES)
    error = sqrt(pooled * (1 - pooled) * (1 / share.total + 1 / STATED_EPISODES))
    difference = share.rate - stated
    # 0.005: rounding of the stated share
    if abs(difference) > NORMAL_95 * error + 0.005:
        yield f"{100 * difference:+.1f}" + "!" * (abs(difference) > ALLOWED_SHARE)


def difference_of_means(steps: Sequence[int], stated: float) -> Iterator[str]:
    """Yield the difference in mean steps if chance does not explain it.

    The prototype's standard deviation is not stated; ours stands for it.

    stated: mean, rounded to one decimal
    """
    spread = stdev(steps) if len(steps) > 1 else 0.0
    error = spread * sqrt(1 / len(steps) + 1 / STATED_EPISODES)
    difference = sum(steps) / len(steps) - stated
    # 0.05: rounding of the stated mean
    if abs(difference) > NORMAL_95 * error + 0.05:
        yield f"steps {difference:+.1f}" + "!" * (abs(difference) > ALLOWED_STEPS)


# --- Findings about the paper's printed statistics, computed again ----------------------------------------------------


def paper_findings() -> Iterator[Finding]:
    """Yield findings on the paper's tables.

    They are about misprints, comparisons that selection decides, firings outside their class, and the accuracy of
    systems that never switched.
    """
    source, odds = blickets_paper.paper().source, blickets_paper.paper().posterior_odds
    yield from printed.misprinted_tests((test.test for test in blickets_paper.paper().tests), source)
    yield printed.posterior_odds_finding(odds.name, printed.TwoByTwo(*odds.counts), odds.odds, source)
    by_agent, by_run = dict(_labelled("5a")), dict(_labelled("5b"))
    together = _accuracies(by_agent["CG+DB",], by_agent["CG",])
    alone = _accuracies(by_run["06", "CG+DB"], by_run["06", "CG"])
    yield printed.credited_to_one_run("Table 4, Run 06, CG+DB against CG", alone, together, RUN_06_P, source)
    yield from (finding for finding in class_sums() if finding.verdict is ClaimStatus.PROVED)
    hard = _by_agent("6")
    for first, second in combinations(hard, 2):
        yield printed.self_selection(f"Table 6, {second} against {first}", hard[second], hard[first], source)
    late = _by_agent("11")
    false = {tuple(labels): detections.false_positives for labels, detections in blickets_paper.printed_detections()}
    yield printed.firings_outside_eligible(
        "Tables 9 and 11, CG+DB at N = 5", false["06", "5", "5"], late["CG+DB"], source
    )
    for system, counts in late.items():
        yield printed.accuracy_of_silence(f"Table 11, {system}", counts, source)


def class_sums() -> Iterator[Finding]:
    """Yield for each printed row with all classes whether its counts leave a wrong answer before the switch."""
    for number in ("5a", "5b", "6", "8", "11"):
        for labels, counts in _labelled(number):
            if counts.exactly_n is not None:
                name = f"Table {number}, {', '.join(labels)}{' steps' * (number == '8')}"
                yield printed.wrong_before_the_switch(name, _count_switched(counts), blickets_paper.paper().source)


RUN_06_P = ".015"  # Table 4


def _labelled(number: str) -> list[tuple[tuple[str, ...], Counts]]:
    return [(tuple(labels), counts) for labels, counts in blickets_paper.printed_counts(number)]


def _accuracies(first: Counts, second: Counts) -> printed.TwoByTwo:
    """Return right and wrong answers of two agents."""
    return printed.TwoByTwo(
        first.correct, first.episodes - first.correct, second.correct, second.episodes - second.correct
    )


def _by_agent(number: str) -> dict[str, printed.Switched]:
    return {labels[0]: _count_switched(counts) for labels, counts in blickets_paper.printed_counts(number)}


def _count_switched(counts: Counts) -> printed.Switched:
    classes = counts.eligible, counts.eligible_correct, counts.exactly_n
    eligible, correct, exactly_n = (count for count in classes if count is not None)
    return printed.Switched(counts.episodes, counts.correct, eligible, correct, exactly_n)


TABLES = ("standing", "learners", "paper", "findings", "setup")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables or the findings that the options name. Return 0, or 2 if a library is missing."""
    options = _arguments().parse_args(arguments)
    try:
        sys.stdout.write(_findings() if options.table == "findings" else _tables(options))
    except CalibrantError as error:
        print(f"bench.lab.blickets: {error}", file=sys.stderr)
        return 2
    return 0


def _findings() -> str:
    return "".join(
        f"{finding.kind}, {finding.verdict}: {finding.where}: {finding.claim}\n" for finding in paper_findings()
    )


def _tables(options: argparse.Namespace) -> str:
    if options.table == "setup":
        return "\n\n".join(map(text_of, blickets_paper.setup_tables())) + "\n"
    if options.table == "learners":
        return text_of(learner_table(options.episodes, seed=options.seed, jobs=options.jobs)) + "\n"
    agents = [member.name for member in GRID] if options.grid else options.agents
    episodes = all_played(agents, options.suites, options.episodes, seed=options.seed, jobs=options.jobs)
    tables = (agent_table(episodes),) if options.table == "standing" else blickets_paper.paper_tables(episodes)
    return "\n\n".join(text_of(table) for table in tables) + "\n"


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m calibrant.bench.lab.blickets", description="Agents beside printed rows."
    )
    parser.add_argument(
        "table",
        choices=TABLES,
        help="where agents stand; learners beside a prototype's figures; Tables 5 to 11; what the paper's figures show",
    )
    parser.add_argument("--agents", nargs="+", type=_agent, default=DEFAULT_AGENTS, metavar="NAME")
    parser.add_argument("--grid", action="store_true", help="the 27 agents of the grid instead")
    parser.add_argument("--suites", nargs="+", choices=list(SUITES), default=DEFAULT_SUITES, metavar="NAME")
    parser.add_argument("--episodes", type=_positive, default=500, help="of each agent in each suite")
    parser.add_argument("--seed", type=int, default=SEED, help="of items and agents")
    parser.add_argument("--jobs", type=_positive, default=1)
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of 1 or more was expected, found {short_repr(text)}")
    return int(text)


def _agent(name: str) -> str:
    try:
        agent(name)
    except CalibrantError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return name


# --- Detectors with other names of objects, in another order ----------------------------------------------------------


def alike(item: BlicketItem) -> Alike:
    """Return the roles of the objects."""
    return Alike({name: repr(object_role(item, index)) for index, name in enumerate(item.task.objects)})


def rename(item: BlicketItem, random: Random) -> RenamedItem:
    """Return a detector with other names of objects, in another order."""
    order = shuffled(range(item.task.n), random)
    names = permuted_names(item.task.objects, random)
    objects = item.task.objects
    roles = {names[name]: role for name, role in alike(item).roles.items()}
    return RenamedItem(reorder_objects(item, order, [names[objects[i]] for i in order]), names, roles=roles)


if __name__ == "__main__":
    sys.exit(main())
