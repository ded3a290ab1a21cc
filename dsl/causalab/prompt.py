"""Tasks as chat messages in our own words: linear, quadratic or noisy equations, the frequency as a parent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from calibrant.dsl.causalab.episode import LabStep
from calibrant.dsl.causalab.item import Family, Task
from calibrant.dsl.causalab.mechanism import FREQUENCY, TOLERANCE, Values
from calibrant.dsl.causalab.reference import SettingMeaning
from calibrant.dsl.item import Message
from calibrant.dsl.text import Phrases, reword

# --- The prompt of a laboratory in other words; `prompt` has the standard text ----------------------------------------
PHRASES: Final[Phrases] = (
    (
        "You work in a laboratory. Crystals have measurable properties and a resonance frequency, "
        f"{FREQUENCY}. A fixed causal mechanism without cycles, the same for all crystals, links them.",
        f"Crystals are studied here. Each has properties that can be measured, and {FREQUENCY}, its resonance "
        "frequency. What causes what, and by how much, is one fixed acyclic mechanism that all crystals share.",
    ),
    (
        "Each quantity is a base plus, for each of its causes p, a * p^2 + b * p. The base of a property differs from "
        f"crystal to crystal; the base of {FREQUENCY} is one number of the mechanism.",
        "To compute a quantity, start from its base and add a * p^2 + b * p for every cause p of it. Bases of "
        f"properties are a crystal's own; {FREQUENCY} has one base, which belongs to the mechanism.",
    ),
    (
        "Each quantity is a base plus a weighted sum of its causes. The base of a property differs from crystal to "
        f"crystal; the base of {FREQUENCY} is one number of the mechanism.",
        "To compute a quantity, start from its base and add each of its causes times a weight. Bases of properties "
        f"are a crystal's own; {FREQUENCY} has one base, which belongs to the mechanism.",
    ),
    (f"{FREQUENCY} may be a cause of properties.", f"Properties may depend on {FREQUENCY}."),
    (f"{FREQUENCY} causes nothing.", f"Nothing depends on {FREQUENCY}."),
    (
        "Every value is rounded to two decimals before other quantities are computed from it.",
        "A value is rounded to two decimals first, and only then used to compute others.",
    ),
    (
        "You cannot change any crystal; work from the measurements below.",
        "No crystal can be altered: the measurements below are all there is.",
    ),
    (
        "You may set properties of one crystal, the manipulator, up to ",
        "On one crystal, the manipulator, properties can be set; the number of settings is at most ",
    ),
    (" times. When one is set, ", ". After a setting, "),
    (
        "it then has that value whatever its causes are, until one of them is changed",
        "the property keeps the given value regardless of its causes, as long as none of these is altered",
    ),
    (
        "this replaces its base; its causes still add to it",
        "the given value stands in place of the property's base, and its causes are added as before",
    ),
    (
        "Settings persist. You then read all values of that crystal. Properties that can be set: ",
        "A setting stays in force. All values of the crystal are then reported. These properties can be set: ",
    ),
    (
        "An unobserved quantity disturbs the manipulator: with every setting it takes a new value, and some quantities "
        "are shifted by it. Earlier measurements and both starting crystals are undisturbed.",
        "Something that is not observed disturbs the manipulator: it changes with each setting and shifts some "
        "quantities. It touches neither the earlier measurements nor the two crystals as they are at the start.",
    ),
    (
        "Goal: predict the resonance frequency of the reactor crystal, whose properties you see, to within ",
        "What is asked: the resonance frequency of the reactor crystal, from its properties that are shown, with an "
        "error of at most ",
    ),
    (
        f", and state the causal graph with the equation of {FREQUENCY}.",
        f"; and the causal graph together with the equation for {FREQUENCY}.",
    ),
    (
        "Reply with one JSON object in a ```json fence, one action at a time:",
        "A reply is one JSON object in a ```json fence and holds one action:",
    ),
    (" to change the manipulator crystal;", " sets a property of the manipulator crystal;"),
    (" to try a frequency on the reactor (", " dials a frequency on the reactor ("),
    ("; no settings afterwards);", ", after which nothing can be set);"),
    (" to finish.", " ends the episode."),
    (
        'Any action may also carry "hypothesis": your present belief, of the form',
        'With each action you may state "hypothesis", what you believe so far, in the form',
    ),
    ("Quantities: ", "Measured quantities: "),
    ("Earlier crystals, as they were:", "Crystals measured before, unaltered:"),
    (
        "Earlier series (the first setting starts from the first line):",
        "A series measured before (its first setting was made on the crystal of its first line):",
    ),
    ("  after setting ", "  having set "),
    ("Manipulator crystal now:", "The manipulator crystal at present:"),
    (f"Reactor crystal ({FREQUENCY} unknown):", f"The reactor crystal, {FREQUENCY} not known:"),
)


Phase: TypeAlias = Literal["experiment", "reactor"]


def messages(task: Task) -> list[Message]:
    """Return the system and user message that open an episode."""
    return [{"role": "system", "content": _rules(task)}, {"role": "user", "content": shown_task(task)}]


def phase_messages(task: Task, phase: Phase) -> list[Message]:
    """Return the messages of a phase of the paper's protocol (arXiv 2605.26029, A.4), in its reply format."""
    paragraphs = _experiment_phase(task) if phase == "experiment" else _reactor_phase(task)
    system = "\n\n".join([*_laboratory(task), *paragraphs, _notebook(task, phase)])
    return [
        {"role": "system", "content": reword(system, task.wording, PHRASES)},
        {"role": "user", "content": shown_task(task)},
    ]


def _experiment_phase(task: Task) -> list[str]:
    return [
        _settings(task),
        "This is the first of two phases: find the mechanism. Before each setting, announce it as an experiment. When "
        "further settings would teach you nothing, submit; the second phase then asks for the frequency of the reactor "
        "crystal. What you do not write down is not kept.",
    ]


def _reactor_phase(task: Task) -> list[str]:
    return [
        "This is the second of two phases: no crystal can be changed any more. From your hypothesis and your past data "
        f"predict the resonance frequency of the reactor crystal, whose properties you see, to within {TOLERANCE:g}, "
        f"and dial it on the reactor. There are {task.tries} tries. Then submit.",
    ]


def _notebook(task: Task, phase: Phase) -> str:
    value = "<the value to set target_prop to>" if phase == "experiment" else "<the frequency to dial>"
    experiment = (
        '{"target_prop": "<property>", "target_value": <number>}' if phase == "experiment" else "{} in this phase"
    )
    lines = [
        "Reply with one JSON object in a ```json fence. Its fields:",
        '"memory": what you want to keep, as text; "thought": why you do this next;',
        '"past_data": a list to which every crystal that you have seen is added and from which nothing is removed; an '
        'entry is {"id": "<number>/<how many>", "props": {"<property>": <number>}, "freq": <number>};',
        '"hypothesis": {"edges": [{"from": "<cause>", "to": "<effect>"}], "freq_equation": "<text>", "coefficients": '
        + _coefficient_form(task)
        + "}, null for what you do not know yet;",
        f'"experiment": {experiment};',
        f'"value": {value}; or instead of it "action": "SUBMIT" to end the phase.',
    ]
    return "\n".join(lines)


def _laboratory(task: Task) -> list[str]:
    """Return the paragraphs about the mechanism, which are the same in every prompt."""
    return [
        "You work in a laboratory. Crystals have measurable properties and a resonance frequency, "
        f"{FREQUENCY}. A fixed causal mechanism without cycles, the same for all crystals, links them.",
        _equations(task),
        _parents(task),
        "Every value is rounded to two decimals before other quantities are computed from it.",
    ]


def _rules(task: Task) -> str:
    return "\n\n".join([facts(task), reword(_actions(task), task.wording, PHRASES)])


def facts(task: Task) -> str:
    """Return the rules of the laboratory, without the format of replies."""
    parts = [*_laboratory(task), _settings(task)]
    if task.noise:
        parts.append(
            "An unobserved quantity disturbs the manipulator: with every setting it takes a new value, and some "
            "quantities are shifted by it. Earlier measurements and both starting crystals are undisturbed."
        )
    parts.append(
        "Goal: predict the resonance frequency of the reactor crystal, whose properties you see, to within "
        f"{TOLERANCE:g}, and state the causal graph with the equation of {FREQUENCY}."
    )
    return reword("\n\n".join(parts), task.wording, PHRASES)


def _equations(task: Task) -> str:
    if task.family is Family.QUADRATIC:
        return (
            "Each quantity is a base plus, for each of its causes p, a * p^2 + b * p. The base of a property differs "
            f"from crystal to crystal; the base of {FREQUENCY} is one number of the mechanism."
        )
    return (
        "Each quantity is a base plus a weighted sum of its causes. The base of a property differs from crystal to "
        f"crystal; the base of {FREQUENCY} is one number of the mechanism."
    )


def _parents(task: Task) -> str:
    return f"{FREQUENCY} may be a cause of properties." if task.freq_parent else f"{FREQUENCY} causes nothing."


def _settings(task: Task) -> str:
    if not task.allowance:
        return "You cannot change any crystal; work from the measurements below."
    meaning = {
        SettingMeaning.VALUE: "it then has that value whatever its causes are, until one of them is changed",
        SettingMeaning.BASE: "this replaces its base; its causes still add to it",
    }
    return (
        f"You may set properties of one crystal, the manipulator, up to {task.allowance} times. When one is set, "
        f"{meaning[task.reading]}. Settings persist. You then read all values of that crystal. "
        f"Properties that can be set: {', '.join(task.settable)}."
    )


def _actions(task: Task) -> str:
    lines = ["Reply with one JSON object in a ```json fence, one action at a time:"]
    if task.allowance:
        lines.append('{"set": "<property>", "value": <number>} to change the manipulator crystal;')
    lines += [
        f'{{"reactor": <frequency>}} to try a frequency on the reactor ({task.tries} tries; no settings afterwards);',
        '{"submit": {"hypothesis": {...}}} to finish.',
        'Any action may also carry "hypothesis": your present belief, of the form',
        '{"edges": [{"from": "<cause>", "to": "<effect>"}], "freq_equation": "<text>", "coefficients": '
        + _coefficient_form(task)
        + "}.",
    ]
    return "\n".join(lines)


def _coefficient_form(task: Task) -> str:
    if task.family is Family.QUADRATIC:
        return '{"base": <number>, "c_<property>": <weight of the property>, "c2_<property>": <weight of its square>}'
    return '{"base": <number>, "c_<property>": <weight of the property>}'


def shown_task(task: Task) -> str:
    """Return all data that the task shows, as lines of JSON under headings."""
    lines = ["Quantities: " + ", ".join(sorted(task.nodes)), "", "Earlier crystals, as they were:"]
    lines += [_values(record) for record in task.records] or ["none"]
    if task.trace:
        lines += ["", "Earlier series (the first setting starts from the first line):"]
        for entry in task.trace:
            done = f"  after setting {entry.property} to {entry.value:g}" if entry.value is not None else ""
            lines.append(_values(entry.values) + done)
    lines += ["", "Manipulator crystal now:", _values(task.baseline)]
    lines += ["", f"Reactor crystal ({FREQUENCY} unknown):", _values(task.reactor)]
    return reword("\n".join(lines), task.wording, PHRASES)


def shown_step(step: LabStep) -> str:
    """Return the text that reports a step to the system."""
    if step.refused:
        return f"Refused: {step.refused}."
    if step.reading is None:
        return "Submitted."
    if "activated" in step.reading:
        return "The reactor is activated." if step.reading["activated"] else "The reactor stays off."
    return "Manipulator crystal now:\n" + _values(step.reading)


def reading_text(node_values: Values) -> str:
    """Return the values of a reading as text."""
    return _values(node_values)


def _values(node_values: Values) -> str:
    return json.dumps({name: node_values[name] for name in sorted(node_values)})


# --- Fields of a task for templates of prompts ------------------------------------------------------------------------
TEMPLATE_FIELDS: Final[Mapping[str, str]] = {
    "instance": "public id of the item",
    "phase": "experiment or reactor; lacking without --phase",
    "family": "linear or quadratic",
    "properties": "names of the properties, without the frequency",
    "settable": "names of the properties that can be set",
    "freq_parent": "whether the frequency may be a cause",
    "noise": "whether settings are disturbed",
    "reading": "meaning of a setting: value or base",
    "records": "earlier crystals, values by name",
    "trace": "earlier series, each with crystal (by name), property and value (none at the start);"
    " lacking where there is none",
    "baseline": "values of the manipulator crystal by name",
    "reactor": "shown values of the reactor crystal by name",
    "allowance": "number of settings",
    "tries": "number of tries of the reactor",
    "tolerance": "allowed error of the frequency",
}


def template_fields(task: Task, phase: str) -> dict[str, object]:
    """Return the template fields of a task; a field that does not apply is None."""
    series = [{"crystal": dict(entry.values), "property": entry.property, "value": entry.value} for entry in task.trace]
    return {
        "phase": phase or None,
        "family": task.family.value,
        "properties": list(task.properties),
        "settable": list(task.settable),
        "freq_parent": task.freq_parent,
        "noise": task.noise,
        "reading": task.reading.value,
        "records": list(map(dict, task.records)),
        "trace": series or None,
        "baseline": dict(task.baseline),
        "reactor": dict(task.reactor),
        "allowance": task.allowance,
        "tries": task.tries,
        "tolerance": TOLERANCE,
    }
