"""Episodes of extended blickets for programs and people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.bench.core.capabilities import Playable
from calibrant.bench.core.typed_moves import Act, Draft, Edit, Position, Reader, Verb, Words, WordsError, match_name
from calibrant.dsl.blickets.episode import BlicketEpisode, checked_steps, placed_after, trace_from_object
from calibrant.dsl.blickets.item import BlicketItem, Form, rule_from_json
from calibrant.dsl.blickets.prompt import facts, observation
from calibrant.dsl.blickets.replies import names_in_words, stated_action
from calibrant.dsl.episode import Action, ActionError, Episode, Step, sole_action
from calibrant.dsl.errors import short_repr

# --- Opening and submitting episodes ----------------------------------------------------------------------------------


class BlicketPlay(Playable[BlicketItem]):
    """Implements Playable (bench.core.capabilities)."""

    def open(self, item: BlicketItem) -> BlicketEpisode:
        return BlicketEpisode(item)

    def describe(self, episode: Episode[Any, Any], step: Step[Any]) -> str:
        assert isinstance(episode, BlicketEpisode)
        return observation(step, [episode.task.objects[index] for index in episode.placed], episode.left)

    def submission(self, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> Sequence[Action]:
        return ({"check": dict(answer)},)

    def parse_action(self, item: BlicketItem, text: str) -> Action:
        action = stated_action(text, item.task.objects)
        if action is not None:
            return action
        stated = sole_action(text)
        return stated_action(json.dumps(stated), item.task.objects) or stated


def parse_trace(item: BlicketItem, line: Mapping[str, Any]) -> Sequence[Step[Any]]:
    """Return the steps of a line in the benchmark's own trace format; `CalibrantError` names the invalid step."""
    return checked_steps(trace_from_object(line), item)


PLAY = BlicketPlay()


# --- Typed moves at the detector: place A, remove A, check conjunctive A E --------------------------------------------
FORMS = {
    **dict.fromkeys(("conjunctive", "all", "and"), Form.CONJUNCTIVE),
    **dict.fromkeys(("disjunctive", "any", "one", "or"), Form.DISJUNCTIVE),
}
SIGNS = {"+": "place", "-": "remove", "\N{MINUS SIGN}": "remove"}


class BlicketWords(Words[BlicketItem]):
    """Implements Words (bench.core.typed_moves). A draft has `rule` and `blickets`, if they are chosen."""

    kind = ("detector", "detectors")

    def opening(self, item: BlicketItem) -> str:
        return facts(item.task)

    def verbs(self, item: BlicketItem) -> Sequence[Verb]:
        first, second = item.task.objects[:2]
        return (
            Verb(f"place {first}", f"put {first} on the detector; +{first} is short for it"),
            Verb(f"remove {first}", f"take {first} off; -{first} is short for it"),
            Verb(f"check conjunctive {first} {second}", "submit: all of these are needed; it ends the item"),
            Verb(f"check disjunctive {first} {second}", "submit: one of these is enough; it ends the item"),
            Verb(f"answer conjunctive {first} {second}", "write an answer down; `submit` sends it"),
        )

    def readers(self, item: BlicketItem) -> Mapping[str, Reader]:
        return {
            "place": _read_place,
            "remove": _read_remove,
            "check": _read_check,
            "submit": _read_submit,
            "answer": _read_answer,
        }

    def read_form(self, item: BlicketItem, position: Position, line: str) -> Act | Edit | None:
        if line[:1] in SIGNS and line[1:].strip():
            return _read_move(item, position, SIGNS[line[0]], line[1:].strip())
        if line.partition(" ")[0].lower() in FORMS:
            return _read_check(item, position, line)
        if line.partition(" ")[0].lower() in self.readers(item):
            return None  # a verb; its reader reports the fault
        return _read_decorated(item, position, line)

    def read_json(self, item: BlicketItem, line: str) -> Act:

        try:
            return Act(PLAY.parse_action(item, line))
        except ActionError as error:
            raise WordsError(str(error)) from None

    def answer(self, item: BlicketItem, draft: Draft) -> dict[str, Any]:
        answer = {"rule": draft.get("rule"), "blickets": list(draft.get("blickets", ()))}
        if answer["rule"] is None or not answer["blickets"]:
            missing = "the rule" if answer["rule"] is None else "the blickets"
            example = f"check conjunctive {' '.join(item.task.objects[:2])}"
            page = "choose a rule first" if answer["rule"] is None else "tick the blickets first"
            raise WordsError(f"the answer lacks {missing}; type for example {example}", page=page)
        return answer

    def draft_lines(self, item: BlicketItem, draft: Draft) -> Sequence[str]:
        return [f"answer {draft['rule']} {' '.join(draft.get('blickets', ()))}"] if draft.get("rule") else []

    def check_draft(self, item: BlicketItem, draft: object) -> Draft:
        if not isinstance(draft, Mapping) or not draft.keys() <= {"rule", "blickets"}:
            raise WordsError('a draft has the keys "rule" and "blickets"')
        rule, names = draft.get("rule"), draft.get("blickets", [])
        if rule not in (None, *map(str, Form)) or not isinstance(names, list):
            raise WordsError("a draft states conjunctive or disjunctive, and a list of objects")
        if not all(isinstance(name, str) and name in item.task.objects for name in names):
            raise WordsError(f"a draft names objects among {', '.join(item.task.objects)}")
        return {"rule": rule, "blickets": [name for name in item.task.objects if name in names]}

    def view(self, item: BlicketItem) -> dict[str, Any]:
        task = item.task
        return {"view": "detector", "objects": list(task.objects), "allowance": task.budget, "graded": task.graded}


def _read_place(item: BlicketItem, position: Position, rest: str) -> Act:
    return _read_move(item, position, "place", rest)


def _read_remove(item: BlicketItem, position: Position, rest: str) -> Act:
    return _read_move(item, position, "remove", rest)


def _read_move(item: BlicketItem, position: Position, verb: str, rest: str) -> Act:
    if not rest:
        raise WordsError(f"`{verb}` needs an object; type for example {verb} {item.task.objects[0]}")
    name = match_name(rest, item.task.objects, "object")
    if position.num_left <= 0:
        raise WordsError("no moves are left; submit with `check conjunctive ...` or `check disjunctive ...`")
    is_present = item.task.objects.index(name) in placed_after(item.task, position.steps)
    if is_present and verb == "place":
        raise WordsError(f"{name} is already on the detector; `remove {name}` takes it off")
    if not is_present and verb == "remove":
        raise WordsError(f"{name} is not on the detector; `place {name}` puts it there")
    return Act({verb: name})


def _read_decorated(item: BlicketItem, position: Position, line: str) -> Act | None:
    """Return the action of a line in the form of replies, such as `**ACTION:** place A`; None without one."""
    try:
        action = stated_action(line, item.task.objects)
    except ActionError:
        return None
    match dict(action or {}):
        case {"place": str(name)}:
            return _read_move(item, position, "place", name)
        case {"remove": str(name)}:
            return _read_move(item, position, "remove", name)
        case {"check": {"rule": str(rule), "blickets": [*names]}} if all(isinstance(name, str) for name in names):
            return _read_check(item, position, f"{rule} {', '.join(names)}")
    return None


def _read_check(item: BlicketItem, position: Position, rest: str) -> Act:
    return Act({"check": _parse_rule(item, rest)})


def _read_answer(item: BlicketItem, position: Position, rest: str) -> Edit:
    return Edit(_parse_rule(item, rest))


def _read_submit(item: BlicketItem, position: Position, rest: str) -> Act:
    return Act({"check": _parse_rule(item, rest) if rest else WORDS.answer(item, position.draft)})


def _parse_rule(item: BlicketItem, text: str) -> dict[str, Any]:
    word, _, names = text.partition(" ")
    objects = item.task.objects
    example = f"check conjunctive {' '.join(objects[:2])}"
    form = FORMS.get(word.strip(":,").lower())
    if form is None:
        raise WordsError(
            f"expected conjunctive (all are needed) or disjunctive (one is enough), found {short_repr(word)}; "
            f"type for example {example}"
        )
    if not names.strip():
        raise WordsError(f"no blickets are named; type for example {example}")
    chosen = [match_name(name, objects, "object") for name in names_in_words(names, objects)]
    rule = {"rule": str(form), "blickets": chosen}
    try:
        rule_from_json(rule, objects)
    except ActionError as error:
        raise WordsError(f"{error}; type for example {example}") from None
    return rule


WORDS = BlicketWords()
