"""Episodes of CausaLab for programs and people."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.bench.core.capabilities import Playable
from calibrant.bench.core.typed_moves import (
    Act,
    Draft,
    Edit,
    Position,
    Reader,
    Verb,
    Words,
    WordsError,
    match_name,
    read_number,
)
from calibrant.dsl.causalab.episode import HYPOTHESIS, LabEpisode, finite, last_dialled_frequency, last_raw
from calibrant.dsl.causalab.item import Family, LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY, HIGHEST, LOWEST
from calibrant.dsl.causalab.prompt import facts, shown_step
from calibrant.dsl.causalab.replies import is_paper_reply, paper_action
from calibrant.dsl.episode import Action, ActionError, Episode, Step, sole_action

# --- Opening and submitting episodes ----------------------------------------------------------------------------------


class LabPlay(Playable[LabItem]):
    """Implements Playable (bench.core.capabilities)."""

    def open(self, item: LabItem) -> LabEpisode:
        return LabEpisode(item)

    def describe(self, episode: Episode[Any, Any], step: Step[Any]) -> str:
        return f"{shown_step(step)} Settings left: {episode.left}.".replace("\n", " ")

    def submission(self, answer: Mapping[str, Any], steps: Sequence[Step[Any]]) -> Sequence[Action]:
        """Return the actions of a submission: set the reactor's frequency if needed, then submit the hypothesis."""
        dial = (
            ()
            if answer.get("frequency") in (None, last_dialled_frequency(steps))
            else ({"reactor": answer["frequency"]},)
        )
        stated = {HYPOTHESIS: answer[HYPOTHESIS]} if HYPOTHESIS in answer else {}
        return (*dial, {"submit": stated})

    def submitted(self, steps: Sequence[Step[Any]]) -> dict[str, Any] | None:
        if not any("submit" in step.action and not step.refused for step in steps):
            return None
        frequency = last_dialled_frequency(steps)
        return ({} if frequency is None else {"frequency": frequency}) | {HYPOTHESIS: dict(last_raw(steps) or {})}

    def omission(self, steps: Sequence[Step[Any]]) -> str:
        return "no frequency" if last_dialled_frequency(steps) is None else ""

    def parse_action(self, item: LabItem, text: str) -> Action:
        stated = sole_action(text)
        return paper_action(stated, item.task.properties) if is_paper_reply(stated) else stated


PLAY = LabPlay()


# --- Typed moves in the laboratory: set ph 3, reactor 288, ph -> conductivity, submit ---------------------------------
_EDGE = re.compile(r"(\S{1,80})\s*(?:->|\N{RIGHTWARDS ARROW}|\bcauses\b)\s*(\S{1,80})", re.IGNORECASE)
_SETTING = re.compile(r"(.{1,80}?)(?:\s*=\s*|\s+to\s+|\s+)(\S{1,40})", re.IGNORECASE)
DRAFT_KEYS = {"edges", "base", "weights", "squares"}


class LabWords(Words[LabItem]):
    """Implements Words (bench.core.typed_moves).

    A draft has `edges`, a list of [cause, effect], and for the frequency's equation `base`, `weights` and `squares`.
    """

    kind = ("laboratory", "laboratories")

    def opening(self, item: LabItem) -> str:
        return f"{facts(item.task)}\n\n{_measurements(item)}"

    def verbs(self, item: LabItem) -> Sequence[Verb]:
        task = item.task
        first, settable = task.properties[0], task.settable
        verbs = []
        if task.allowance and settable:
            verbs.append(Verb(f"set {settable[0]} 3", "set a property of the manipulator crystal, and read all of it"))
        verbs += [
            Verb("reactor 288", f"try a frequency on the reactor, {task.tries} times at most; no settings afterwards"),
            Verb(f"{first} -> {FREQUENCY}", "write down that the first causes the second"),
            Verb(f"not {first} -> {FREQUENCY}", "take that back"),
            Verb("base 12", f"write down the base of {FREQUENCY}"),
            Verb(f"weight {first} 2", f"write down the weight of a cause of {FREQUENCY}"),
        ]
        if task.family is Family.QUADRATIC:
            verbs.append(Verb(f"square {first} 2", "write down the weight of its square"))
        return (*verbs, Verb("submit", "send the graph and the equation that are written; it ends the item"))

    def readers(self, item: LabItem) -> Mapping[str, Reader]:
        readers: dict[str, Reader] = {
            "set": _read_set,
            "reactor": _read_reactor,
            "not": _read_remove,
            "submit": _read_submit,
        }
        readers |= {"base": _read_base, "weight": _weight_reader("weights", "weight")}
        if item.task.family is Family.QUADRATIC:
            readers["square"] = _weight_reader("squares", "square")
        return readers

    def read_form(self, item: LabItem, position: Position, line: str) -> Act | Edit | None:
        match = _EDGE.fullmatch(line)
        if match is None or line.lower().startswith("not "):
            return None
        edge = _read_edge(item, match)
        edges = [*position.draft.get("edges", ())]
        return Edit({**position.draft, "edges": edges if edge in edges else [*edges, edge]})

    def read_json(self, item: LabItem, line: str) -> Act:

        try:
            return Act(PLAY.parse_action(item, line))
        except ActionError as error:
            raise WordsError(str(error)) from None

    def answer(self, item: LabItem, draft: Draft) -> dict[str, Any]:
        """Return the hypothesis of a draft; an empty draft has no edges."""
        edges = [{"from": cause, "to": effect} for cause, effect in sorted(draft.get("edges", ()))]
        weights, squares = draft.get("weights", {}), draft.get("squares", {})
        summands = [f"c_{name}*{name}" for name in sorted(weights)] + [f"c2_{n}*{n}**2" for n in sorted(squares)]
        coefficients = {"base": draft["base"]} if "base" in draft else {}
        coefficients |= {f"c_{name}": weights[name] for name in sorted(weights)}
        coefficients |= {f"c2_{name}": squares[name] for name in sorted(squares)}
        equation = " + ".join([f"{FREQUENCY} = base", *summands]) if coefficients else ""
        return {"edges": edges, "freq_equation": equation, "coefficients": coefficients}

    def draft_lines(self, item: LabItem, draft: Draft) -> Sequence[str]:
        lines = [f"{cause} -> {effect}" for cause, effect in draft.get("edges", ())]
        lines += [f"base {draft['base']:g}"] if "base" in draft else []
        lines += [f"weight {name} {value:g}" for name, value in draft.get("weights", {}).items()]
        return lines + [f"square {name} {value:g}" for name, value in draft.get("squares", {}).items()]

    def check_draft(self, item: LabItem, draft: object) -> Draft:
        nodes = item.task.nodes
        if not isinstance(draft, Mapping) or not draft.keys() <= DRAFT_KEYS:
            raise WordsError(f"a draft has the keys {', '.join(sorted(DRAFT_KEYS))}")
        edges = draft.get("edges", [])
        pairs = edges if isinstance(edges, list) else [None]
        if not all(isinstance(pair, list) and len(pair) == 2 and all(n in nodes for n in pair) for pair in pairs):
            raise WordsError(f"edges is a list of [cause, effect] with names among {', '.join(nodes)}")
        checked: dict[str, Any] = {"edges": [pair for pair in edges if pair[0] != pair[1]]}
        try:
            if "base" in draft:
                checked["base"] = finite(draft["base"])
            for key in ("weights", "squares"):
                weights = draft.get(key, {})
                if not isinstance(weights, Mapping) or not weights.keys() <= set(item.task.properties):
                    raise WordsError(f"{key} is an object of numbers by property")
                checked[key] = {name: finite(weights[name]) for name in sorted(weights)}
        except ActionError as error:
            raise WordsError(str(error)) from None
        return {key: value for key, value in checked.items() if value or key == "base"}

    def graph(self, item: LabItem, draft: Draft) -> Mapping[str, Sequence[str]] | None:
        edges = draft.get("edges", ())
        return {n: [cause for cause, effect in edges if effect == n] for n in item.task.nodes} if edges else None

    def view(self, item: LabItem) -> dict[str, Any]:
        task = item.task
        return {
            "view": "laboratory",
            "nodes": list(task.nodes),
            "properties": list(task.properties),
            "settable": list(task.settable) if task.allowance else [],
            "frequency": FREQUENCY,
            "dial": [LOWEST, HIGHEST],
            "quadratic": task.family is Family.QUADRATIC,
            "causes": list(task.nodes if task.freq_parent else task.properties),
            "allowance": task.allowance,
            "tries": task.tries,
            "crystals": [dict(record) for record in task.records],
            "series": [
                {"values": dict(entry.values), "property": entry.property, "value": entry.value} for entry in task.trace
            ],
            "baseline": dict(task.baseline),
            "reactor": dict(task.reactor),
        }


def _measurements(item: LabItem) -> str:
    """Return the task's records as a table, a line for each crystal."""
    task = item.task
    rows = [(f"crystal {number}", record) for number, record in enumerate(task.records, 1)]
    for entry in task.trace:
        rows.append((f"{entry.property} = {entry.value:g}" if entry.value is not None else "series", entry.values))
    rows += [("manipulator now", task.baseline), ("reactor crystal", task.reactor)]
    nodes = [node for node in task.nodes if any(node in values for _, values in rows)]
    cells = [["", *nodes]]
    cells += [[name, *(f"{values[n]:g}" if n in values else "?" for n in nodes)] for name, values in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    aligned = (
        [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))] for row in cells
    )
    return "\n".join("  ".join(row).rstrip() for row in aligned)


def _read_set(item: LabItem, position: Position, rest: str) -> Act:
    settable = item.task.settable
    if position.num_left <= 0:
        raise WordsError("no settings are left; type `reactor F` to try a frequency, or `submit`")
    match = _SETTING.fullmatch(rest)
    if match is None:
        raise WordsError(f"expected a property and a number; type for example set {settable[0]} 3")
    name = match_name(match[1].strip(), settable, "property that can be set")
    return Act({"set": name, "value": read_number(match[2], f"set {name} 3")})


def _read_reactor(item: LabItem, position: Position, rest: str) -> Act:
    used = sum("reactor" in step.action and not step.refused for step in position.steps)
    if used >= item.task.tries:
        raise WordsError(f"all {item.task.tries} tries of the reactor are used; type `submit`")
    return Act({"reactor": read_number(rest, "reactor 288")})


def _read_submit(item: LabItem, position: Position, rest: str) -> Act:
    if last_dialled_frequency(position.steps) is None and rest.lower() != "anyway":
        message = "no frequency was tried on the reactor; type `reactor F` first, or `submit anyway`"
        raise WordsError(message, page="try a frequency on the reactor first")
    return Act({"submit": {HYPOTHESIS: WORDS.answer(item, position.draft)}})


def _read_edge(item: LabItem, match: re.Match[str]) -> list[str]:
    cause, effect = (match_name(name, item.task.nodes, "quantity") for name in match.groups())
    if cause == effect:
        raise WordsError("no quantity is a cause of itself")
    return [cause, effect]


def _read_remove(item: LabItem, position: Position, rest: str) -> Edit:
    match = _EDGE.fullmatch(rest)
    edges = [*position.draft.get("edges", ())]
    if match is None or (edge := _read_edge(item, match)) not in edges:
        listed = ", ".join(f"{cause} -> {effect}" for cause, effect in edges) or "none"
        raise WordsError(f"{rest or 'nothing'} is no cause that is written down; there are {listed}")
    return Edit({**position.draft, "edges": [pair for pair in edges if pair != edge]})


def _read_base(item: LabItem, position: Position, rest: str) -> Edit:
    return Edit({**position.draft, "base": read_number(rest, "base 12")})


def _weight_reader(key: str, verb: str) -> Reader:
    def read(item: LabItem, position: Position, rest: str) -> Edit:
        match = _SETTING.fullmatch(rest)
        example = f"{verb} {item.task.properties[0]} 2"
        if match is None:
            raise WordsError(f"expected a property and a number; type for example {example}")
        name = match_name(match[1].strip(), item.task.properties, "property")
        weights = {**position.draft.get(key, {}), name: read_number(match[2], example)}
        edges = [*position.draft.get("edges", ())]
        edge = [name, FREQUENCY]
        return Edit({**position.draft, key: weights, "edges": edges if edge in edges else [*edges, edge]})

    return read


WORDS = LabWords()
