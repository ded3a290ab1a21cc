"""Drafts of answers: formulas, experiments and probabilities, checked while they are typed.

A draft is a dictionary with the keys KEYS. Those beside a mechanism map are `experiment` {variable: bit}, `witness`
{root: bit}, `differences` {variable: [reference, alternative]}, and `forecast` {"world.row.variable": probability},
where worlds and rows count from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from calibrant.bench.core.typed_moves import Draft, Edit, Position, Reader, Verb, WordsError, match_name, read_number
from calibrant.dsl.errors import ParseError, short_repr
from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.text import parse_infix, render
from calibrant.dsl.replayscm.disclosure import Disclosure
from calibrant.dsl.replayscm.extensions.extension import NoiseKind, Question
from calibrant.dsl.replayscm.item import Problem, TaskKind

# --- Parts of answers beside a mechanism map: experiment and witness of an alternative, probabilities of a forecast
PART_KEYS = ("experiment", "witness", "differences", "forecast")
_SETTING = re.compile(r"([^\s=]{1,80})\s*=\s*([01])", re.ASCII)
_CHANCE = re.compile(r"(?:(\d{1,4})(?:\.(\d{1,4}))?\s+)?([^\s=]{1,80})\s*=\s*(\S{1,30})", re.ASCII)


def is_alternative(item: Problem) -> bool:
    """Return whether the item asks for an alternative SCM, an experiment and a witness."""
    return item.task.kind is TaskKind.ALTERNATIVE


def is_forecast(item: Problem) -> bool:
    """Return whether the item asks for probabilities; an SCM, which implies them, is an answer too."""
    extension = item.task.extension
    return extension is not None and extension.question is Question.FORECAST


def forecast_cells(item: Problem) -> tuple[tuple[int, int, str], ...]:
    """Return (world, row, variable) of every requested probability; worlds and rows count from 1."""
    extension = item.task.extension
    if extension is None or not is_forecast(item):
        return ()
    return tuple(
        (world_number, row, name)
        for world_number, world in enumerate(extension.forecast_worlds, 1)
        for row in range(1, len(world.contexts) + 1)
        for name in extension.variables
        if name not in extension.roots and name not in world.constants
    )


def part_verbs(item: Problem) -> Iterator[Verb]:
    """Yield the lines that a user may type for the parts of an answer, as examples."""
    variables = item.task.variables
    if is_alternative(item):
        roots = item.task.disclosure.roots or ()
        yield Verb(f"experiment {variables[-1]} = 1", "write down what is set so that the two models differ")
        yield Verb("witness " + " ".join(f"{root}=0" for root in roots), "write down values of the roots that show it")
        yield Verb(f"differs {variables[-1]} 0 1", "write down what differs there: in the reference, in yours")
    if is_forecast(item):
        _, _, name = forecast_cells(item)[0]
        yield Verb(f"chance {name} = 0.7", "write down the probability of a 1 in all rows of all worlds")
        yield Verb(f"chance 2.1 {name} = 0.7", "the same in row 1 of world 2; `chance 2 ...`: in all rows of world 2")
        yield Verb("chance nothing", "take all probabilities back; formulas count then")


def part_readers(item: Problem) -> dict[str, Reader]:
    """Return first word of a line -> function that reads the line."""
    if is_alternative(item):
        return {"experiment": _read_experiment, "witness": _read_witness, "differs": _read_difference}
    return {"chance": _read_chance} if is_forecast(item) else {}


def part_lines(item: Problem, draft: Draft) -> Iterator[str]:
    """Yield the parts of a draft as lines that could be typed."""
    yield from (f"experiment {name} = {bit}" for name, bit in draft.get("experiment", {}).items())
    if draft.get("witness"):
        yield "witness " + " ".join(f"{name}={bit}" for name, bit in draft["witness"].items())
    yield from (f"differs {name} {first} {second}" for name, (first, second) in draft.get("differences", {}).items())
    for key, probability in draft.get("forecast", {}).items():
        world, row, name = key.split(".", 2)
        yield f"chance {world}.{row} {name} = {probability}"


def check_parts(item: Problem, draft: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a draft that a page sent, checked; `WordsError` for an invalid one."""
    checked: dict[str, Any] = {}
    variables = item.task.variables
    if is_alternative(item):
        roots = item.task.disclosure.roots or ()
        checked["experiment"] = _bits(draft.get("experiment", {}), variables, "experiment")
        if len(checked["experiment"]) > 1:
            raise WordsError("an experiment sets one variable")
        checked["witness"] = _bits(draft.get("witness", {}), [v for v in variables if v in roots], "witness")
        differences = draft.get("differences", {})
        if not isinstance(differences, Mapping) or not differences.keys() <= set(variables):
            raise WordsError("differences is an object by variable")
        if not all(pair in ([0, 1], [1, 0]) for pair in differences.values()):
            raise WordsError("a difference is [0, 1] or [1, 0]: in the reference, in the alternative")
        checked["differences"] = {name: list(differences[name]) for name in variables if name in differences}
    if is_forecast(item):
        probabilities = draft.get("forecast", {})
        keys = [".".join(map(str, cell)) for cell in forecast_cells(item)]
        if not isinstance(probabilities, Mapping) or not probabilities.keys() <= set(keys):
            raise WordsError("a forecast is an object of probabilities by world.row.variable")
        if not all(type(value) in (int, float) and 0 <= value <= 1 for value in probabilities.values()):
            raise WordsError("a probability is a number from 0 to 1")
        checked["forecast"] = {key: probabilities[key] for key in keys if key in probabilities}
    return {key: value for key, value in checked.items() if value}


def alternative_parts(item: Problem, draft: Draft) -> dict[str, Any]:
    """Return experiment and witness in the form of an answer; `WordsError` names missing parts."""
    roots, variables = item.task.disclosure.roots or (), item.task.variables
    verbs = {verb.form.split()[0]: verb.form for verb in part_verbs(item)}
    for key, word in (("experiment", "experiment"), ("witness", "witness"), ("differences", "differs")):
        if not draft.get(key):
            page = {"experiment": "choose an experiment first", "witness": "choose values of the roots first"}
            message = f"no {key} is written; type for example {verbs[word]}"
            raise WordsError(message, page=page.get(key, "choose what differs first"))
    missing = [name for name in variables if name in roots and name not in draft["witness"]]
    if missing:
        message = f"the witness has no value of {', '.join(missing)}; type for example {verbs['witness']}"
        raise WordsError(message, page=f"choose a value for {', '.join(missing)} first")
    differences = [
        {"variable": name, "reference": first, "alternative": second}
        for name, (first, second) in draft["differences"].items()
    ]
    return {
        "experiment": {"type": "hard_do", "assignments": dict(draft["experiment"])},
        "witness": {"rootAssignment": dict(draft["witness"]), "differences": differences},
    }


def forecast_answer(item: Problem, draft: Draft) -> dict[str, Any] | None:
    """Return the forecast of a draft in the form of an answer; None without one; `WordsError` if cells are missing."""
    probabilities: Mapping[str, float] = draft.get("forecast", {})
    extension = item.task.extension
    if not probabilities or extension is None:
        return None
    missing = [cell for cell in forecast_cells(item) if ".".join(map(str, cell)) not in probabilities]
    if missing:
        world, row, name = missing[0]
        raise WordsError(
            f"{len(missing)} probabilities are missing; type for example chance {world}.{row} {name} = 0.5, "
            "or `chance nothing` to send formulas",
            page=f"write all probabilities first: {len(missing)} are missing",
        )
    rows: list[list[dict[str, float]]] = [[{} for _ in world.contexts] for world in extension.forecast_worlds]
    for world, row, name in forecast_cells(item):
        rows[world - 1][row - 1][name] = probabilities[f"{world}.{row}.{name}"]
    return {"forecast": rows}


def part_view(item: Problem) -> dict[str, Any]:
    """Return the fields of a page for the parts of an answer, ready for JSON."""
    fields: dict[str, Any] = {}
    if is_alternative(item):
        roots = item.task.disclosure.roots or ()
        names = item.task.variables
        fields["alternative"] = {
            "roots": [name for name in names if name in roots],
            "others": [name for name in names if name not in roots],
        }
    extension = item.task.extension
    if extension is not None and is_forecast(item):
        fields["forecast"] = [
            {
                "set": dict(world.constants),
                "rows": list(world.contexts),
                "free": [name for name in extension.variables if name not in (*extension.roots, *world.constants)],
            }
            for world in extension.forecast_worlds
        ]
        fields["forecast_roots"] = list(extension.roots)
    return fields


def _bits(raw: object, names: Sequence[str], part: str) -> dict[str, int]:
    if not isinstance(raw, Mapping) or not raw.keys() <= set(names):
        raise WordsError(f"{part} is an object of 0 or 1 by variable among {', '.join(names)}")
    if not all(type(bit) is int and bit in (0, 1) for bit in raw.values()):
        raise WordsError(f"{part}: a value is 0 or 1")
    return {name: raw[name] for name in names if name in raw}


def _parse_bits(text: str, names: Sequence[str], example: str) -> dict[str, int]:
    bits: dict[str, int] = {}
    for part in re.sub(r"\s*=\s*", "=", text).replace(",", " ").split():
        match = _SETTING.fullmatch(part)
        if match is None:
            raise WordsError(f"expected values such as {names[0]}=1, found {short_repr(part)}; type {example}")
        bits[match_name(match[1], names, "variable")] = int(match[2])
    if not bits:
        raise WordsError(f"nothing is set; type for example {example}")
    return bits


def _read_experiment(item: Problem, position: Position, rest: str) -> Edit:
    example = next(part_verbs(item)).form
    bits = _parse_bits(rest, item.task.variables, example)
    if len(bits) > 1:
        raise WordsError(f"an experiment sets one variable; type for example {example}")
    return Edit({**position.draft, "experiment": bits})


def _read_witness(item: Problem, position: Position, rest: str) -> Edit:
    roots = [name for name in item.task.variables if name in (item.task.disclosure.roots or ())]
    bits = _parse_bits(rest, roots, "witness " + " ".join(f"{root}=0" for root in roots))
    return Edit({**position.draft, "witness": bits})


def _read_difference(item: Problem, position: Position, rest: str) -> Edit:
    parts = rest.replace(",", " ").split()
    if len(parts) != 3 or sorted(parts[1:]) != ["0", "1"]:
        name = item.task.variables[-1]
        raise WordsError(
            f"expected a variable with its value in the reference and in yours, found {short_repr(rest)}; "
            f"type for example differs {name} 0 1"
        )
    name = match_name(parts[0], item.task.variables, "variable")
    differences = {**position.draft.get("differences", {}), name: [int(parts[1]), int(parts[2])]}
    return Edit({**position.draft, "differences": differences})


def _read_chance(item: Problem, position: Position, rest: str) -> Edit:
    cells = forecast_cells(item)
    if rest.lower() == "nothing":
        return Edit({key: value for key, value in position.draft.items() if key != "forecast"})
    match = _CHANCE.fullmatch(rest)
    example = f"chance {cells[0][2]} = 0.7"
    if match is None:
        raise WordsError(f"expected a variable and a probability, found {short_repr(rest)}; type for example {example}")
    name = match_name(match[3], list(dict.fromkeys(cell[2] for cell in cells)), "variable to forecast")
    probability = read_number(match[4], example)
    if not 0 <= probability <= 1:
        raise WordsError(f"a probability is a number from 0 to 1, found {probability:g}; type for example {example}")
    chosen = [
        cell
        for cell in cells
        if cell[2] == name
        and (match[1] is None or cell[0] == int(match[1]))
        and (match[2] is None or cell[1] == int(match[2]))
    ]
    if not chosen:
        raise WordsError(f"{name} is not forecast there; worlds are 1 to {cells[-1][0]}, rows count from 1 in each")
    probabilities = {".".join(map(str, cell)): probability for cell in chosen}
    return Edit({**position.draft, "forecast": {**position.draft.get("forecast", {}), **probabilities}})


# --- Drafts of mechanism maps: formulas as they are typed, checked one by one and as a map ----------------------------
KEYS = ("formulas", "roots", "noise", *PART_KEYS)
MAX_DRAFT_CHARS = 20_000


def noise_rates(item: Problem) -> tuple[str, ...]:
    """Return the noise rates that an answer may name, as texts; () if the rate is disclosed or there is no noise."""
    extension = item.task.extension
    if extension is None or extension.noise.is_noiseless or extension.noise.kind is NoiseKind.RATE:
        return ()
    return tuple(str(rate) for rate, _ in extension.noise.grid)


def hidden_names(item: Problem) -> tuple[str, ...]:
    """Return the hidden variables; each may have a formula, and needs one if another formula mentions it."""
    extension = item.task.extension
    return () if extension is None else tuple(name for name in extension.hidden if name not in item.task.variables)


def formula_names(item: Problem) -> tuple[str, ...]:
    """Return the names that a formula may mention: observed and hidden variables."""
    return (*item.task.variables, *hidden_names(item))


def stated_disclosure(item: Problem, draft: Draft) -> Disclosure:
    """Return the disclosure, with the draft's roots if roots are hidden; `WordsError` for a wrong number of them."""
    disclosure = item.task.disclosure
    if disclosure.roots is not None:
        return disclosure
    roots: Sequence[str] = draft.get("roots", ())
    if len(roots) != disclosure.num_roots:
        names = " ".join(item.task.variables[: disclosure.num_roots])
        raise WordsError(
            f"there are {disclosure.num_roots} roots, {len(roots)} are named; type for example roots {names}",
            page=f"tick {disclosure.num_roots} roots first",
        )
    return disclosure.given_roots([name for name in item.task.variables if name in roots])


def variables_to_explain(item: Problem, draft: Draft) -> tuple[str, ...]:
    """Return the variables that need a formula: all but the roots, taken from the draft if they are hidden."""
    roots = item.task.disclosure.roots
    chosen = draft.get("roots", ()) if roots is None else roots
    return tuple(name for name in item.task.variables if name not in chosen)


def read_formula(item: Problem, variable: str, text: str) -> Formula:
    """Parse a formula; `WordsError` names the position of the mistake and what is allowed."""
    try:
        formula = parse_infix(text, item.task.grammar, formula_names(item))
    except ParseError as error:
        raise WordsError(f"{variable}: {error}") from None
    if variable in formula.mentioned:
        raise WordsError(f"{variable}: a formula does not mention its own variable")
    return formula


def answer_of_draft(item: Problem, draft: Draft) -> dict[str, Any]:
    """Return the answer of a draft; `WordsError` names what is missing or not allowed."""
    forecast = forecast_answer(item, draft)
    if forecast is not None:
        return forecast
    disclosure = stated_disclosure(item, draft)
    texts: Mapping[str, str] = draft.get("formulas", {})
    names = [*variables_to_explain(item, draft), *(name for name in hidden_names(item) if texts.get(name, "").strip())]
    missing = [name for name in names if not texts.get(name, "").strip()]
    if missing:
        chance = " (or probabilities, by `chance`)" if is_forecast(item) else ""
        raise WordsError(
            f"no formula for {', '.join(missing)}{chance}; type for example {missing[0]} = {item.task.variables[0]}",
            page=f"write a formula for {', '.join(missing)} first",
        )
    formulas = {name: read_formula(item, name, texts[name]) for name in names}
    mentioned = {name for formula in formulas.values() for name in formula.mentioned} - {*item.task.variables}
    if mentioned - formulas.keys():
        name = min(mentioned - formulas.keys())
        message = f"{name} is mentioned and has no formula; type for example {name} = {item.task.variables[0]}"
        raise WordsError(message, page=f"write a formula for {name} first: another one mentions it")
    violation = disclosure.violation(formulas)
    if violation is not None:
        raise WordsError(violation.reason)
    answer: dict[str, Any] = {"mechanisms": {name: render(formula) for name, formula in formulas.items()}}
    if item.task.disclosure.roots is None:
        answer = {"roots": [name for name in item.task.variables if name in draft.get("roots", ())], **answer}
    if is_alternative(item):
        return {"alternative": answer, **alternative_parts(item, draft)}
    return answer | ({"noise": draft["noise"]} if draft.get("noise") else {})


def check_draft(item: Problem, draft: object) -> Draft:
    """Return a draft that a page sent, checked; formulas may be unfinished. `WordsError` for an invalid one."""
    if not isinstance(draft, Mapping) or not draft.keys() <= set(KEYS):
        raise WordsError(f"a draft has keys among {', '.join(KEYS)}")
    formulas, roots = draft.get("formulas", {}), draft.get("roots", [])
    if not isinstance(formulas, Mapping) or not all(isinstance(text, str) for text in formulas.values()):
        raise WordsError("formulas is an object of text by variable")
    if not formulas.keys() <= {*formula_names(item)}:
        raise WordsError(f"formulas has keys among {', '.join(formula_names(item))}")
    if not isinstance(roots, list) or not all(name in item.task.variables for name in roots):
        raise WordsError(f"roots is a list of names among {', '.join(item.task.variables)}")
    if sum(map(len, formulas.values())) > MAX_DRAFT_CHARS:
        raise WordsError(f"a draft is text of at most {MAX_DRAFT_CHARS:,} characters")
    if draft.get("noise") not in (None, "", *noise_rates(item)):
        raise WordsError(f"noise is one of {', '.join(noise_rates(item))}")
    written = {name: formulas[name] for name in formula_names(item) if formulas.get(name)}
    chosen = {"formulas": written, "roots": [name for name in item.task.variables if name in roots]}
    checked = {**chosen, "noise": draft.get("noise"), **check_parts(item, draft)}
    return {key: value for key, value in checked.items() if value}


# --- Cells of the evidence that a draft fits; a formula is evaluated on the observed values of its variables ----------


class _WorldRows(NamedTuple):
    """Rows of a world; targets: the variables that were set."""

    rows: list[Mapping[str, int]]
    targets: frozenset[str]


def draft_formulas(item: Problem, draft: Draft) -> dict[str, Formula]:
    """Return the formulas of a draft that can be parsed, by variable."""
    formulas = {}
    for name, text in draft.get("formulas", {}).items():
        try:
            formulas[name] = read_formula(item, name, text)
        except WordsError:
            continue
    return formulas


def draft_problems(item: Problem, draft: Draft) -> dict[str, str]:
    """Return variable -> reason why its formula cannot be parsed."""
    problems = {}
    for name, text in draft.get("formulas", {}).items():
        try:
            read_formula(item, name, text)
        except WordsError as error:
            problems[name] = str(error).removeprefix(f"{name}: ")
    return problems


def draft_graph(item: Problem, draft: Draft) -> dict[str, list[str]] | None:
    """Return the variables that each formula mentions; None before one is written."""
    formulas = draft_formulas(item, draft)
    if not formulas:
        return None
    names = dict.fromkeys([*item.task.variables, *(n for f in formulas.values() for n in f.variables)])
    return {name: list(formulas[name].variables) if name in formulas else [] for name in names}


def draft_cells(item: Problem, position: Position) -> dict[str, Any]:
    """Return variable -> how its formula fits the evidence, for formulas over observed variables.

    right, total: numbers of cells, without those that an intervention sets; wrong: [world, row] of each wrong cell
    """
    formulas = draft_formulas(item, position.draft)
    cells: dict[str, Any] = {}
    for name in variables_to_explain(item, position.draft):
        formula = formulas.get(name)
        if formula is None or not formula.mentioned <= set(item.task.variables):
            continue
        wrong, total = [], 0
        for world_index, world in enumerate(_world_rows(item, position)):
            if name in world.targets:
                continue
            total += len(world.rows)
            for row_index, row in enumerate(world.rows):
                if formula.evaluate(lambda v, row=row: row[v], 1) != row[name]:  # type: ignore[misc]
                    wrong.append([world_index, row_index])
        cells[name] = {"right": total - len(wrong), "total": total, "wrong": wrong}
    return cells


def _world_rows(item: Problem, position: Position) -> Iterator[_WorldRows]:
    for world in item.task.training.worlds:
        yield _WorldRows(list(world.rows()), world.intervention.targets)
    extension = item.task.extension
    for step in position.steps:
        if step.reading is not None and extension is not None:
            rows = [dict(zip(extension.variables, map(int, row), strict=True)) for row in step.reading["rows"]]
            yield _WorldRows(list(rows), frozenset(step.action.get("do", {})))
