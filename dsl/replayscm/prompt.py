"""Prompts: an instance as a language model is asked it, in the project's own words, and rephrased.

Made from the task alone, so nothing sealed can be in one. The information is that of the published prompts (paper,
section B.3): roles, what is disclosed of the order, the language, the intervention modes, how replay is scored, every
training world, and the shape of the answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from calibrant.dsl.formulas.formula import OPERATORS
from calibrant.dsl.formulas.text import Grammar, render
from calibrant.dsl.replayscm.disclosure import Disclosure, natural
from calibrant.dsl.replayscm.extensions.extension import Extension, NoiseKind, Question
from calibrant.dsl.replayscm.item import Task, TaskKind
from calibrant.dsl.replayscm.world import World
from calibrant.dsl.text import Phrases, reword

# --- The prompt of plain and passive items in other words, and worlds as tables; `prompt` has the standard text -------
PHRASES: Final[Phrases] = (
    (
        "Give a mechanism for every endogenous variable such that the model replays every world below.",
        "Below are worlds of a Boolean causal model. Write one formula for each endogenous variable, so that together "
        "they reproduce all of these worlds.",
    ),
    (
        "Say which variables are the roots, and give a mechanism for every other variable, such that the model replays "
        "every world below.",
        "Below are worlds of a Boolean causal model. Name its roots and write one formula for each remaining variable, "
        "so that together they reproduce all of these worlds.",
    ),
    (
        "A model that replays every world below is given. Give another model that also replays them all but differs in "
        "at least one mechanism's meaning, an experiment that tells the two apart, and a witness.",
        "One model that reproduces all worlds below is stated. Find a second one that reproduces them too, although at "
        "least one of its formulas computes another function; find an experiment under which the two disagree, and a "
        "witness of that.",
    ),
    (
        "Give a mechanism for every endogenous variable such that the model replays held-out worlds, which are shown "
        "without errors.",
        "Below are worlds of a Boolean causal model. Write one formula for each endogenous variable, so that together "
        "they reproduce further worlds, in which there are no errors.",
    ),
    ("Observed variables (all binary): ", "Variables that are observed, each 0 or 1: "),
    (" of them, not told which", ", but which ones they are is not disclosed"),
    ("Endogenous variables: ", "Variables that need a formula: "),
    ("Topological order: not told", "Causal order: not disclosed"),
    ("Topological order: ", "Causal order, causes first: "),
    ("Topological blocks, earlier ones first: ", "Causal blocks, causes in earlier blocks: "),
    (
        "Units: the same unit id is the same unit in every world, and its root context is meant to be stable; root "
        "values may still change from world to world.",
        "Units: an id names one unit throughout. Its context of roots is taken as stable across worlds, although the "
        "values of its roots may differ between them.",
    ),
    (" for training, shown below; ", " are shown below for training; "),
    (" held out for evaluation", " others are kept back to evaluate the answer"),
    (
        "Mechanisms are s-expressions: a variable, or (operator argument ...). Operators:",
        "A formula is an s-expression, which is a variable or has the form (operator argument ...). It may use:",
    ),
    ("true iff its one argument is false", "negation of its single argument"),
    ("true iff all arguments are true", "1 where each argument is 1"),
    ("true iff at least one argument is true", "1 where some argument is 1"),
    ("true iff an odd number of arguments is true", "parity: 1 where the number of arguments that are 1 is odd"),
    ("true iff all arguments are equal", "1 where the arguments have one common value"),
    ("(if c a b) is a where c is true, else b", "(if c a b) takes the value of a if c is 1, and that of b otherwise"),
    ("The constants 0 and 1 are not allowed.", "Formulas without variables, 0 and 1, are forbidden."),
    ("The constants 0 and 1 are allowed.", "The formulas 0 and 1 are permitted."),
    ("An answer is valid only if:", "Conditions on an answer:"),
    ("- there is exactly one mechanism for every ", "- one formula, and not more, belongs to every "),
    (", and none for any other", "; no formula belongs to any other"),
    (
        "- the number of roots is the one told, each named once;",
        "- as many roots are named as stated above, none of them twice;",
    ),
    (
        "- a mechanism mentions only variables that come before its own in the topological order.",
        "- only variables that precede a variable in the causal order occur in its formula.",
    ),
    (
        "- a mechanism mentions only variables of its own or of earlier blocks, and never its own variable;",
        "- only variables of the same block or of an earlier one occur in a formula, never the variable itself;",
    ),
    ("- mentions form no cycle.", "- the formulas together are free of cycles."),
    (
        "- a mechanism never mentions its own variable, and mentions form no cycle.",
        "- no variable occurs in its own formula, and the formulas together are free of cycles.",
    ),
    (
        "Replay: in every row of a world, intervened variables are set to their values there, other roots are copied "
        "from the row, and all other variables are computed from your mechanisms, in topological order. Computed cells "
        "have to equal the table. One set of mechanisms is replayed on all training and all held-out worlds.",
        "How an answer is checked: row by row, variables under intervention keep the value of the table, and so do the "
        "roots. All others are calculated from the formulas, causes before effects, and have to agree with the table. "
        "The same formulas are checked on each world, shown or kept back.",
    ),
    (
        "Interventions: none; constant, which sets a variable to one value in all rows; assigned, which sets it row by "
        "row to the value that the table shows.",
        "A world's intervention may be absent (none), fix a variable to one value throughout (constant), or force on "
        "it, in each row, the value of the table (assigned).",
    ),
    ("Reference model:", "The stated model:"),
    (
        'Answer with one JSON object in this shape, "..." standing for what you find:',
        'Reply with a single JSON object built like this one, with your results in place of "...":',
    ),
)


# --- Extensions in the words of prompts: noise, hidden variables, worlds to forecast ----------------------------------


def noise_text(extension: Extension) -> str:
    """Return the sentences that disclose the noise; empty without noise."""
    noise = extension.noise
    if noise.is_noiseless:
        return ""
    if noise.kind is NoiseKind.RATE:
        rate = f"with probability {noise.grid[0][0]}"
    else:
        rate_list = ", ".join(f"{rate} (probability {prior})" for rate, prior in noise.grid)
        owner = "the same for all variables" if noise.kind is NoiseKind.SHARED else "for each variable independently"
        rate = f"with an unknown probability, {owner}, one of {rate_list}"
    return (
        f"Mechanisms err: the value of each variable that is neither root nor set is flipped {rate}, independently in "
        "every row, and variables behind it see the flipped value. A repeated world shows new errors."
    )


def hidden_text(extension: Extension) -> str:
    """Return the sentences that disclose hidden variables; empty without any."""
    parts = [
        f"{name} (a function of {', '.join(parents)})" if parents else f"{name} (a function of observed variables)"
        for name, parents in extension.hidden.items()
    ]
    if not parts:
        return ""
    return (
        f"Never shown and never set: {', '.join(parts)}. Mechanisms may use them; give a hidden variable a "
        "mechanism if you mention it."
    )


def forecast_worlds_text(extension: Extension) -> Iterator[str]:
    """Yield the lines that list the worlds to forecast."""
    yield "Forecast: of each world below, of each row, the probability that a variable that is not set is 1:"
    for world in extension.forecast_worlds:
        setting = ", ".join(f"{v}={world.constants[v]}" for v in natural(world.constants)) or "nothing is set"
        yield f"- {setting}; roots {', '.join(extension.roots)} in turn: {' '.join(world.contexts)}"


# --- Prompts: an instance as a language model is asked it, in the project's own words ---------------------------------
SYSTEM = (
    "You identify the Boolean mechanisms of a small causal model from finite tables of interventional data. "
    "Reply with one JSON object on one line, in the shape that is asked for, and with nothing else."
)
_GOAL = {
    TaskKind.SCM: "Give a mechanism for every endogenous variable such that the model replays every world below.",
    TaskKind.EPISODE: "Give a mechanism for every endogenous variable such that the model replays every world.",
    TaskKind.ROOTS: "Say which variables are the roots, and give a mechanism for every other variable, such that the "
    "model replays every world below.",
    TaskKind.ALTERNATIVE: "A model that replays every world below is given. Give another model that also replays them "
    "all but differs in at least one mechanism's meaning, an experiment that tells the two apart, and a witness.",
}
_MEANINGS = {
    "not": "true iff its one argument is false",
    "and": "true iff all arguments are true",
    "or": "true iff at least one argument is true",
    "xor": "true iff an odd number of arguments is true",
    "iff": "true iff all arguments are equal",
    "if": "(if c a b) is a where c is true, else b",
}
_SHARED_UNITS = (
    "Units: the same unit id is the same unit in every world, and its root context is meant to be stable; root values "
    "may still change from world to world."
)


def prompt(task: Task) -> str:
    """Return the user message for one instance."""
    worlds = map(_world if task.wording == "standard" else _world_table, task.training.worlds)
    shape = reword(_answer_shape(task), task.wording, PHRASES)
    return "\n\n".join([*facts(task), *worlds, shape]) + "\n"


def facts(task: Task) -> tuple[str, ...]:
    """Return the paragraphs of the message before the worlds and the form of the answer."""
    parts = [
        _GOAL[task.kind] if task.extension is None else _extended_goal(task.extension),
        "\n".join(_structure(task)),
        *([] if task.extension is None else _extension_parts(task.extension)),
        "\n".join(_language(task.grammar)),
        "\n".join(_rules(task)),
        "\n".join(_scoring(task)),
    ]
    if task.reference is not None:
        reference = task.reference.mechanisms
        mechanism_lines = (f"{v} = {render(reference[v])}" for v in task.variables if v in reference)
        parts.append("\n".join(["Reference model:", *mechanism_lines]))
    return tuple(reword(part, task.wording, PHRASES) for part in parts)


def _extended_goal(extension: Extension) -> str:
    if extension.question is Question.FORECAST:
        return "Forecast the worlds that are listed below, or give a mechanism for every endogenous variable."
    if extension.noise.is_noiseless:
        return _GOAL[TaskKind.SCM]
    return (
        "Give a mechanism for every endogenous variable such that the model replays held-out worlds, which are shown "
        "without errors."
    )


def _extension_parts(extension: Extension) -> list[str]:
    included = ", hidden ones included" if extension.hidden else ""
    size = f"A mechanism depends on at most {extension.max_parents} variables{included}."
    worlds = forecast_worlds_text(extension) if extension.question is Question.FORECAST else ()
    return [part for part in (size, noise_text(extension), hidden_text(extension), "\n".join(worlds)) if part]


# --- what is disclosed ------------------------------------------------------------------------------------------------


def _structure(task: Task) -> Iterator[str]:
    disclosure = task.disclosure
    yield f"Task: {task.kind.value}"
    yield f"Observed variables (all binary): {_join_names(task.variables)}"
    if disclosure.roots is None:
        yield f"Roots: {disclosure.num_roots} of them, not told which"
    else:
        yield f"Roots: {_join_names(disclosure.roots)}"
        yield f"Endogenous variables: {_join_names(_endogenous(task))}"
    yield from _order(disclosure)
    if task.shares_units:
        yield _SHARED_UNITS
    yield f"Worlds: {len(task.training.worlds)} for training, shown below; {task.num_heldout} held out for evaluation"


def _order(disclosure: Disclosure) -> Iterator[str]:
    if disclosure.order is not None:
        yield f"Topological order: {_join_names(disclosure.order)}"
    elif disclosure.blocks is not None:
        yield f"Topological blocks, earlier ones first: {' | '.join(map(_join_names, disclosure.blocks))}"
    else:
        yield "Topological order: not told"


def _endogenous(task: Task) -> list[str]:
    return [variable for variable in task.variables if variable in task.disclosure.endogenous]


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(names)


# --- the language and the rules ---------------------------------------------------------------------------------------


def _language(grammar: Grammar) -> Iterator[str]:
    yield "Mechanisms are s-expressions: a variable, or (operator argument ...). Operators:"
    for name in grammar.operators:
        yield f"- {name}: {OPERATORS[name].arity_text}; {_MEANINGS[name]}"
    yield f"The constants 0 and 1 are {'allowed' if grammar.allow_constants else 'not allowed'}."


def _rules(task: Task) -> Iterator[str]:
    yield "An answer is valid only if:"
    covered = "variable that you do not call a root" if task.kind is TaskKind.ROOTS else "endogenous variable"
    hidden = task.extension.hidden if task.extension is not None else ()
    others = f"other than {_join_names(tuple(hidden))}" if hidden else "other"
    yield f"- there is exactly one mechanism for every {covered}, and none for any {others};"
    if task.disclosure.roots is None:
        yield "- the number of roots is the one told, each named once;"
    if task.disclosure.order is not None:
        yield "- a mechanism mentions only variables that come before its own in the topological order."
    elif task.disclosure.blocks is not None:
        yield "- a mechanism mentions only variables of its own or of earlier blocks, and never its own variable;"
        yield "- mentions form no cycle."
    else:
        yield "- a mechanism never mentions its own variable, and mentions form no cycle."


def _scoring(task: Task) -> Iterator[str]:
    yield (
        "Replay: in every row of a world, intervened variables are set to their values there, other roots are copied "
        "from the row, and all other variables are computed from your mechanisms, in topological order. Computed cells "
        "have to equal the table. One set of mechanisms is replayed on all training and all held-out worlds."
    )
    yield (
        "Interventions: none; constant, which sets a variable to one value in all rows; assigned, which sets it row by "
        "row to the value that the table shows."
    )
    if task.kind is TaskKind.ALTERNATIVE:
        yield (
            "Experiment: sets one variable (any, a root too) to 0 or 1. It separates the models if some assignment of "
            "the roots gives some other endogenous variable different values; the larger the share of root assignments "
            "with a difference, the better. Witness: one root assignment, and at least one variable that differs "
            "there, with both values."
        )


def _world(world: World) -> str:
    lines = [f"World {world.id}", f"Intervention: {_intervention(world)}", "Rows:"]
    for unit, row in zip(world.units, world.rows(), strict=True):
        lines.append(f"- {unit}: " + " ".join(f"{variable}={bit}" for variable, bit in row.items()))
    return "\n".join(lines)


def _world_table(world: World) -> str:
    """Return a world as a table, in the rephrased prompt."""
    lines = [f"World {world.id} (intervention: {_intervention(world)})", " ".join(["unit", *world.variables])]
    lines += [f"{unit} {' '.join(map(str, row.values()))}" for unit, row in zip(world.units, world.rows(), strict=True)]
    return "\n".join(lines)


def _intervention(world: World) -> str:
    """Return the intervention, targets in column order: the order of a file may be the latent one."""
    values, assigned = world.intervention.constants, world.intervention.assigned
    constants = [f"{variable}={values[variable]}" for variable in world.variables if variable in values]
    parts = [f"constant {_join_names(constants)}"] if constants else []
    if assigned:
        parts.append(f"assigned {_join_names([variable for variable in world.variables if variable in assigned])}")
    return "; ".join(parts) or "none"


# --- the answer -------------------------------------------------------------------------------------------------------


def _answer_shape(task: Task) -> str:
    shape = json.dumps(_shape(task), ensure_ascii=True)
    return f'Answer with one JSON object in this shape, "..." standing for what you find:\n{shape}'


def _shape(task: Task) -> dict[str, Any]:
    if task.disclosure.roots is None:
        return {"roots": ["..."] * task.disclosure.num_roots, "mechanisms": {"...": "..."}}
    mechanisms: dict[str, Any] = {"mechanisms": dict.fromkeys(_endogenous(task), "...")}
    if task.extension is not None and task.extension.question is Question.FORECAST:
        return {"forecast": [[{"...": 0.5}], "..."]}
    if task.kind is not TaskKind.ALTERNATIVE:
        return mechanisms
    return {
        "alternative": mechanisms,
        "experiment": {"type": "hard_do", "assignments": {"...": 0}},
        "witness": {
            "rootAssignment": dict.fromkeys(task.disclosure.roots, 0),
            "differences": [{"variable": "...", "reference": 0, "alternative": 1}],
        },
    }


# --- Fields of a task for templates of prompts ------------------------------------------------------------------------
TEMPLATE_FIELDS: Final[Mapping[str, str]] = {
    "instance": "public id of the item",
    "kind": "task type, as in files: CIND_A_SCM and others",
    "variables": "names of the observed variables",
    "num_roots": "number of roots",
    "roots": "names of the roots; lacking where they are hidden",
    "endogenous": "names of the other variables; lacking where roots are hidden",
    "order": "topological order; Ordered alone",
    "blocks": "lists of names, causes in earlier ones; Block alone",
    "shares_units": "whether a unit id is the same unit in every world",
    "operators": "of the language, each with name, arity (as text) and meaning",
    "allow_constants": "whether 0 and 1 are formulas",
    "modes": "modes of interventions: none, hard_constant, hard_assigned",
    "worlds": "training worlds, each with id, mode, assigned (names), constants (by name), rows (unit, cells by name)",
    "num_heldout": "number of held-out worlds",
    "reference": "formulas of the supplied SCM by variable; Alternative-SCM alone",
    "conditions": "sentences on noise, hidden variables and forecasts; extended items alone",
    "answer": "form of an answer, as an object",
}


def template_fields(task: Task) -> dict[str, object]:
    """Return the template fields of a task; None for those that do not apply."""
    disclosure = task.disclosure
    return {
        "kind": task.kind.value,
        "variables": list(task.variables),
        "num_roots": disclosure.num_roots,
        "roots": None if disclosure.roots is None else list(disclosure.roots),
        "endogenous": None if disclosure.roots is None else _endogenous(task),
        "order": None if disclosure.order is None else list(disclosure.order),
        "blocks": None if disclosure.blocks is None else [list(block) for block in disclosure.blocks],
        "shares_units": task.shares_units,
        "operators": [
            {"name": name, "arity": OPERATORS[name].arity_text, "meaning": _MEANINGS[name]}
            for name in task.grammar.operators
        ],
        "allow_constants": task.grammar.allow_constants,
        "modes": ["none", "hard_constant", "hard_assigned"],
        "worlds": [_world_fields(world) for world in task.training.worlds],
        "num_heldout": task.num_heldout,
        "reference": None
        if task.reference is None
        else {v: render(task.reference.mechanisms[v]) for v in task.variables if v in task.reference.mechanisms},
        "conditions": None if task.extension is None else _extension_parts(task.extension),
        "answer": _shape(task),
    }


def _world_fields(world: World) -> dict[str, object]:
    """Return a world for templates; targets in column order, which reveals nothing of the latent order."""
    constants, assigned = world.intervention.constants, world.intervention.assigned
    mode = "hard_assigned" if assigned else "hard_constant" if constants else "none"
    return {
        "id": world.id,
        "mode": mode,
        "assigned": [variable for variable in world.variables if variable in assigned],
        "constants": {variable: constants[variable] for variable in world.variables if variable in constants},
        "rows": [{"unit": unit, "cells": dict(row)} for unit, row in zip(world.units, world.rows(), strict=True)],
    }
