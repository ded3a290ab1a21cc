"""Rewards of replies, and the reasons why an answer is wrong.

pass@k: M. Chen et al., Evaluating large language models trained on code, 2021, section 2.1.

Reasons of nodes: `do ignored`: an intervened node does not have its set value. `impossible`: no noise value gives the
node's value from the values of its parents in the answer, an error of propagation. `wrong noise`: some noise value
does, but none that the evidence allows, an error of abduction. All nodes are `ok` if and only if the answer is right,
provided that the set of allowed noise is a product: without evidence, with full evidence, or with one unknown noise
variable.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from calibrant.dsl.causim.model import Model, ModelError, Node, Symbol, assignment_text, is_value, loose_symbol, run
from calibrant.dsl.causim.question import Answer, Question
from calibrant.dsl.errors import short_repr
from calibrant.dsl.json_objects import json_objects, last_object, without_think_pairs
from calibrant.dsl.lenient_json import Shape, Shaped, StatedLines

# --- Rewards: the last JSON object of a reply is right if and only if it is in the answer set -------------------------
Failure: TypeAlias = Literal["no_object", "wrong_keys"]
MAX_WRAPPINGS: Final = 4  # levels of nesting that are searched for a misplaced answer
_KINDS: Final = {
    "list": "a list",
    "dict": "an object",
    "float": "NaN or an infinity",
    "int": "an integer with too many digits",
}


@dataclass(frozen=True)
class Extraction:
    """The answer of a reply, or why it has none."""

    answer: Answer | None
    failure: Failure | None


def answer_of(stated_object: Mapping[str, Any], required_keys: Sequence[str]) -> Answer | None:
    """Return an object as an answer if it has exactly the required keys, else None.

    Case of keys is ignored if the key is still unambiguous; two keys that differ only in case are no answer.
    """
    by_lower: dict[str, list[str]] = {}
    for key in required_keys:
        by_lower.setdefault(key.lower(), []).append(key)
    required, answer = set(required_keys), Answer()
    for name, value in stated_object.items():
        alike = [name] if name in required else by_lower.get(name.lower(), [])
        if len(alike) != 1 or alike[0] in answer:
            return None
        answer[alike[0]] = loose_symbol(value)
    return answer if len(answer) == len(required) else None


def answer_shape(required_keys: Sequence[str]) -> Shape:
    """Return the shape of an answer with these keys; case is ignored if the key is still unambiguous."""
    by_lower: dict[str, list[str]] = {}
    for key in required_keys:
        by_lower.setdefault(key.lower(), []).append(key)

    def match(stated: Mapping[str, Any]) -> Shaped | None:
        answer: dict[str, Any] = {}
        repairs = set()
        for name, value in stated.items():
            alike = [name] if name in required_keys else by_lower.get(str(name).lower(), [])
            if len(alike) != 1:
                repairs.add("extra_keys")
                continue
            if alike[0] in answer:
                return None
            if alike[0] != name:
                repairs.add("key_spelling")
            answer[alike[0]] = value
        return Shaped(answer, frozenset(repairs)) if answer and len(answer) == len(required_keys) else None

    def read_lines(lines: StatedLines) -> dict[str, Any] | None:
        stated = lines.values({key: key for key in required_keys}, exactly=True)
        return stated if stated and len(stated) == len(required_keys) else None

    return Shape(match, read_lines)


def odd_value_message(answer: Answer) -> str:
    """Return a message about a key whose value is invalid; empty if all values are valid."""
    for name, symbol in answer.items():
        if not is_value(symbol):
            # the placeholder of `loose_symbol` is an object with one member, the name of the Python type
            kind = next(iter(json.loads(symbol).values()))
            return (
                f"{short_repr(name)} is given {_KINDS.get(kind, kind)}, which no variable can be; "
                'a value is a string, a finite number, true, false, null, or a list behind the tag "tuple"'
            )
    return ""


def misplaced_answer_message(response: str | Mapping[str, Any], required_keys: Sequence[str]) -> str:
    """Return where a response has an answer that is not its last object; empty if it has none."""
    if isinstance(response, str) and "\\" not in response:  # so that keys are not escaped
        lowered = response.lower()
        if not all(f'"{key.lower()}"' in lowered for key in required_keys):
            return ""
    candidates = (candidate for candidate in _all_objects(response) if len(candidate) == len(required_keys))
    if any(answer_of(candidate, required_keys) is not None for candidate in candidates):
        return (
            "an object with the required keys stands inside or before another one; "
            "the last object that is not inside another counts, with exactly the required keys"
        )
    return ""


def _all_objects(response: str | Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield every object in a text or value, also in strings, down to MAX_WRAPPINGS levels."""
    waiting: list[tuple[Any, int]] = [(response, 0)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, Mapping):
            yield value
        if depth == MAX_WRAPPINGS:
            continue
        if isinstance(value, str) and "{" in value:
            waiting.extend((match.value, depth + 1) for match in json_objects(value) if match.value)
        elif isinstance(value, Mapping):
            waiting.extend((part, depth + 1) for part in value.values())
        elif isinstance(value, list):
            waiting.extend((part, depth + 1) for part in value)


def extract(text: str, required_keys: Sequence[str]) -> Extraction:
    """Return the answer in the last object of a reply."""
    last = last_object(without_think_pairs(text))
    if last is None:
        return Extraction(None, "no_object")
    answer = answer_of(last, required_keys)
    return Extraction(answer, "wrong_keys" if answer is None else None)


def majority(answers: Iterable[Answer | None]) -> Answer | None:
    """Return the most frequent answer, the first on a tie; None if no reply has an answer."""
    valid_answers = [answer for answer in answers if answer is not None]
    counts = Counter(map(assignment_text, valid_answers))
    return max(valid_answers, key=lambda answer: counts[assignment_text(answer)], default=None)


# --- Reasons of wrong nodes, given the values of their parents in the answer ------------------------------------------
Reason: TypeAlias = Literal["ok", "do ignored", "impossible", "wrong noise"]


def allowed_noise(model: Model, question: Question) -> dict[str, tuple[Symbol, ...]]:
    """Return the values of each noise variable in the worlds that fit, all empty if none fits.

    A world fits if and only if each of its noise values is listed. Raises `ModelError` if the worlds that fit may not
    form such a product.
    """
    allowed = {}
    for node in model.nodes:
        fixed = question.fixed.get(node.noise)
        allowed[node.noise] = tuple(value for value in node.support if fixed is None or value == fixed)
    if question.has_full_evidence(model):
        for node in model.nodes:
            parent_values = tuple(question.observed[parent] for parent in node.parents)
            allowed[node.noise] = tuple(
                value
                for value in allowed[node.noise]
                if _gives(node, parent_values, value, question.observed[node.name])
            )
    elif question.observed:
        free = [node.noise for node in model.nodes if len(allowed[node.noise]) > 1]
        if len(free) > 1:
            raise ModelError("the noise that partial evidence allows is no product")
        if all(allowed.values()):
            open_noise = free[0] if free else model.noises[0]
            base = {noise: values[0] for noise, values in allowed.items()}
            allowed[open_noise] = tuple(
                value for value in allowed[open_noise] if _agrees(model, question, {**base, open_noise: value})
            )
    if not all(allowed.values()):
        return dict.fromkeys(allowed, ())
    return allowed


def _agrees(model: Model, question: Question, noise: dict[str, Symbol]) -> bool:
    factual = run(model, noise, {})
    return all(factual[name] == value for name, value in question.observed.items())


def _gives(node: Node, parents: tuple[Symbol, ...], noise: Symbol, value: Symbol) -> bool:
    try:
        return node.value(parents, noise) == value
    except ModelError:  # the mechanism may raise for values of an answer
        return False


def reasons(model: Model, question: Question, answer: Answer) -> dict[str, Reason]:
    """Return the reason of every node, in topological order; the answer has all nodes. Raises as `allowed_noise`."""
    allowed = allowed_noise(model, question)
    by_node: dict[str, Reason] = {}
    for node in model.nodes:
        value = answer[node.name]
        if node.name in question.do:
            by_node[node.name] = "ok" if value == question.do[node.name] else "do ignored"
            if not allowed[node.noise] and by_node[node.name] == "ok":
                by_node[node.name] = "wrong noise"  # no world fits, so nothing is right
            continue
        parents = tuple(answer[parent] for parent in node.parents)
        if not any(_gives(node, parents, noise, value) for noise in node.support):
            by_node[node.name] = "impossible"
        elif not any(_gives(node, parents, noise, value) for noise in allowed[node.noise]):
            by_node[node.name] = "wrong noise"
        else:
            by_node[node.name] = "ok"
    return by_node
