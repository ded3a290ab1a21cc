"""Reader of the public blicket text game's results (github.com/mandanasmi/blicket-text-game, BSD-3-Clause).

A line of its results.jsonl with `metric_type` "trial" tells in prose what an explorer saw, and how many yes/no
questions about the objects somebody then answered rightly. Both spellings of its configurations are read. Ids, paths
and times are left behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.dsl.blickets.item import (
    MAX_OBJECTS,
    MIN_OBJECTS,
    BlicketItem,
    Condition,
    Form,
    Mechanism,
    Rule,
    Sealed,
    Task,
    set_of,
)
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.parse_limits import TooLargeError, load_json

_LIGHT = re.compile(r"The light on the machine is (now on|currently off)")
_PLACE = re.compile(r"(?:^|[:,] )([^:,]+?) is (on top of the machine|on the floor)(?=[,.])")
_PUT = re.compile(r"You put (.+?) on the machine\.")
_TOOK = re.compile(r"You took (.+?) off of the machine\.")
_COMMANDS = {
    "place": re.compile(r"put (.+) on (?:the )?machine"),
    "remove": re.compile(r"take (.+) off (?:of )?(?:the )?machine"),
}


@dataclass(frozen=True, slots=True)
class TextRun:
    """One question run.

    objects: their names
    rule: the truth
    steps: the first reading ({"start": [...]}), then every command; refused commands have no reading
    right: whether all questions were answered rightly
    explorer, answered_by: who explored, who answered; empty if the line does not say
    """

    objects: tuple[str, ...]
    rule: Rule
    steps: tuple[Step[str], ...]
    right: bool
    explorer: str
    answered_by: str

    @property
    def setting(self) -> str:
        """The group that such runs are counted in."""
        return f"{len(self.objects)} objects, {self.rule.form}"

    def item(self, name: str) -> BlicketItem:
        """Return the item that was played: the rule, as many moves as were made, and these objects at the start."""
        start = tuple(self.objects.index(present) for present in self.steps[0].action["start"])
        task = Task(self.objects, sum(step.cost for step in self.steps))
        sealed = Sealed((Mechanism(self.rule),), start_on=start)
        stratum = f"{len(self.objects)} objects"
        return BlicketItem(name, Condition(self.rule.form), task, sealed, {"stratum": stratum})

    def readings(self) -> Iterator[tuple[tuple[int, ...], bool]]:
        """Yield the readings: what was on the machine, first placed first (object numbers); was it active."""
        placed: list[int] = []
        for step in self.steps:
            ((verb, operand),) = step.action.items()
            if step.refused:
                continue
            if verb == "start":
                placed = [self.objects.index(name) for name in operand]
            elif verb == "place":
                placed.append(self.objects.index(operand))
            else:
                placed.remove(self.objects.index(operand))
            yield tuple(placed), step.reading == ACTIVE


def text_runs(lines: Iterable[str], file: str = "") -> Iterator[TextRun]:
    """Yield the trials among the lines of a results file.

    `PoolError` names line and field of one that cannot be read.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            raw = _object(line)
            if raw.get("metric_type") == "trial":
                yield text_run(raw)
        except PoolError as error:
            raise error.with_location(file=file, instance=f"line {number}") from None


def _object(line: str) -> dict[str, Any]:
    try:
        raw = load_json(line)
    except TooLargeError as error:
        raise PoolError(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise PoolError(f"no JSON object: {short_repr(str(error))}") from None
    if not isinstance(raw, dict):
        raise PoolError(f"expected a JSON object, found {short_repr(raw)}")
    return raw


def text_run(raw: Mapping[str, Any]) -> TextRun:
    """One trial; `PoolError` names the field of what cannot be read."""
    objects = _objects(raw.get("obj_name_list"))
    explored = _mapping(raw, "expl_cfg", "expl_traj_config")
    settings = _mapping(explored, "env_kwargs")
    if settings.get("transition_noise", 0) != 0:
        raise PoolError("readings of a noisy machine are not read", field="transition_noise")
    return TextRun(
        objects,
        Rule(_form(settings.get("rule")), _blickets(raw.get("blicket_indices"), len(objects))),
        tuple(_steps(raw.get("history_obs"), objects)),
        _all_right(raw),
        _explorer(explored.get("agent")),
        str(_mapping(raw, "qa_cfg", "qa_config").get("model", "")),
    )


def _objects(names: object) -> tuple[str, ...]:
    are_names = isinstance(names, list) and all(isinstance(name, str) and name.strip() for name in names)
    if not isinstance(names, list) or not are_names or len(set(names)) != len(names):
        raise PoolError(f"expected distinct names, found {short_repr(names)}", field="obj_name_list")
    if not MIN_OBJECTS <= len(names) <= MAX_OBJECTS:
        raise PoolError(f"{len(names)} objects; {MIN_OBJECTS} to {MAX_OBJECTS} are read", field="obj_name_list")
    return tuple(names)


def _mapping(raw: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    for key in keys:
        if isinstance(raw.get(key), Mapping):
            return raw[key]  # type: ignore[no-any-return]
    raise PoolError("missing, or not an object", field=" or ".join(keys))


def _form(named: object) -> Form:
    if named not in list(Form):
        raise PoolError(f"{short_repr(named)}; conjunctive or disjunctive was expected", field="env_kwargs.rule")
    return Form(str(named))


def _blickets(indices: object, n: int) -> int:
    if not isinstance(indices, list) or not indices or any(type(i) is not int or not 0 <= i < n for i in indices):
        raise PoolError(f"expected numbers of objects, found {short_repr(indices)}", field="blicket_indices")
    return set_of(indices)


def _all_right(raw: Mapping[str, Any]) -> bool:
    num_questions, num_correct = raw.get("num_questions"), raw.get("num_correct")
    if (
        type(num_questions) is not int
        or type(num_correct) is not int
        or not 0 <= num_correct <= num_questions
        or not num_questions
    ):
        raise PoolError(
            f"{short_repr(num_correct)} of {short_repr(num_questions)} questions right", field="num_correct"
        )
    return num_questions == num_correct


def _explorer(agent: object) -> str:
    if not isinstance(agent, Mapping):
        return ""
    kind = str(agent.get("_target_", "")).rpartition(".")[2]
    strategy = agent.get("explore_strategy")
    return f"{kind} ({strategy})" if strategy else kind


def _steps(history: object, objects: tuple[str, ...]) -> Iterator[Step[str]]:
    if not isinstance(history, str):
        raise PoolError(f"expected a text, found {short_repr(history)}", field="history_obs")
    first, *moves = re.split(r"^> ?", history, flags=re.MULTILINE)
    places = {name.strip(): place for name, place in _PLACE.findall(first)}
    if places.keys() != set(objects):
        raise PoolError("the first paragraph does not say where each object is", field="history_obs")
    on = [name for name in objects if places[name] == "on top of the machine"]
    yield Step({"start": list(on)}, _reading(first, "before the first move"), "", 0)
    for number, move in enumerate(moves, 1):
        yield _step(move, on, objects, f"move {number}")


def _step(move: str, on: list[str], objects: tuple[str, ...], where: str) -> Step[str]:
    """One command and its effect; `on` is changed as the effect says."""
    command, _, effect = move.partition("\n")
    for verb, done in (("place", _PUT), ("remove", _TOOK)):
        match = done.match(effect)
        if match is None:
            continue
        name = match[1]
        if name not in objects or (name in on) == (verb == "place"):
            raise PoolError(f"{where} ({short_repr(command)}) cannot have had its effect", field="history_obs")
        (on.append if verb == "place" else on.remove)(name)
        return Step({verb: name}, _reading(effect, where), "", 1)
    refusal = _LIGHT.split(effect)[0].strip().rstrip(".")
    return Step(_parse_command(command), None, short_repr(refusal) if refusal else "refused", 1)


def _parse_command(command: str) -> dict[str, str]:
    for verb, form in _COMMANDS.items():
        match = form.fullmatch(command.strip())
        if match is not None:
            return {verb: match[1]}
    return {"unreadable": short_repr(command)}


def _reading(text: str, where: str) -> str:
    light = _LIGHT.search(text)
    if light is None:
        raise PoolError(f"the light is not told {where}", field="history_obs")
    return ACTIVE if light[1] == "now on" else INACTIVE
