"""The lines that solve an item, spelled from what is sealed, and the same answer as JSON actions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibrant.audits.replayscm.extended.generate import extended_strata, sample_extended
from calibrant.bench.core.registry import benchmark_of
from calibrant.dsl.causalab.mechanism import state_mechanism
from calibrant.dsl.causim.model import run
from calibrant.dsl.formulas.text import infix, render
from calibrant.dsl.logic.item import model_texts
from calibrant.dsl.replayscm.extensions.extension import ForecastWorld, Question
from calibrant.dsl.replayscm.item import Pool, Problem, TaskKind
from calibrant.dsl.replayscm.pools.files import write_pool
from calibrant.dsl.replayscm.world import World
from calibrant.solvers.outcome import Found
from calibrant.solvers.replayscm.alternative import AlternativeAnswer, find_alternative

DATA = Path(__file__).resolve().parents[3] / "bench"
POOLS = {
    "logic": DATA / "logic" / "data" / "sample_logic.jsonl",
    "blickets": DATA / "blickets" / "data" / "sample_blickets.jsonl",
    "causalab": DATA / "causalab" / "data" / "sample_causalab.jsonl",
    "causim": DATA / "causim" / "data" / "sample_causim.jsonl",
    "replayscm": DATA / "replayscm" / "data" / "sample_ordered.jsonl",
    "hidden roots": DATA / "replayscm" / "data" / "sample_hidden_roots.jsonl",
}
EPISODES = {
    "episode": "hs_n6_easy_calibration",
    "noisy episode": "hs_n6_easy_calibration_noise1in20",
    "hidden episode": "hs_n6_easy_calibration_hidden1",
}


OTHER_QUESTIONS = ("alternative", "forecast")


def pool_file(kind: str, folder: Path) -> Path:
    """Return the bundled pool of a kind; of EPISODES and OTHER_QUESTIONS a pool of one item is written there."""
    if kind in OTHER_QUESTIONS:
        if kind == "alternative":
            item = alternative_of(first_item(POOLS["replayscm"]))
        else:
            item = short_forecast_of(extended_item(EPISODES["noisy episode"], is_episode=False))
        write_pool(Pool(kind, (item,)), folder / f"{kind}.jsonl")
        return folder / f"{kind}.jsonl"
    return episode_pool(folder, EPISODES[kind]) if kind in EPISODES else POOLS[kind]


def episode_pool(folder: Path, stratum: str) -> Path:
    """Write a pool of one ReplaySCM episode."""
    path = folder / f"{stratum}.jsonl"
    write_pool(Pool("episodes", (extended_item(stratum, is_episode=True),)), path)
    return path


def extended_item(stratum: str, *, is_episode: bool) -> Problem:
    """Return the first item of an extended stratum."""
    (chosen,) = (one for one in extended_strata() if one.name == stratum)
    return sample_extended(chosen, 1, is_episode=is_episode)


def right_lines(item: Any) -> list[str]:
    """Return lines in words that submit a right answer after one move where there are moves."""
    return list(_LINES[item.benchmark](item))


def right_actions(item: Any) -> list[str]:
    """Return the same moves as lines of JSON."""
    return [json.dumps(action) for action in _ACTIONS[item.benchmark](item)]


def first_item(path: Path) -> Any:
    """Return the first item of a pool."""
    return benchmark_of(path).items.read_pool(path).items[0]


def detector_rule(item: Any) -> dict[str, Any]:
    """Return the rule in force at the start, as an answer states it."""
    rule: dict[str, Any] = item.sealed.mechanisms[0].rule.as_json(item.task.objects)
    return rule


def _detector_lines(item: Any) -> Sequence[str]:
    rule = detector_rule(item)
    first = item.task.objects[0]
    return f"+{first}", f"remove {first.lower()}", f"check {rule['rule']} {', '.join(rule['blickets'])}"


def _detector_actions(item: Any) -> Sequence[dict[str, Any]]:
    first = item.task.objects[0]
    return {"place": first}, {"remove": first}, {"check": detector_rule(item)}


def _laboratory_lines(item: Any) -> Sequence[str]:
    mechanism, name = item.sealed.mechanism, item.task.settable[0]
    stated = state_mechanism(mechanism)
    edges = [f"{edge['from']} -> {edge['to']}" for edge in stated["edges"]]
    weights = [f"weight {term.parent} {term.weight:g}" for term in mechanism.frequency.terms if term.power == 1]
    base = f"base {mechanism.frequency.base:g}"
    return f"set {name} to 20", f"reactor {item.sealed.target!r}", *edges, base, *weights, "submit"


def _laboratory_actions(item: Any) -> Sequence[dict[str, Any]]:
    stated = state_mechanism(item.sealed.mechanism)
    hypothesis = {key: stated[key] for key in ("edges", "freq_equation", "coefficients")}
    setting = {"set": item.task.settable[0], "value": 20}
    return setting, {"reactor": item.sealed.target}, {"submit": {"hypothesis": hypothesis}}


def program_answer(item: Any) -> dict[str, Any]:
    """Return the answer that the sealed world gives."""
    task = item.task
    world = dict(item.sealed.world)
    values = run(task.model, world, task.question.do)
    return {key: json.loads((values | world)[key]) for key in task.question.required_keys(task.model)}


def _program_lines(item: Any) -> Sequence[str]:
    return *(f"{key.lower()}={json.dumps(value)}" for key, value in program_answer(item).items()), "submit"


def _program_actions(item: Any) -> Sequence[dict[str, Any]]:
    return ({"submit": program_answer(item)},)


def _worlds_lines(item: Any) -> Sequence[str]:
    gold = item.sealed.gold
    extension = item.task.extension
    if item.task.kind is TaskKind.ALTERNATIVE:
        return *alternative_lines(solved_alternative(item)), "submit"
    if extension is not None and extension.question is Question.FORECAST:
        chances = forecast_chances(item)
        return *(f"chance {world}.{row} {name} = {bit}" for (world, row, name), bit in chances.items()), "submit"
    opening = []
    if extension is not None and extension.is_episode:
        opening = [f"do {extension.variables[0]} = 1"]
    if item.task.disclosure.roots is None:
        opening += [f"roots {', '.join(gold.roots)}"]
    return *opening, *(f"{v.lower()} = {infix(f)}" for v, f in gold.mechanisms.items()), "submit"


def _worlds_actions(item: Any) -> Sequence[dict[str, Any]]:
    gold, variables, extension = item.sealed.gold, item.task.variables, item.task.extension
    if item.task.kind is TaskKind.ALTERNATIVE:
        return ({"submit": alternative_action(item, solved_alternative(item))},)
    if extension is not None and extension.question is Question.FORECAST:
        return ({"submit": forecast_action(item)},)
    hidden = () if extension is None else tuple(extension.hidden)
    mechanisms = {v: render(gold.mechanisms[v]) for v in (*variables, *hidden) if v in gold.mechanisms}
    answer: dict[str, Any] = {"mechanisms": mechanisms}
    if item.task.disclosure.roots is None:
        answer = {"roots": [v for v in variables if v in gold.roots], **answer}
    world = [{"do": {extension.variables[0]: 1}}] if extension is not None and extension.is_episode else []
    return *world, {"submit": answer}


def _network_lines(item: Any) -> Sequence[str]:
    return *(text.replace("+", " and ").replace("!", "not ") for text in model_texts(item.sealed.gold)), "submit"


def _network_actions(item: Any) -> Sequence[dict[str, Any]]:
    return ({"submit": {"model": model_texts(item.sealed.gold)}},)


_LINES: dict[str, Any] = {
    "blickets": _detector_lines,
    "causalab": _laboratory_lines,
    "causim": _program_lines,
    "logic": _network_lines,
    "replayscm": _worlds_lines,
}
_ACTIONS: dict[str, Any] = {
    "blickets": _detector_actions,
    "causalab": _laboratory_actions,
    "causim": _program_actions,
    "logic": _network_actions,
    "replayscm": _worlds_actions,
}


# --- ReplaySCM's other questions as people answer them: alternatives with their experiment, and forecasts -------------
NUM_ROWS = 2  # of a forecast


def alternative_of(item: Problem) -> Problem:
    """Return the question for an SCM that differs from the gold of an item."""
    return replace(item, task=replace(item.task, kind=TaskKind.ALTERNATIVE, reference=item.sealed.gold))


def forecast_of(item: Problem, worlds: Sequence[World]) -> Problem:
    """Return the question for held-out worlds of a passive extended item."""
    extension = item.task.extension
    assert extension is not None
    asked_for = tuple(
        ForecastWorld(
            dict(world.intervention.constants),
            tuple("".join(str(row[root]) for root in extension.roots) for row in world.rows()),
        )
        for world in worlds
    )
    asked = replace(extension, question=Question.FORECAST, forecast_worlds=asked_for)
    heldout = replace(item.sealed.heldout, worlds=tuple(worlds))
    return replace(item, task=replace(item.task, extension=asked), sealed=replace(item.sealed, heldout=heldout))


def short_forecast_of(item: Problem) -> Problem:
    """Return the question for the first held-out world of a passive extended item, in its first rows."""
    world = item.sealed.heldout.worlds[0]
    columns = tuple(c & (1 << NUM_ROWS) - 1 for c in world.columns)
    return forecast_of(item, [replace(world, units=world.units[:NUM_ROWS], columns=columns)])


def solved_alternative(item: Problem) -> AlternativeAnswer:
    solved = find_alternative(item.task)
    assert isinstance(solved, Found)
    return solved.value


def alternative_lines(answer: AlternativeAnswer) -> Iterator[str]:
    experiment, witness = answer.separation.experiment, answer.witness
    yield from (f"{name} = {infix(formula)}" for name, formula in answer.model.mechanisms.items())
    yield f"experiment {experiment.variable} = {experiment.value}"
    yield "witness " + ", ".join(f"{name} = {bit}" for name, bit in witness["rootAssignment"].items())
    yield from (f"differs {d['variable']} {d['reference']} {d['alternative']}" for d in witness["differences"])


def alternative_action(item: Problem, answer: AlternativeAnswer) -> dict[str, Any]:
    mechanisms, variables = answer.model.mechanisms, item.task.variables
    differences = sorted(answer.witness["differences"], key=lambda d: variables.index(d["variable"]))
    return {
        "alternative": {"mechanisms": {name: render(mechanisms[name]) for name in mechanisms}},
        "experiment": answer.separation.experiment.to_dict(),
        "witness": {"rootAssignment": dict(answer.witness["rootAssignment"]), "differences": differences},
    }


def alternative_choices(item: Problem, answer: AlternativeAnswer) -> Iterator[tuple[str, int]]:
    """Yield lists of the page and the entries that state experiment, witness and differences."""
    experiment = answer.separation.experiment
    yield "experiment", 1 + 2 * item.task.variables.index(experiment.variable) + experiment.value
    yield from ((f"witness-{name}", 1 + bit) for name, bit in answer.witness["rootAssignment"].items())
    yield from ((f"differs-{d['variable']}", 1 + d["reference"]) for d in answer.witness["differences"])


def forecast_chances(item: Problem) -> Mapping[tuple[int, int, str], int]:
    """Return the true bits by world, row and variable, from 1: the best forecast."""
    extension = item.task.extension
    assert extension is not None
    return {
        (1, number, name): row[name]
        for number, row in enumerate(item.sealed.heldout.worlds[0].rows(), 1)
        for name in extension.variables
        if name not in extension.roots and name not in extension.forecast_worlds[0].constants
    }


def forecast_action(item: Problem) -> dict[str, Any]:
    rows: dict[int, dict[str, int]] = {}
    for (_, row, name), bit in forecast_chances(item).items():
        rows.setdefault(row, {})[name] = bit
    return {"forecast": [list(rows.values())]}
