"""CausaLab: readings, scores, answers and counts a second on one core; spaces and episodes against nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace as replace_fields
from itertools import islice

from msgspec.structs import replace

from calibrant.bench.lab.limits.sweep import Ask, Curve, Sweep
from calibrant.bench.lab.speed.report import Comparison, Options, Rival, Row, measure
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.generation import PLANS, generate_items
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import hypothesis, state_mechanism
from calibrant.dsl.causalab.score import Scorer
from calibrant.solvers.causalab.evidence import evidence_of
from calibrant.solvers.causalab.exact import solve
from calibrant.solvers.causalab.space import weighted_dags
from calibrant.solvers.outcome import BudgetSpent, OutOfBudget

# --- Readings, scores, answers and counts a second on one core, against what is wanted of them ------------------------
TOPIC = "causalab"
ITEMS = 50
READINGS, HYPOTHESES = 4_000, 2_000
READINGS_A_SECOND = 20_000
HYPOTHESES_A_SECOND = 20_000

# suite, milliseconds that an item may take
SOLVED = (("4nodes", 2), ("7nodes", 2), ("4nodes_hidden_n2", 20), ("4nodes_quad_hard", 30))
COUNTED = (("5nodes", 5), ("7nodes", 100))

Work = tuple[Callable[[], object], int]  # what is timed, and how many items it does


def rows(options: Options) -> Iterator[Row]:
    yield from _rate(options, "episode, 7 nodes", "reading", READINGS_A_SECOND, _readings(_scale(READINGS, options)))
    scoring = _scores(_scale(HYPOTHESES, options))
    yield from _rate(options, "hypotheses, 7 nodes", "hypothesis", HYPOTHESES_A_SECOND, scoring)
    for suite, milliseconds in SOLVED:
        items = _items(suite, _scale(ITEMS, options))
        yield from _rate(options, f"exact, {suite}", "item", 1_000 / milliseconds, _solving(items))
    for suite, milliseconds in COUNTED:
        items = _items(suite, _scale(ITEMS, options))
        yield from _rate(options, f"count, {suite}", "space", 1_000 / milliseconds, _counting(items))


def _scale(number: int, options: Options) -> int:
    return max(1, round(number * options.scale))


def _items(suite: str, number: int) -> list[LabItem]:
    return list(generate_items(PLANS[suite], 1, number))


def _rate(options: Options, case: str, item: str, target: float, work: Work) -> Iterator[Row]:
    comparison = Comparison(TOPIC, case, item, [Rival("calibrant", *work)])
    for row in measure(comparison, options.discipline):
        reached = row.per_second is not None and row.per_second >= target
        yield replace(row, met=reached, note=f"at least {target:,.0f} a second")


def _readings(number: int) -> Work:
    (item,) = _items("7nodes", 1)
    names = item.task.properties
    allowance = item.task.allowance
    episodes = -(-number // allowance)
    actions = [{"set": names[i % len(names)], "value": (37 * i) % 100} for i in range(allowance)]

    def play_all() -> None:
        for _ in range(episodes):
            episode = LabEpisode(item)
            for action in actions:
                episode.act(action)

    return play_all, episodes * allowance


def _scores(number: int) -> Work:
    """Return the work of scoring one hypothesis repeatedly, from decoded JSON to all metrics."""
    (item,) = _items("7nodes", 1)
    scorer, raw = Scorer(item.sealed.mechanism), state_mechanism(item.sealed.mechanism)
    return lambda: [scorer.score(hypothesis(raw)) for _ in range(number)], number


def _solving(items: Sequence[LabItem]) -> Work:
    """Return the work of solving the items, with the settings that the solver makes and the replay of its answer."""
    return lambda: [solve(LabEpisode(item)) for item in items], len(items)


def _counting(items: Sequence[LabItem]) -> Work:
    """Return the work of counting the mechanisms before any setting and with any bases: their largest number."""
    return lambda: [weighted_dags(evidence_of(item.task), bounded=False).count for item in items], len(items)


# --- CausaLab: the space of weighted graphs before any setting, and an exact episode, against the number of nodes -----
NODES = (3, 4, 5, 6, 7, 8, 9)


def sweeps() -> tuple[Sweep, ...]:
    curves = [Curve("graphs counted", NODES, _count), Curve("exact episode", NODES, _solve)]
    return (Sweep("causalab", "linear mechanisms", "nodes", curves),)


def _item(nodes: int, seed: int) -> LabItem:
    return next(islice(generate_items(replace_fields(PLANS["5nodes"], nodes=nodes), seed, 1), 1))


def _count(nodes: int, seed: int) -> Ask:
    item = _item(nodes, seed)

    def ask() -> str | None:
        try:
            assert weighted_dags(evidence_of(item.task), bounded=False).count > 0  # the latent mechanism is one
        except BudgetSpent as error:
            return str(error)
        return None

    return ask


def _solve(nodes: int, seed: int) -> Ask:
    item = _item(nodes, seed)

    def ask() -> str | None:
        outcome = solve(LabEpisode(item))
        return outcome.reached if isinstance(outcome, OutOfBudget) else None

    return ask
