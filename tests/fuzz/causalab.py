"""Replies, hypotheses, formulas, actions, configs and items of laboratories: a verdict or one line for each."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from calibrant.dsl.causalab.configs import config, item_of_config
from calibrant.dsl.causalab.episode import LabEpisode, run_score
from calibrant.dsl.causalab.generation import PLANS, generate_items
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY, Mechanism, hypothesis, state_mechanism
from calibrant.dsl.causalab.records import LabRecord, item_of_record, record_of_item
from calibrant.dsl.causalab.replies import answer_of, controller_json, parse_object
from calibrant.dsl.causalab.score import Scorer
from calibrant.dsl.episode import replay_transcript
from calibrant.dsl.errors import MAX_MESSAGE_CHARS, CalibrantError
from calibrant.dsl.records import decode_line
from tests.fuzz.corruption import CHARACTER_DAMAGE, JUNK, damaged
from tests.oracles.causalab import formula_score, visualiser_score
from tests.oracles.independent import require

PIECES = (
    "```json", "```", "<think>", "</think>", "{", "}", "[", "]", '"edges"', '"from"', '"to"', '"coefficients"', ":",
    ",", '"c_ph"', '"freq"', "NaN", "1e999", "-0.0", "null", "true", "2", '"', "\\", "\n", " ", "\0", "\ud800", "é",
    "{" * 700, "9" * 5_000,
)  # fmt: skip
SUMMANDS = (
    "density",
    "ph",
    "2",
    "0.5",
    "1e308",
    "**",
    "*",
    "/",
    "+",
    "-",
    "(",
    ")",
    "=",
    "^",
    " ",
    "x.y",
    "[0]",
    "9" * 400,
)
NUM_ACTIONS = 6


def case(rng: random.Random) -> str:
    """One input of a kind drawn by the generator; the outcome tells the kind and what became of it."""
    kind: Callable[[random.Random], str] = rng.choices(
        [_reply, _hypothesis, _formula, _actions, _config, _item], weights=[4, 4, 3, 3, 2, 1]
    )[0]
    return kind(rng)


@cache
def items() -> tuple[LabItem, ...]:
    return tuple(item for plan in PLANS.values() for item in generate_items(plan, 1, 2))


@cache
def _scorer(number: int) -> Scorer:
    return Scorer(items()[number].sealed.mechanism)


# --- replies ----------------------------------------------------------------------------------------------------------


def _reply(rng: random.Random) -> str:
    number = rng.randrange(len(items()))
    text = json.dumps(state_mechanism(items()[number].sealed.mechanism)) if rng.random() < 0.5 else ""
    text = "".join(rng.choices(PIECES, k=rng.randrange(4))) + text + "".join(rng.choices(PIECES, k=rng.randrange(4)))
    text = rng.choice(CHARACTER_DAMAGE)(rng, text) if rng.random() < 0.5 else text
    spelled = controller_json(text)
    require(spelled is None or isinstance(spelled, str), "no text")
    found = parse_object(text)
    _judged(number, found)
    try:
        answer = answer_of(text)
        require(bool(answer) and answer.keys() <= {"frequency", "hypothesis"}, "an answer of another shape")
    except CalibrantError as error:
        require(0 < len(str(error)) <= MAX_MESSAGE_CHARS and "\n" not in str(error), "a refusal that is no line")
    return "reply without an object" if found is None else "reply read"


def _hypothesis(rng: random.Random) -> str:
    number = rng.randrange(len(items()))
    raw: Any = state_mechanism(items()[number].sealed.mechanism)
    raw = rng.choice(JUNK) if rng.random() < 0.1 else damaged(rng, raw)
    _judged(number, raw)
    return "hypothesis scored"


def _judged(number: int, raw: Any) -> None:
    said = hypothesis(raw)
    score = _scorer(number).score(said)
    truth = items()[number].sealed.mechanism
    hits, missing = len(said.edges & truth.edges), len(truth.edges - said.edges)
    require(abs(score.all_edge.recall - hits / len(truth.edges)) < 1e-12, "a recall that is not that of the edges")
    require(score.distance.missing + score.distance.reversed == missing, "missing edges that do not add up")
    flat = score.flat()
    require(all(0 <= value <= 1 for name, value in flat.items() if name != "shd"), "a share outside 0 to 1")
    if isinstance(raw, dict):
        visualiser_score(truth, raw)


def _formula(rng: random.Random) -> str:
    item = rng.choice(items())
    named = rng.choice(JUNK) if rng.random() < 0.3 else list(item.task.properties[:2])
    text = rng.choice(JUNK) if rng.random() < 0.05 else "".join(rng.choices(SUMMANDS, k=rng.randrange(9)))
    score = formula_score(item.sealed.mechanism, named, text, {"density": 2.0, "ph": -3.0}, item.sealed.target)
    require((score.frequency is None) == (score.hit is None), "a hit without a frequency")
    require(score.parsed or bool(score.error), "a formula that is refused without a reason")
    return "formula computed" if score.frequency is not None else "formula refused"


# --- episodes ---------------------------------------------------------------------------------------------------------


def _actions(rng: random.Random) -> str:
    item = rng.choice(items())
    episode = LabEpisode(item)
    for _ in range(NUM_ACTIONS):
        before = episode.left
        step = episode.act(_action(rng, item))
        require(_is_line(step.refused), "a refusal of more than a line")
        require(
            not step.refused or (step.cost == 0 and step.reading is None), "a refusal that costs or shows something"
        )
        require(episode.left <= before, "an allowance that grows")
        json.dumps(step.reading, allow_nan=False)
    replay_transcript(LabEpisode(item), episode.steps)
    score = run_score(item, episode.steps)
    require(score.settings == sum(step.cost for step in episode.steps), "settings that do not add up")
    return "actions submitted" if score.submitted else "actions open"


def _action(rng: random.Random, item: LabItem) -> Any:
    name, value = rng.choice([*item.task.properties, FREQUENCY, "x"]), rng.choice([3, 77.777, -1e12, 1e200, *JUNK])
    match rng.randrange(6):
        case 0:
            return rng.choice(JUNK)
        case 1:
            return {"reactor": value}
        case 2:
            return {"submit": rng.choice([{}, {"hypothesis": rng.choice(JUNK)}, rng.choice(JUNK)])}
        case _:
            action: dict[str, Any] = {"set": name, "value": value, "hypothesis": rng.choice(JUNK)}
            return damaged(rng, action) if rng.random() < 0.3 else action


# --- lines of files ---------------------------------------------------------------------------------------------------


def config_text(mechanism: Mechanism) -> str:
    """Return a mechanism as a released config spells it."""
    params: dict[str, float] = {}
    nodes: dict[str, Any] = {}
    for node, equation in mechanism.equations.items():
        summands = [f"base_{node}"]
        params[summands[0]] = equation.base or 20.0
        for term in equation.terms:
            parameter = f"coeff{'2' if term.power == 2 else ''}_{term.parent}_{node}"
            params[parameter] = term.weight
            summands.append(f"{parameter} * " + (f"({term.parent} ^ 2)" if term.power == 2 else term.parent))
        nodes[node] = {"is_controllable": node != FREQUENCY, "computation": " + ".join(summands)}
    edges = [{"from": parent, "to": child} for parent, child in sorted(mechanism.edges)]
    return json.dumps({"graph_id": "made", "nodes": nodes, "edges": edges, "params": params, "budget": 12})


def _config(rng: random.Random) -> str:
    def read(text: str) -> None:
        made = config(text, "fuzz", 0)
        require(made.mechanism.edges == config(config_text(made.mechanism), "again", 0).mechanism.edges, "other edges")
        item_of_config(made, 1)

    return _line(rng, "config", config_text(rng.choice(items()).sealed.mechanism), read)


def _item(rng: random.Random) -> str:
    def read(text: str) -> None:
        item = item_of_record(decode_line(text, LabRecord))
        require(item_of_record(record_of_item(item)) == item, "an item that is not written back")

    return _line(rng, "item", json.dumps(msgspec.to_builtins(record_of_item(rng.choice(items())))), read)


def _line(rng: random.Random, kind: str, line: str, read: Callable[[str], object]) -> str:
    """Read a damaged line; it may be refused in a line."""
    of_text = rng.random() < 0.5
    try:
        read(rng.choice(CHARACTER_DAMAGE)(rng, line) if of_text else json.dumps(damaged(rng, json.loads(line))))
    except CalibrantError as error:
        require(_is_line(str(error)), f"a refusal of more than a line: {str(error)[:200]}")
        return f"{kind} refused"
    return f"{kind} read"


def _is_line(text: str) -> bool:
    return len(text) <= 2 * MAX_MESSAGE_CHARS and not any(c in text for c in "\n\r\0")
