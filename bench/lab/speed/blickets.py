"""Blickets: moves, episodes and audited traces a second on one core, and each exact learner against objects.

The static learner remembers its decisions within a process and is measured when it has: all items were played once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace as replace_fields
from functools import partial
from itertools import cycle, islice
from random import Random

from msgspec.structs import replace

from calibrant.audits.blickets.attribution import attribute_runs
from calibrant.baselines.blickets.rows import GRID
from calibrant.bench.blickets.agents import agent
from calibrant.bench.lab.blickets import SEED, all_played
from calibrant.bench.lab.limits.sweep import Ask, Curve, Sweep
from calibrant.bench.lab.speed.report import Comparison, Options, Rival, Row, measure
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.generation import SUITES, sample_items
from calibrant.dsl.blickets.item import BlicketItem, Condition, Mechanism, Rule, Sealed, Task, all_rules
from calibrant.dsl.blickets.reference import ACTIVE, run
from calibrant.dsl.blickets.replies import text_runs
from calibrant.dsl.episode import Action
from calibrant.dsl.errors import CalibrantError

# --- Moves, episodes and audited traces a second on one core. There is no rival but our own reference interpreter -----
TOPIC = "blickets"
EPISODES = 200
GRID_SUITES = ("conjunctive", "easy-3", "easy-5", "hard-3", "stochastic", "order")
GRID_EPISODES = 8  # episodes of each agent in each suite
TRACES, TRACE_MOVES = 400, 24
MOVES_A_SECOND = 200_000
TRACES_A_SECOND = 8_750 / 10
GRID_A_SECOND = 27 * 6 * 500 / (10 * 60 * 2)  # ten minutes on two cores

# learner, number of objects, episodes a second that are wanted
LEARNERS = (("static", 5, 10_000), ("static", 8, 1_000 / 3), ("switch-aware", 5, 50), ("universal", 5, 1_000 / 150))


Work = tuple[Callable[[], object], int]  # what is timed, and how many items it does


def rows(options: Options) -> Iterator[Row]:
    yield from _moves(options)
    for learner, num_objects, target in LEARNERS:
        number = EPISODES if learner != "universal" else EPISODES // 10
        work = _playing(learner, _static_items(num_objects, _scale(number, options)))
        yield from _rate(options, f"{learner} learner, {num_objects} objects", "episode", target, work)
    yield from _rate(options, "grid of 27 agents, 6 conditions", "episode", GRID_A_SECOND, _grid(options))
    yield from _rate(options, f"audit of traces, {TRACE_MOVES} moves", "trace", TRACES_A_SECOND, _audit(options))


def _scale(number: int, options: Options) -> int:
    return max(1, round(number * options.scale))


def _rate(options: Options, case: str, item: str, target: float, work: Work) -> Iterator[Row]:
    comparison = Comparison(TOPIC, case, item, [Rival("calibrant", *work)])
    yield from (_compare_target(row, target) for row in measure(comparison, options.discipline))


def _compare_target(row: Row, target: float) -> Row:
    reached = row.per_second is not None and row.per_second >= target
    return replace(row, met=reached, note=f"at least {target:,.0f} a second")


def _moves(options: Options) -> Iterator[Row]:
    """Yield random toggles, submitted nothing, under a switch."""
    item = next(sample_items(SUITES["hard-3"], SEED))
    actions = toggles(item.task.objects, item.task.budget, Random(1))

    def played_fast() -> None:
        episode = BlicketEpisode(item)
        for action in actions:
            episode.act(action)

    rivals = [
        Rival("episode", played_fast, len(actions)),
        Rival("reference interpreter", lambda: run(item, actions), len(actions)),
    ]
    fast, reference = measure(Comparison(TOPIC, "moves, 5 objects, a switch", "move", rivals), options.discipline)
    yield _compare_target(fast, MOVES_A_SECOND)
    yield reference


def toggles(objects: Sequence[str], number: int, rng: Random) -> list[Action]:
    """Return moves that are all possible."""
    on: set[str] = set()
    actions: list[Action] = []
    for _ in range(number):
        name = rng.choice(objects)
        actions.append({"remove" if name in on else "place": name})
        on ^= {name}
    return actions


def _static_items(num_objects: int, number: int) -> list[BlicketItem]:
    """Return detectors with one rule each, so that the rules, in random order, take turns."""
    task = Task(tuple("ABCDEFGH"[:num_objects]), 75)
    rules = list(all_rules(num_objects))
    Random(num_objects).shuffle(rules)
    return [
        BlicketItem(f"rule-{number}", Condition.CONJUNCTIVE, task, Sealed((Mechanism(rule),)))
        for number, rule in enumerate(islice(cycle(rules), number))
    ]


def _playing(name: str, items: Sequence[BlicketItem]) -> Work:
    """Return the work of an agent that plays the items and submits, without grading."""
    player, rng = agent(name), Random(0)

    def play_all() -> None:
        for item in items:
            player.play(BlicketEpisode(item), rng)

    return play_all, len(items)


def _grid(options: Options) -> Work:
    """Return the work of agents that play the grid's suites, with grades and whether behaviour DB4 fired."""
    episodes = _scale(GRID_EPISODES, options)
    agents = [member.name for member in GRID]
    return lambda: all_played(agents, GRID_SUITES, episodes), len(agents) * len(GRID_SUITES) * episodes


def _audit(options: Options) -> Work:
    """Return the work of an audit of text logs, from lines of text to counts."""
    rng = Random(8)
    lines = [text_log(rng.choice(all_rules(8)), TRACE_MOVES, rng) for _ in range(_scale(TRACES, options))]
    return lambda: attribute_runs(text_runs(lines)), len(lines)


def text_log(rule: Rule, num_moves: int, rng: Random) -> str:
    """Return a log of the public text game: eight objects, an empty machine, random moves that are possible."""
    names = [f"object {i}" for i in range(8)]
    task = Task(tuple(names), num_moves)
    episode = BlicketEpisode(BlicketItem("log", Condition.CONJUNCTIVE, task, Sealed((Mechanism(rule),))))
    places = ", ".join(f"{name} is on the floor" for name in names)
    lines = [f"You observe them: {places}. {_light(active=False)}"]
    for action in toggles(names, num_moves, rng):
        ((verb, name),) = action.items()
        request, outcome = ("put {} on the machine", "You put {} on the machine.")
        if verb == "remove":
            request, outcome = ("take {} off the machine", "You took {} off of the machine.")
        lines.append(
            f"> {request}\n{outcome} {_light(active=episode.act(action).reading == ACTIVE)}".format(name, name)
        )
    line = {
        "metric_type": "trial",
        "obj_name_list": names,
        "blicket_indices": [i for i in range(8) if rule.blickets >> i & 1],
        "num_questions": 8,
        "num_correct": rng.randrange(9),
        "expl_cfg": {"env_kwargs": {"rule": str(rule.form)}},
        "qa_cfg": {},
        "history_obs": "\n".join(lines),
    }
    return json.dumps(line)


def _light(*, active: bool) -> str:
    return f"The light on the machine is {'now on' if active else 'currently off'}."


# --- Blickets: an episode of each exact learner against the number of objects -----------------------------------------
# learner -> suite that it plays, numbers of objects
EXACT_LEARNERS: dict[str, tuple[str, Sequence[int]]] = {
    "static": ("conjunctive", (3, 4, 5, 6, 7, 8)),
    "order-aware": ("order", (3, 4, 5, 6, 7)),
    "noise-aware": ("stochastic", (3, 4, 5, 6, 7, 8)),
    "switch-aware": ("easy-3", (3, 4, 5, 6, 7, 8)),
    "universal": ("easy-3", (3, 4, 5, 6, 7)),
}


def sweeps() -> tuple[Sweep, ...]:
    curves = [Curve(name, xs, partial(_episode, name, suite)) for name, (suite, xs) in EXACT_LEARNERS.items()]
    return (Sweep("blickets", "an episode of an exact learner", "objects", curves),)


def _episode(learner: str, suite: str, num_objects: int, seed: int) -> Ask:
    item = next(islice(sample_items(replace_fields(SUITES[suite], n=num_objects), seed), 1))

    def ask() -> str | None:
        try:
            agent(learner).play(BlicketEpisode(item), Random(seed))
        except (CalibrantError, ValueError) as error:
            return str(error)
        return None

    return ask
