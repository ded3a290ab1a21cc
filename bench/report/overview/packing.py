"""Answers of a benchmark as packed JSON for the page's script: lists behind cells, and embedded responses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from calibrant.audits.why import number_text
from calibrant.bench.core.scoring import participant_of
from calibrant.bench.report.overview.contract import Explanation
from calibrant.bench.report.overview.responses import MAX_TEXT_CHARS, AnswerKey, Responses, answer_key
from calibrant.bench.report.overview.results import CLASSES, Outcome, Results
from calibrant.bench.report.overview.sentences import NO_ANSWER, TITLES
from calibrant.dsl.errors import in_one_line

MAX_LISTED = 400_000  # answers of a report that are listed behind cells; beyond, those that are embedded alone
LETTERS = {kind: kind[0] for kind in CLASSES}  # capitals: without an answer
assert len(set(LETTERS.values())) == len(CLASSES)


def script_json(value: Any) -> str:
    """Return JSON that cannot end a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("\u2028", "\\u2028")


def pack_answers(results: Results, responses: Responses, commands: Mapping[str, str], *, is_whole: bool) -> Any:
    """Return what the script needs to list answers. is_whole: all of them, not those alone that are embedded.

    Per system: item places, a letter for each class, costs, places in `remaining`, samples, lines, places of details;
    of people their ids.
    """
    conditions = {condition: place for place, condition in enumerate(results.conditions)}
    pools = sorted({item.digest for item in results.items})
    remaining: dict[str, int] = {}
    embedded = embedded_keys(results, responses)
    details: dict[AnswerKey, int] = {key: place for place, key in enumerate(embedded)}
    files: dict[str, int] = {}
    return {
        "name": results.name,
        "title": results.title,
        "items": results.guide.words.items,
        "hypotheses": results.guide.words.hypotheses,
        "cost": "" if results.guide.words.cost is None else results.guide.words.cost.unit,
        "letters": {letter: kind for kind, letter in LETTERS.items()},
        "titles": TITLES | {"none": NO_ANSWER},
        "conditions": results.conditions,
        "ids": [in_one_line(item.id) for item in results.items],
        "of": [conditions[item.condition] for item in results.items],
        "pool": [pools.index(item.digest) for item in results.items] if len(pools) > 1 else None,
        "systems": [
            {"name": system.name}
            | _pack_outcomes(
                system.outcomes if is_whole else [o for o in system.outcomes if answer_key(o.context) in details],
                responses,
                details,
                remaining,
                files,
            )
            for system in results.systems
        ],
        "left": list(remaining),
        "files": list(files),
        "lists": {keep: results.items_without(keep) for keep in ("decided", "right", "all-missed")},
        "whole": is_whole,
        "commands": dict(commands),
    }


def _pack_outcomes(
    outcomes: list[Outcome],
    responses: Responses,
    details: Mapping[AnswerKey, int],
    remaining: dict[str, int],
    files: dict[str, int],
) -> dict[str, Any]:
    """Return lists of equal length. File and line stand where the response is not in the page."""
    keys = [answer_key(outcome.context) for outcome in outcomes]
    places = [None if key in details else responses.places.get(key) for key in keys]
    numbers = [-1 if place is None else files.setdefault(responses.files[place.file], len(files)) for place in places]
    samples = [outcome.context.sample for outcome in outcomes]
    people = [participant_of(outcome.context.system) for outcome in outcomes]
    return ({"p": people} if any(people) else {}) | {
        "i": [outcome.item for outcome in outcomes],
        "k": "".join(
            LETTERS[outcome.kind] if outcome.is_answered else LETTERS[outcome.kind].upper() for outcome in outcomes
        ),
        "c": [None if outcome.cost is None else _short(outcome.cost) for outcome in outcomes],
        "l": [remaining.setdefault(_members(outcome.members), len(remaining)) for outcome in outcomes],
        "s": samples if any(samples) else None,
        "f": numbers if any(place is not None for place in places) else None,
        "n": [0 if place is None else place.line for place in places]
        if any(place is not None for place in places)
        else None,
        "d": [[place, details[key]] for place, key in enumerate(keys) if key in details],
    }


def _short(cost: float) -> int | float:
    return int(cost) if cost == int(cost) else float(f"{cost:.3g}")


def _members(members: str) -> str:
    return number_text(int(members)) if members else ""


def embedded_keys(results: Results, responses: Responses) -> list[AnswerKey]:
    """Return the answers whose responses are embedded, by system and item, in whatever order they were read."""
    keys = (answer_key(outcome.context) for system in results.systems for outcome in system.outcomes)
    return [key for key in keys if key in responses.explanations]


def pack_details(results: Results, responses: Responses) -> list[Any]:
    """Return the embedded responses, in the order of `embedded_keys`."""
    return [_detail(responses.explanations[key], responses.lines[key]) for key in embedded_keys(results, responses)]


def _detail(explanation: Explanation, line: str) -> dict[str, Any]:
    detail = {
        key: value for key, value in asdict(explanation).items() if value or (key == "differs" and value is not None)
    }
    for key in ("response", "gold"):
        if key in detail:
            detail[key] = _cut(detail[key])
    if "moves" in detail:
        detail["moves"] = [[list(move.cells), int(move.look)] for move in explanation.moves]
    if explanation.remaining is not None:
        remaining = explanation.remaining
        detail["remaining"] = [remaining.heading, remaining.lines(), remaining.note]
    detail["sentences"] = [sentence for sentence in explanation.sentences if sentence]
    return detail | ({"line": line} if line else {})


def _cut(text: str) -> str:
    if len(text) <= MAX_TEXT_CHARS:
        return text
    return f"{text[:MAX_TEXT_CHARS]}\N{HORIZONTAL ELLIPSIS} ({len(text):,} characters)"
