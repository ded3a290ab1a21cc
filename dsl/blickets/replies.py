"""Texts of players: replies to prompts, and results of the public text game."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    rule_from_json,
    set_of,
)
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE
from calibrant.dsl.episode import Action, ActionError, Step
from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.json_objects import decode, json_objects
from calibrant.dsl.lenient_json import Shape, Shaped, StatedLines, comparable, shaped_keys
from calibrant.dsl.parse_limits import TooLargeError, load_json

# --- Actions and answers as models write them: JSON in any case and wrapping, words, and the paper's labelled lines ---
# One reader for scores, play, text episodes and tools, so that `conjunctive A, E`, `check conjunctive A E` and
#
#     RULE_TYPE: conjunctive
#     BLICKETS: A, E
#
# mean the same everywhere. Texts are untrusted, so they are read in linear time. Source of the lines: arXiv 2604.20039,
# Panel 1 and A.1.
#
# An answer is an object with the keys `rule` and `blickets`, alone, anywhere in a text or inside another object, or the
# same in words. A response that states two different rules has no answer; none of them is chosen. Texts come without
# thoughts (dsl.answer_text).
MAX_LINE_CHARS = 1_000  # longer lines are not read as words
_MARK = re.compile(
    r"^[ \t*_#>`-]{0,16}(REASONING|ACTION|TRANSITION|RULE[_ -]?TYPE|BLICKETS)[ \t*_`]{0,16}:[*_`]{0,8}",
    re.MULTILINE | re.IGNORECASE,
)
_MOVE = re.compile(r"(place|remove)[ \t]{1,16}(\S.{0,199})", re.IGNORECASE)
_RULE = re.compile(r"(?:(?:check|submit)[ \t:]{1,16})?(conjunctive|disjunctive)[ \t:]{1,16}(.+)", re.IGNORECASE)
_LABEL = re.compile(r"(?:final[ \t]{1,4})?(?:action|answer)[ \t*_`]{0,8}:[ \t*_`]{0,8}", re.IGNORECASE)
_BETWEEN = re.compile(r"[,;&/|]+|\band\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_DECORATION = " \t\r\n*_`.;:!\"'()[]{}<>#-"
_KEYS = {"rule": "rule", "ruletype": "rule", "blickets": "blickets"}


def marked_parts(text: str) -> dict[str, list[str]]:
    """Return the text behind each mark (REASONING, ACTION, TRANSITION, RULETYPE, BLICKETS), up to the next one."""
    parts: dict[str, list[str]] = {name: [] for name in ("REASONING", "ACTION", "TRANSITION", "RULETYPE", "BLICKETS")}
    marks = list(_MARK.finditer(text))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    for mark, end in zip(marks, ends, strict=False):
        parts[re.sub(r"[_ -]", "", mark[1].upper())].append(text[mark.end() : end])
    return parts


def stated_action(text: str, objects: Sequence[str]) -> Action | None:
    """Return the action of a reply: behind `ACTION:`, in labelled lines, or the whole reply; None without one.

    `ActionError` if there are several, or if a label announces one that cannot be read.
    """
    parts = marked_parts(text)
    actions = list(marked_actions(parts, objects))
    # without marks only one line, JSON or a code block is an action as a whole
    if not any(parts.values()) and ("\n" not in text.strip() or text.strip()[:1] in ("{", "`")):
        actions = _actions(text, objects)
    if any(action != actions[0] for action in actions):
        raise ActionError("several actions; a reply carries one")
    return actions[0] if actions else None


def marked_actions(parts: Mapping[str, list[str]], objects: Sequence[str]) -> Iterator[Action]:
    """Yield the actions behind `ACTION:` and in labelled lines; `ActionError` for a label without an action.

    RULE_TYPE without BLICKETS, or the reverse, is an error only without an `ACTION:`: it may be part of the reasoning.
    """
    actions = [action for part in parts["ACTION"] for action in _actions(part, objects)]
    has_both_labels = bool(parts["RULETYPE"] and parts["BLICKETS"])
    yield from actions
    if has_both_labels or (not parts["ACTION"] and (parts["RULETYPE"] or parts["BLICKETS"])):
        yield {"check": labelled_rule(parts, objects)}
    elif parts["ACTION"] and not actions:
        raise ActionError(f"expected an action after `ACTION:`, found {short_repr(_first_line(parts['ACTION'][0]))}")


def labelled_rule(parts: Mapping[str, list[str]], objects: Sequence[str]) -> dict[str, Any]:
    """Return the rule of the lines `RULE_TYPE:` and `BLICKETS:`; `ActionError` unless each occurs once."""
    for name, label in (("RULETYPE", "RULE_TYPE"), ("BLICKETS", "BLICKETS")):
        if len(parts[name]) != 1:
            raise ActionError(f"{'no line' if not parts[name] else 'several lines'} `{label}:`")
    form = _first_line(parts["RULETYPE"][0]).strip(_DECORATION).lower().removesuffix(" rule")
    if form not in list(Form):
        raise ActionError(f"expected conjunctive or disjunctive after `RULE_TYPE:`, found {short_repr(form)}")
    return {"rule": form, "blickets": names_in_words(_first_line(parts["BLICKETS"][0]), objects)}


def _first_line(part: str) -> str:
    """Return the first line that is more than decoration, stripped; else the first that is not blank; else ""."""
    lines = (line.strip() for line in part.splitlines())
    shown_lines = [line for line in lines if line and not line.startswith("```")]
    return next((line for line in shown_lines if line.strip(_DECORATION)), shown_lines[0] if shown_lines else "")


def _actions(part: str, objects: Sequence[str]) -> list[Action]:
    """Return the outermost JSON objects of a part, or the action that its first line states in words."""
    actions: list[Action] = []
    end = 0
    for match in json_objects(part):
        if match.start >= end:
            actions.append(normalize_action(match.value, objects))
            end = match.end
    return actions or _parse_words(_first_line(part), objects)


def normalize_action(action: Mapping[str, Any], objects: Sequence[str]) -> Action:
    """Return a JSON action in the spelling of the item; a copy of the object if it is no action."""
    if is_rule(action):
        return {"check": normalize_rule(action, objects)}
    if action.keys() == {"check"} and isinstance(action["check"], Mapping) and is_rule(action["check"]):
        return {"check": normalize_rule(action["check"], objects)}
    if len(action) == 1:
        ((verb, name),) = action.items()
        if verb in ("place", "remove"):
            return {verb: _match_object(name, objects)}
    return dict(action)


def _parse_words(line: str, objects: Sequence[str]) -> list[Action]:
    text = _strip_label(line)
    if move := _MOVE.fullmatch(text):
        name = _match_object(move[2].strip(), objects)
        # an unknown word is passed on, so that the episode refuses it; a phrase is prose
        return [{move[1].lower(): name}] if name in objects or not _has_space(name) else []
    rule = parse_rule_words(line, objects)
    return [] if rule is None else [{"check": rule}]


def parse_rule_words(line: str, objects: Sequence[str]) -> dict[str, Any] | None:
    """Return the rule that a line states, such as `check conjunctive A, E`; None if it states none."""
    if len(line) > MAX_LINE_CHARS:
        return None
    match = _RULE.fullmatch(_strip_label(line))
    return None if match is None else {"rule": match[1].lower(), "blickets": names_in_words(match[2], objects)}


def _strip_label(line: str) -> str:
    """Strip decoration and a leading label from a line."""
    text = line[: MAX_LINE_CHARS + 1].strip(_DECORATION)
    label = _LABEL.match(text)
    return text[label.end() :].strip(_DECORATION) if label else text


def names_in_words(text: str, objects: Sequence[str]) -> list[str]:
    """Return the objects that a list such as `A, B and C` or `[A B]` names, as the item spells them.

    Without `objects`, every word is a name. An unknown name is returned unchanged, so that the rule is refused.
    """
    if not objects:
        return _WORD.findall(text[:MAX_LINE_CHARS])
    names: list[str] = []
    is_name = _match_object(text.strip(_DECORATION), objects) in objects  # a name may have separators in it
    for part in [text] if is_name else _BETWEEN.split(text[:MAX_LINE_CHARS]):
        exact_name = _match_object(part.strip(_DECORATION), objects)
        words = [exact_name] if exact_name in objects else [word.strip(_DECORATION) for word in part.split()]
        names += [_match_object(word, objects) for word in words if word]
    return names


def _match_object(name: Any, objects: Sequence[str]) -> Any:
    """Return the object of that name, case ignored if that is unambiguous; else the name unchanged."""
    if not isinstance(name, str) or name in objects:
        return name
    alike = [candidate for candidate in objects if candidate.casefold() == name.casefold()]
    return alike[0] if len(alike) == 1 else name


def _has_space(name: str) -> bool:
    return any(character.isspace() for character in name)


# --- answers ----------------------------------------------------------------------------------------------------------


def is_rule(value: Mapping[str, Any]) -> bool:
    """Return whether a JSON object has the keys rule and blickets once each, in any spelling; others do not matter."""
    return len(value) > 1 and sorted(name for key in value if (name := _rule_field(key))) == ["blickets", "rule"]


def _rule_field(key: object) -> str:
    """Return `rule` or `blickets` for a key in any spelling; empty for others."""
    return _KEYS.get(re.sub(r"[_ -]", "", key.lower()), "") if isinstance(key, str) and len(key) < 20 else ""


def normalize_rule(value: Mapping[str, Any], objects: Sequence[str]) -> dict[str, Any]:
    """Return {"rule": ..., "blickets": [...]} of an object that `is_rule`, in the spelling of the item."""
    parts = {name: part for key, part in value.items() if (name := _rule_field(key))}
    form, names = parts["rule"], parts["blickets"]
    if isinstance(form, str) and form.strip().lower() in list(Form):
        form = form.strip().lower()
    if isinstance(names, str):
        names = names_in_words(names, objects)
    elif isinstance(names, list | tuple):
        names = [_match_object(name, objects) for name in names]
    return {"rule": form, "blickets": names}


def stated_rules(response: str | Mapping[str, Any], objects: Sequence[str]) -> dict[Rule, dict[str, Any]]:
    """Return the different rules that a response states, each with its JSON; `ActionError` for an invalid one."""
    rules: dict[Rule, dict[str, Any]] = {}
    for stated in _all_stated(response, objects):
        rules.setdefault(rule_from_json(stated, objects), stated)
    return rules


def is_one_rule(response: str | Mapping[str, Any], objects: Sequence[str]) -> bool:
    """Return whether a response states exactly one rule, valid for the item or not."""
    try:
        stated = [(str(rule["rule"]), comparable(rule["blickets"])) for rule in _all_stated(response, objects)]
    except ActionError:
        return False
    return len(set(stated)) == 1


def _all_stated(response: str | Mapping[str, Any], objects: Sequence[str]) -> Iterable[dict[str, Any]]:
    waiting: list[Any] = [response]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            unwrapped = _whole_object(value)
            if unwrapped is None:
                yield from _stated_in_text(value, objects)
            else:
                waiting.append(unwrapped)
        elif isinstance(value, Mapping):
            if is_rule(value):
                yield normalize_rule(value, objects)
            else:
                waiting += [part for part in value.values() if isinstance(part, str | Mapping | list)]
        else:
            waiting += [part for part in value if isinstance(part, Mapping | list)]


def _whole_object(text: str) -> Mapping[str, Any] | None:
    """Return the JSON object that the whole text is; None if it is none."""
    stripped = text.strip()
    if not stripped.startswith("{"):
        return None
    try:
        value = decode(stripped)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _stated_in_text(text: str, objects: Sequence[str]) -> Iterator[dict[str, Any]]:
    for match in json_objects(text):
        if is_rule(match.value):
            yield normalize_rule(match.value, objects)
    parts = marked_parts(text)
    if parts["RULETYPE"] and parts["BLICKETS"]:
        yield labelled_rule(parts, objects)
    for line in text.splitlines():
        rule = parse_rule_words(line, objects)
        # with unknown names only an explicit check is a rule; else it may be prose
        if rule is not None and (set(rule["blickets"]) <= set(objects) or _strip_label(line)[:5].lower() == "check"):
            yield rule


# --- From a response to the answer that it gives: a rule and its objects ----------------------------------------------


class NoRuleError(ActionError):
    """A text states no rule, not even an invalid one."""


def answer_of(response: str | Mapping[str, Any], objects: Sequence[str]) -> dict[str, Any]:
    """Return {"rule": ..., "blickets": [names]} as the response states it; `ActionError` without exactly one rule."""
    rules = stated_rules(response, objects)
    if len(rules) > 1:
        examples = " and ".join(short_repr(rule.in_words(objects)) for rule in list(rules)[:2])
        raise ActionError(f"{len(rules)} different rules in the text: {examples}")
    if rules:
        return next(iter(rules.values()))
    if isinstance(response, str):
        raise NoRuleError(
            "no JSON object with the keys rule and blickets in the text, no lines `RULE_TYPE:` and `BLICKETS:`, and no"
            " line such as `conjunctive A, B`"
        )
    rule_from_json(response, objects)  # raises `ActionError` with the reason
    return dict(response)


def _shaped_rule(stated: Mapping[str, Any]) -> Shaped | None:
    shaped = shaped_keys(stated, _KEYS)
    return shaped if shaped is not None and _has_rule(shaped.answer) else None


def _has_rule(answer: Mapping[str, Any]) -> bool:
    return isinstance(answer.get("rule"), str) and isinstance(answer.get("blickets"), str | list)


def _rule_of_lines(lines: StatedLines) -> dict[str, Any] | None:
    answer = lines.values(_KEYS)
    return answer if answer is not None and _has_rule(answer) else None


# layouts of an answer for dsl.lenient_json: an object with keys in any spelling, or lines `key: value`
SHAPE = Shape(_shaped_rule, _rule_of_lines)


# --- Reader of the public blicket text game's results (github.com/mandanasmi/blicket-text-game, BSD-3-Clause) ---------
# A line of its results.jsonl with `metric_type` "trial" tells in prose what an explorer saw, and how many yes/no
# questions about the objects a model or person then answered rightly. Configurations have the keys of either version
# (`expl_cfg` or `expl_traj_config`, `qa_cfg` or `qa_config`). Ids, paths and times are not read.
_LIGHT = re.compile(r"The light on the machine is (now on|currently off)")
_LOCATION = re.compile(r"(?:^|[:,] )([^:,]+?) is (on top of the machine|on the floor)(?=[,.])")
_PUT = re.compile(r"You put (.+?) on the machine\.")
_TOOK = re.compile(r"You took (.+?) off of the machine\.")
_COMMANDS = {
    "place": re.compile(r"put (.+) on (?:the )?machine"),
    "remove": re.compile(r"take (.+) off (?:of )?(?:the )?machine"),
}


@dataclass(frozen=True, slots=True)
class TextRun:
    """One trial of the text game.

    objects: names of the objects; rule: the true rule
    steps: the first reading ({"start": [...]}), then every command; refused commands have no reading
    right: whether all questions were answered rightly
    explorer, answered_by: the agent that explored and the model that answered; empty if the line does not state it
    """

    objects: tuple[str, ...]
    rule: Rule
    steps: tuple[Step[str], ...]
    right: bool
    explorer: str
    answered_by: str

    @property
    def setting(self) -> str:
        """Group of the run in tables: number of objects and form of the rule."""
        return f"{len(self.objects)} objects, {self.rule.form}"

    def item(self, name: str) -> BlicketItem:
        """Return the item that was played; its budget is the number of moves made."""
        start = tuple(self.objects.index(present) for present in self.steps[0].action["start"])
        task = Task(self.objects, sum(step.cost for step in self.steps))
        sealed = Sealed((Mechanism(self.rule),), start_on=start)
        stratum = f"{len(self.objects)} objects"
        return BlicketItem(name, Condition(self.rule.form), task, sealed, {"stratum": stratum})

    def readings(self) -> Iterator[tuple[tuple[int, ...], bool]]:
        """Yield for each reading the objects on the machine (numbers, first placed first), and whether it is active."""
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
    for line_number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            raw = _json_object(line)
            if raw.get("metric_type") == "trial":
                yield text_run(raw)
        except PoolError as error:
            raise error.with_location(file=file, instance=f"line {line_number}") from None


def _json_object(line: str) -> dict[str, Any]:
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
    """Return the trial of a decoded line; `PoolError` names the invalid field."""
    objects = _object_names(raw.get("obj_name_list"))
    explored = _mapping(raw, "expl_cfg", "expl_traj_config")
    settings = _mapping(explored, "env_kwargs")
    if settings.get("transition_noise", 0) != 0:
        raise PoolError("noisy machines are not supported: must be 0", field="transition_noise")
    return TextRun(
        objects,
        Rule(_form(settings.get("rule")), _blickets(raw.get("blicket_indices"), len(objects))),
        tuple(_steps(raw.get("history_obs"), objects)),
        _all_right(raw),
        _explorer(explored.get("agent")),
        str(_mapping(raw, "qa_cfg", "qa_config").get("model", "")),
    )


def _object_names(names: object) -> tuple[str, ...]:
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
        raise PoolError(
            f"expected a list of object indices from 0 to {n - 1}, found {short_repr(indices)}", field="blicket_indices"
        )
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
    locations = {name.strip(): location for name, location in _LOCATION.findall(first)}
    if locations.keys() != set(objects):
        raise PoolError("the first paragraph does not say where each object is", field="history_obs")
    on = [name for name in objects if locations[name] == "on top of the machine"]
    yield Step({"start": list(on)}, _reading(first, "before the first move"), refused="", cost=0)
    for number, move in enumerate(moves, 1):
        yield _step(move, on, objects, f"move {number}")


def _step(move: str, on: list[str], objects: tuple[str, ...], where: str) -> Step[str]:
    """Return the step of one command; `on`, the objects on the machine, is updated by its effect."""
    command, _, effect = move.partition("\n")
    for verb, done in (("place", _PUT), ("remove", _TOOK)):
        match = done.match(effect)
        if match is None:
            continue
        name = match[1]
        if name not in objects or (name in on) == (verb == "place"):
            raise PoolError(f"{where} ({short_repr(command)}) cannot have had its effect", field="history_obs")
        if verb == "place":
            on.append(name)
        else:
            on.remove(name)
        return Step({verb: name}, _reading(effect, where), refused="", cost=1)
    refusal = _LIGHT.split(effect)[0].strip().rstrip(".")
    return Step(_parse_command(command), None, refused=short_repr(refusal) if refusal else "refused", cost=1)


def _parse_command(command: str) -> dict[str, str]:
    for verb, form in _COMMANDS.items():
        match = form.fullmatch(command.strip())
        if match is not None:
            return {verb: match[1]}
    return {"unreadable": short_repr(command)}


def _reading(text: str, where: str) -> str:
    light = _LIGHT.search(text)
    if light is None:
        raise PoolError(f"the text does not state whether the light is on {where}", field="history_obs")
    return ACTIVE if light[1] == "now on" else INACTIVE
