"""Replies of systems: JSON in a text, actions and notebooks in the paper's format, and the answer that is read.

JSON is found in a text as the released code finds it. The object is one of: an action of an episode, {"reactor": f} or
{"submit": {...}}, with a hypothesis; a reply in the paper's format; an answer as in records of runs; a hypothesis
alone; or an object around exactly one of these, such as {"answer": {...}}. A frequency that cannot be read does not
invalidate the hypothesis.

In the paper's format `memory`, `thought` and `past_data` are the system's notes, and `hypothesis` is its hypothesis.
`value` is a setting if `experiment` names a property, else the reactor's dial; `action` may take its place. Actions and
dialog options of the 2D world that surrounds the paper's laboratory are no actions of an episode.

An entry of `past_data` is compared with all readings of the run. It is `right` if it names all nodes and agrees with
one reading in each of them, `altered` if it agrees with one in more than half of its numbers, else `invented`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from calibrant.dsl.causalab.episode import HYPOTHESIS, VERBS, finite
from calibrant.dsl.causalab.mechanism import FILLERS, FREQUENCY, Values, as_number, node_name, stated_edges
from calibrant.dsl.episode import Action, ActionError
from calibrant.dsl.errors import short_repr
from calibrant.dsl.json_objects import decode, json_objects, without_think_pairs
from calibrant.dsl.lenient_json import Shape, Shaped, StatedLines, comparable, shaped_keys

# --- JSON in replies, found as the released code finds it: one way for actions, another for scored texts
FENCE = "```"


def controller_json(text: str) -> str | None:
    """Return the JSON text of a reply; None without one.

    Closed <think> blocks are dropped. The result is the content of the first ```json fence, closed or not and valid or
    not; else the whole text if it is JSON; else the last balanced object if it is JSON.
    """
    return _stated_json(without_think_pairs(text))


def _stated_json(text: str) -> str | None:
    """Return the JSON text of a reply that has no <think> blocks; None without one."""
    text = text.strip()
    opening = text.find(f"{FENCE}json")
    if opening >= 0:
        return text[opening + len(FENCE) + 4 :].partition(FENCE)[0].strip()
    if _is_json(text):
        return text
    balanced = _last_balanced(text)
    return balanced if balanced is not None and _is_json(balanced) else None


def parse_object(text: str) -> dict[str, Any] | None:
    """Return the scored object of a text; None without one.

    It is the whole text, else the part from the first { to the last }, else the last balanced object. A fence around
    the text is stripped. NaN is a number; of equal keys the last counts.
    """
    text = text.strip()
    if text.startswith(FENCE):
        text = text.strip("`").removeprefix("json").strip()
    for candidate in (text, text[text.find("{") : text.rfind("}") + 1] if "{" in text else ""):
        try:
            decoded = decode(candidate)
        except ValueError:
            continue
        if isinstance(decoded, dict):
            return decoded
    last, end = None, 0
    for match in json_objects(text):
        if match.start >= end:
            last, end = match.value, match.end
    return last


def _is_json(text: str) -> bool:
    try:
        decode(text)
    except ValueError:
        return False
    return True


def _last_balanced(text: str) -> str | None:
    """Return the last outermost {...} with balanced braces, None without one; braces in strings count as well."""
    opened: list[int] = []
    outermost: list[tuple[int, int]] = []
    for position, letter in enumerate(text):
        if letter == "{":
            opened.append(position)
        elif letter == "}" and opened:
            start = opened.pop()
            while outermost and outermost[-1][0] > start:
                outermost.pop()
            outermost.append((start, position + 1))
    return text[slice(*outermost[-1])] if outermost else None


# --- Replies in the paper's format (arXiv 2605.26029, A.4): one object for each step, with fields of a notebook -------
VALUE, EXPERIMENT, TARGET = "value", "experiment", "target_prop"
ACTION, DIALOG = "action", "chosen_dialog_option_int"
SUBMIT = "submit"
NOTES = frozenset({"memory", "thought", "past_data", EXPERIMENT})  # keys whose values hold no answer


def is_paper_reply(raw: Mapping[str, Any]) -> bool:
    """Return whether an object states an action in the paper's format, and not by a verb of an episode."""
    stated = raw.get(VALUE) is not None or raw.get(DIALOG) is not None or isinstance(raw.get(ACTION), str)
    return stated and VERBS.keys().isdisjoint(raw)


def paper_action(raw: Mapping[str, Any], properties: Sequence[str]) -> Action:
    """Return the action of a reply in the paper's format, with its hypothesis; `ActionError` if it has none."""
    stated = {HYPOTHESIS: raw[HYPOTHESIS]} if isinstance(raw.get(HYPOTHESIS), Mapping) else {}
    if submits(raw):
        return {SUBMIT: stated}
    if (why := outside_laboratory(raw)) is not None:
        raise ActionError(why)
    target = experiment_target(raw)
    if target is None:
        return {"reactor": raw[VALUE], **stated}
    return {"set": resolved_property(target, properties), "value": raw[VALUE], **stated}


def submits(raw: Mapping[str, Any]) -> bool:
    action = raw.get(ACTION)
    return isinstance(action, str) and action.strip().lower() == SUBMIT


def outside_laboratory(raw: Mapping[str, Any]) -> str | None:
    """Return why a reply is no action of the laboratory; None if it is one."""
    if raw.get(VALUE) is not None or submits(raw):
        return None
    for key in (ACTION, DIALOG):
        if raw.get(key) is not None:
            return (
                f"{key} {short_repr(raw[key])} belongs to the world around the laboratory, which is not simulated; "
                'give a value, or "action": "SUBMIT"'
            )
    return None


def experiment_target(raw: Mapping[str, Any]) -> object | None:
    """Return the property that an announced experiment sets, None without one; `ActionError` if it is no object."""
    experiment = raw.get(EXPERIMENT)
    if experiment is None:
        return None
    if not isinstance(experiment, Mapping):
        raise ActionError(f"{EXPERIMENT} is {short_repr(experiment)}, not an object")
    target: object = experiment.get(TARGET)
    return None if target is None or (isinstance(target, str) and not target.strip()) else target


def resolved_property(name: object, properties: Sequence[str]) -> object:
    """Return the only property equal to a name up to case, blanks, `_` and `-`; else the name unchanged."""
    if not isinstance(name, str) or name in properties:
        return name
    meant = [candidate for candidate in properties if _normalized_name(candidate) == _normalized_name(name)]
    return meant[0] if len(meant) == 1 else name


def _normalized_name(name: str) -> str:
    return "".join(name.translate(FILLERS).split()).lower()


# --- The answer in a response: a frequency, a hypothesis or both ------------------------------------------------------
FREQUENCY_KEYS = ("frequency", "reactor")
_OF_HYPOTHESIS = frozenset({"edges", "freq_equation", "coefficients", "weights"})
MAX_WRAPPINGS = 4  # objects nested around an answer


class ReadAnswer(NamedTuple):
    """Answer of a response, and its problem.

    answer: {"frequency": number, "hypothesis": object}, each as far as it is stated
    problem: why a part could not be read; empty if all were
    """

    answer: dict[str, Any]
    problem: str


def read_answer(response: str | Mapping[str, Any]) -> ReadAnswer:
    """Return the answer in a response; `ActionError` if it has neither a frequency nor a hypothesis."""
    raw = _read_object(response) if isinstance(response, str) else response
    inner = _unwrap(raw)
    statement = _read_statement(raw if inner is None else inner)
    if statement.answer:
        return statement
    keys = short_repr(", ".join(map(str, raw))) if raw else "none"
    raise ActionError(statement.problem or f"no frequency and no hypothesis in it; its keys are {keys}")


def answer_of(response: str | Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer alone; `ActionError` as in `read_answer`."""
    return read_answer(response).answer


def _read_statement(raw: Mapping[str, Any]) -> ReadAnswer:
    outer = dict(raw)
    if isinstance(raw.get("submit"), Mapping):
        outer |= outer.pop("submit")
    answer: dict[str, Any] = {}
    problems = []
    try:
        frequency = _frequency(outer)
        if frequency is not None:
            answer["frequency"] = frequency
    except ActionError as error:
        problems.append(str(error))
    if isinstance(outer.get(HYPOTHESIS), Mapping):
        answer[HYPOTHESIS] = dict(outer[HYPOTHESIS])
    elif outer.get(HYPOTHESIS) is not None:
        problems.append(f"hypothesis is {short_repr(outer[HYPOTHESIS])}, not an object")
    elif not _OF_HYPOTHESIS.isdisjoint(outer):
        answer[HYPOTHESIS] = {key: value for key, value in outer.items() if key in _OF_HYPOTHESIS}
    return ReadAnswer(answer, "; ".join(problems))


def _frequency(outer: Mapping[str, Any]) -> float | None:
    """Return the stated frequency, None without one; `ActionError` if it is invalid or two differ."""
    stated_values = [outer[key] for key in FREQUENCY_KEYS if outer.get(key) is not None]
    if is_paper_reply(outer):
        if (why := outside_laboratory(outer)) is not None and not stated_values:
            raise ActionError(why)
        if outer.get(VALUE) is not None:
            target = experiment_target(outer)
            if target is None:
                stated_values.append(outer[VALUE])
            elif not stated_values:
                raise ActionError(f"its value is a setting of {short_repr(target)}")
    frequencies = {finite(value) for value in stated_values}
    if len(frequencies) > 1:
        raise ActionError(f"two frequencies: {' and '.join(map(str, sorted(frequencies)))}")
    return next(iter(frequencies), None)


def _unwrap(raw: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the object with the answer, inside up to MAX_WRAPPINGS objects of which each holds one; None without."""
    for _ in range(MAX_WRAPPINGS):
        if _states_answer(raw):
            return raw
        inner = [value for key, value in raw.items() if isinstance(value, Mapping) and key not in NOTES]
        if len(inner) != 1:
            candidates = [value for value in inner if _states_answer(value)]
            return candidates[0] if len(candidates) == 1 else None
        (raw,) = inner
    return None


def _states_answer(raw: Mapping[str, Any]) -> bool:
    return any(_read_statement(raw))


def _read_object(text: str) -> dict[str, Any]:
    try:  # the usual case, a text that is one object, is decoded only once
        whole = decode(text.strip())
    except ValueError:
        whole = None
    if isinstance(whole, dict) and f"{FENCE}json" not in text:
        return whole
    json_text = _stated_json(text)
    if json_text is None:
        raise ActionError("no JSON in the text")
    parsed_object = parse_object(json_text)
    if parsed_object is None:
        raise ActionError(f"not a JSON object: {short_repr(json_text)}")
    return parsed_object


_SHAPE_KEYS = {plain: plain for plain in ("frequency", "reactor", "hypothesis", "edges", "coefficients", "weights")} | {
    "freqequation": "freq_equation",
    "submit": "submit",
}


def _shaped_answer(stated: Mapping[str, Any]) -> Shaped | None:
    """Return frequency and hypothesis of an object; a frequency that is no number, or stated twice, is left out."""
    shaped = shaped_keys(stated, _SHAPE_KEYS)
    if shaped is None:
        return None
    parts, repairs = dict(shaped.answer), shaped.repairs
    submitted = parts.pop("submit", None)
    if isinstance(submitted, Mapping):
        inner = shaped_keys(submitted, _SHAPE_KEYS)
        if inner is None:
            return None
        parts, repairs = parts | inner.answer, repairs | inner.repairs
    answer: dict[str, Any] = {}
    frequencies = [parts[key] for key in FREQUENCY_KEYS if parts.get(key) is not None]
    if frequencies and all(map(_is_finite, frequencies)) and len(set(map(comparable, frequencies))) == 1:
        answer["frequency"] = frequencies[0]
    if isinstance(parts.get(HYPOTHESIS), Mapping):
        answer[HYPOTHESIS] = dict(parts[HYPOTHESIS])
    elif isinstance(parts.get("edges"), list):
        answer[HYPOTHESIS] = {key: value for key, value in parts.items() if key in _OF_HYPOTHESIS}
    return Shaped(answer, repairs) if answer else None


def _is_finite(value: object) -> bool:
    return _number(value) is not None


def _frequency_of_lines(lines: StatedLines) -> dict[str, Any] | None:
    stated = lines.values(dict.fromkeys(FREQUENCY_KEYS, "frequency"))
    return stated if stated and _is_finite(stated["frequency"]) else None


SHAPE = Shape(_shaped_answer, _frequency_of_lines)


# --- Schema of a hypothesis (arXiv 2605.26029, A.5); a reply that violates it is returned to the system ---------------
MAX_RETURNS = 2  # a reply is returned at most twice; a third violation is a parse failure
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_AFFIX = re.compile(r"^(c2_|c_|coeff2_|coeff1_|coeff_)")
MAX_CHARACTERS = 5_000  # characters of an equation


def schema_fault(raw: object, properties: Sequence[str]) -> str:
    """Return a message about the first violation of the schema by a hypothesis; empty if it is valid.

    Every name must be one of the item, every coefficient a number or null, and the parents of the frequency by the
    edges must be the properties in its equation.
    """
    if not isinstance(raw, Mapping):
        return f"hypothesis is {short_repr(raw)}, not an object"
    nodes = {*properties, FREQUENCY}
    for edge in sorted(stated_edges(raw)):
        for name in edge:
            if name not in nodes:
                return f"edges name {short_repr(name)}, which is not declared"
    coefficients = raw.get("coefficients")
    if coefficients is not None and not isinstance(coefficients, Mapping):
        return f"coefficients is {short_repr(coefficients)}, not an object"
    for name, value in (coefficients or {}).items():
        if value is not None and (isinstance(value, str) or as_number(value) is None):
            return f"coefficient {short_repr(name)} is {short_repr(value)}, neither a number nor null"
        if name != "base" and node_of_coefficient(str(name)) not in nodes:
            return f"coefficient {short_repr(name)} is of no declared name"
    return _equation_fault(raw, nodes)


def _equation_fault(raw: Mapping[str, Any], nodes: set[str]) -> str:
    equation = raw.get("freq_equation")
    if equation is None or equation == "":
        in_equation: set[str] = set()
    elif not isinstance(equation, str) or len(equation) > MAX_CHARACTERS:
        return f"freq_equation is {short_repr(equation)}, not a text of at most {MAX_CHARACTERS} characters"
    else:
        names = {node_of_coefficient(name) for name in _NAME.findall(equation.partition("=")[2] or equation)}
        unknown = sorted(names - nodes - {"base"})
        if unknown:
            return f"freq_equation names {short_repr(unknown[0])}, which is not declared"
        in_equation = names & nodes - {FREQUENCY}
    parents = {parent for parent, child in stated_edges(raw) if child == FREQUENCY}
    if parents != in_equation:
        stated = ", ".join(sorted(parents)) or "none"
        return f"edges into {FREQUENCY} are from {stated}; its equation has {', '.join(sorted(in_equation)) or 'none'}"
    return ""


def node_of_coefficient(name: str) -> str:
    """Return the node that a coefficient's name contains: p for c_p, c2_p, coeff_p_freq, p."""
    plain = _AFFIX.sub("", name)
    if plain != name:
        plain = re.sub(r"_(freq|frequency)$", "", plain)
    return node_name(plain)


# --- Faithfulness of a notebook: entries of `past_data` compared with the readings of the run -------------------------
PAST = "past_data"
PROPERTIES, FREQUENCY_KEY = "props", "freq"
TARGET_VALUE = "target_value"
ENTRY_TOLERANCE = 0.005  # half of the last of two shown decimals
MAX_ENTRIES = 1_000  # entries read of one reply


class EntryKind(StrEnum):
    """Agreement of an entry of `past_data` with the readings."""

    RIGHT = "right"
    ALTERED = "altered"
    INVENTED = "invented"


@dataclass
class Ledger:
    """Totals over the notebooks (`past_data`) in the replies of a run.

    entries: number of entries by kind, over all replies
    missing: number of different readings without a right entry in the last notebook; None without a notebook
    dropped: number of entries of a notebook that the next one lacks, over all pairs of successive ones
    announced: number of replies that announce an experiment; unannounced: those whose action is another one
    """

    entries: dict[EntryKind, int] = field(default_factory=lambda: dict.fromkeys(EntryKind, 0))
    missing: int | None = None
    dropped: int = 0
    announced: int = 0
    unannounced: int = 0
    _previous: list[dict[str, float]] | None = None

    def add(self, raw: Mapping[str, Any], readings: Sequence[Values], properties: Sequence[str]) -> None:
        """Count a reply; readings: all readings before it; properties: names of the item's properties."""
        self._add_announcement(raw, properties)
        if not isinstance(raw.get(PAST), list):
            return
        entries = [read_entry(entry, properties) for entry in raw[PAST][:MAX_ENTRIES]]
        copied: set[int] = set()
        for entry in entries:
            kind, index = classify_entry(entry, readings, properties)
            self.entries[kind] += 1
            if kind is EntryKind.RIGHT and index is not None:
                copied.add(index)
        # one entry covers all equal readings
        distinct = [i for i, reading in enumerate(readings) if reading not in readings[:i]]
        self.missing = sum(not any(readings[i] == readings[j] for j in copied) for i in distinct)
        if self._previous is not None:
            self.dropped += sum(entry not in entries for entry in self._previous)
        self._previous = entries

    def _add_announcement(self, raw: Mapping[str, Any], properties: Sequence[str]) -> None:
        experiment = raw.get(EXPERIMENT)
        target = experiment.get(TARGET) if isinstance(experiment, Mapping) else None
        if not isinstance(experiment, Mapping) or not target:
            return
        self.announced += 1
        stated = experiment.get(TARGET_VALUE)
        # a reply with `action` ends the run or tries the reactor, so it carries out no experiment
        is_set = resolved_property(target, properties) in properties and "action" not in raw
        if not is_set or (stated is not None and not _close(stated, raw.get(VALUE))):
            self.unannounced += 1

    def as_json(self) -> dict[str, Any]:
        """Return totals, and shares of the kinds (None without entries), ready for JSON."""
        total = sum(self.entries.values())
        shares = {f"{kind}_share": count / total if total else None for kind, count in self.entries.items()}
        return {
            "entries": total,
            **shares,
            "missing": self.missing,
            "dropped": self.dropped,
            "announced": self.announced,
            "unannounced": self.unannounced,
        }


def read_entry(entry: object, properties: Sequence[str]) -> dict[str, float]:
    """Return the numbers of an entry by node; names may differ in case, blanks, `_` and `-`."""
    if not isinstance(entry, Mapping):
        return {}
    values_by_node: dict[str, float] = {}
    values = entry.get(PROPERTIES)
    for name, value in values.items() if isinstance(values, Mapping) else ():
        node = node_name(resolved_property(name, properties))
        if (parsed := _number(value)) is not None:
            values_by_node[node] = parsed
    if (frequency := _number(entry.get(FREQUENCY_KEY))) is not None:
        values_by_node[FREQUENCY] = frequency
    return values_by_node


def classify_entry(
    entry: Mapping[str, float], readings: Sequence[Values], properties: Sequence[str]
) -> tuple[EntryKind, int | None]:
    """Return the kind of an entry, and the index of the reading that it agrees with most; None for an invented one."""
    agreements = [
        sum(node in reading and abs(value - reading[node]) <= ENTRY_TOLERANCE for node, value in entry.items())
        for reading in readings
    ]
    best = max(range(len(readings)), key=lambda i: agreements[i], default=None)
    if best is None or 2 * agreements[best] <= len(entry):
        return EntryKind.INVENTED, None
    is_complete = entry.keys() == {*properties, FREQUENCY}
    return (EntryKind.RIGHT if is_complete and agreements[best] == len(entry) else EntryKind.ALTERED), best


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _close(stated: object, value: object) -> bool:
    first, second = _number(stated), _number(value)
    return first is not None and second is not None and abs(first - second) <= ENTRY_TOLERANCE
