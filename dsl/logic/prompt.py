"""The prompt of an item: prior network, data, definition of a model, held-out experiments, format of the answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from calibrant.dsl.logic.item import Edge, Experiment, Task, class_edges, kept_names, node_names, reachable, successors
from calibrant.dsl.logic.trajectories import is_trajectory_task, trajectory_prompt
from calibrant.dsl.text import Phrases, nearest_names, reword

# --- The prompt of an item in other words; `prompt` has the standard text ---------------------------------------------
PHRASES: Final[Phrases] = (
    (
        "A network of signed edges states which node may act on which. Stimuli were switched on, nodes were inhibited,"
        " and readouts were measured, from 0 to 1; - stands for a value that was not measured.",
        "Below is a network: its edges say which node can influence which, and whether by activating or inhibiting it."
        " In experiments some stimuli were present and some nodes were held down; then the readouts were recorded as"
        " numbers from 0 to 1, with - where there is no number.",
    ),
    (
        "A Boolean model gives every node but the stimuli a formula: a set of clauses. A clause v<-a+!b makes v 1 where"
        " a is 1\nand b is 0. Every literal of a clause is an edge of the network into v, with its sign, and no source"
        " occurs twice in it.",
        "In a Boolean model each node that is no stimulus has a set of clauses, its formula. By the clause v<-a+!b node"
        " v is 1\nif a is 1 and b is 0. Each literal in it is one of the network's edges into v, of the same sign; a"
        " source stands in\na clause once at most.",
    ),
    (
        "- A stimulus is 1 where it is present, else 0. An inhibited node is 0.",
        "- A stimulus that is present is 1, any other stimulus 0. A node that is inhibited is 0.",
    ),
    (
        "- Another node is 1 where one of its clauses holds, else 0; a node without clauses is 0.",
        "- Each remaining node is 1 if some clause of it holds and 0 if none does, so without clauses it is 0.",
    ),
    (
        "- No clause of a node contains another one. No node depends on itself through clauses.",
        "- Of two clauses of a node neither contains the other. Following clauses, no node is its own cause.",
    ),
    (
        "- A node in a clause is a stimulus or has clauses itself. A node with clauses is a readout or occurs in a"
        " clause.",
        "- Nodes that clauses use are stimuli or have clauses. Nodes with clauses are readouts or used by clauses.",
    ),
    (
        "Edges, source -> target, or source -| target for an edge that inhibits:\n",
        "Edges of the network (source -> target activates, source -| target inhibits):\n",
    ),
    ("\nReadouts, in this order: ", "\nReadouts, in the order of the numbers: "),
    ("Experiments and what was measured:\n", "What was recorded, an experiment a line:\n"),
    (
        "Nodes that are neither clamped nor measured and have a single source or a single target are merged first:"
        " clauses use these edges alone: ",
        "Before that, each node that is no stimulus, never inhibited and no readout, and that has one source or one"
        " target only, is merged. What clauses may use are these edges: ",
    ),
    (
        "New experiments, without noise. What do the readouts give?\n",
        "Which values do the readouts have in these further experiments, which are free of noise?\n",
    ),
    (
        ', the clauses of a model, whose answers are computed or {"probabilities": [[...], ...]}, for each of the ',
        ' with the clauses of a model; its answers follow from it. Or give {"probabilities": [[...], ...]}: for the ',
    ),
    (
        " new experiments in order the probability that each readout is 1.",
        " further experiments in turn, with what probability each readout is 1.",
    ),
    ("Answer with a JSON object: ", "Your answer is a JSON object: "),
    (", the clauses of a model, whose answers are computed.", " with the clauses of a model; its answers follow."),
)


_RULES: Final = """\
A Boolean model gives every node but the stimuli a formula: a set of clauses. A clause v<-a+!b makes v 1 where a is 1
and b is 0. Every literal of a clause is an edge of the network into v, with its sign, and no source occurs twice in it.
- A stimulus is 1 where it is present, else 0. An inhibited node is 0.
- Another node is 1 where one of its clauses holds, else 0; a node without clauses is 0.
- No clause of a node contains another one. No node depends on itself through clauses.
- A node in a clause is a stimulus or has clauses itself. A node with clauses is a readout or occurs in a clause."""


def prompt(task: Task) -> str:
    """Return the prompt of a task; values are shown as measured, not discretised."""
    return "\n\n".join([*facts(task), reword(_form(task), task.wording, PHRASES)])


def facts(task: Task) -> tuple[str, ...]:
    """Return the paragraphs of the prompt before the format of an answer."""
    setup = task.setup
    parts = [
        "A network of signed edges states which node may act on which. Stimuli were switched on, nodes were inhibited,"
        " and readouts were measured, from 0 to 1; - stands for a value that was not measured.",
        _RULES,
        "Edges, source -> target, or source -| target for an edge that inhibits:\n" + "\n".join(map(_edge, task.prior)),
        f"Stimuli: {_listed(setup.stimuli)}\nInhibited nodes: {_listed(setup.inhibitors)}\n"
        f"Readouts, in this order: {_listed(setup.readouts)}",
        "Experiments and what was measured:\n"
        + "\n".join(
            f"{experiment.text(setup)}: {' '.join(map(_value, row))}"
            for experiment, row in zip(task.experiments, task.values, strict=True)
        ),
    ]
    if task.options.max_clause:
        parts.append(f"A clause has at most {task.options.max_clause} literals.")
    if task.options.compress:
        parts.append(
            "Nodes that are neither clamped nor measured and have a single source or a single target are merged first:"
            f" clauses use these edges alone: {', '.join(map(_edge, task.edges)) or 'none'}."
        )
    parts.append(_questions(task.questions, task))
    return tuple(reword(part, task.wording, PHRASES) for part in parts if part)


def _edge(edge: Edge) -> str:
    return f"{edge.source} {'->' if edge.sign > 0 else '-|'} {edge.target}"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"


def _value(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def _questions(questions: tuple[Experiment, ...], task: Task) -> str:
    if not questions:
        return ""
    lines = [f"{number}. {question.text(task.setup)}" for number, question in enumerate(questions, 1)]
    return "New experiments, without noise. What do the readouts give?\n" + "\n".join(lines)


def _form(task: Task) -> str:
    table = (
        f' or {{"probabilities": [[...], ...]}}, for each of the {len(task.questions)} new experiments in order the'
        " probability that each readout is 1"
        if task.questions
        else ""
    )
    return (
        'Answer with a JSON object: {"model": ["v<-a+!b", ...]}, the clauses of a model, whose answers are computed'
        f"{table}."
    )


# --- Fields of a task for templates of prompts ------------------------------------------------------------------------
TEMPLATE_FIELDS: Final[Mapping[str, str]] = {
    "instance": "public id of the item",
    "edges": "of the prior network, each with source, sign (1, -1) and target",
    "class_edges": "those that clauses may use, where nodes are merged first; lacking elsewhere",
    "stimuli": "names",
    "inhibitors": "names of nodes that may be inhibited",
    "readouts": "names, in the order of the numbers measured",
    "experiments": "each with text, on (stimuli), inhibited, measured (numbers, none where there is none)",
    "max_clause": "greatest number of literals of a clause; lacking where there is no bound",
    "questions": "held-out experiments, each with text, on, inhibited; lacking where there are none",
    "series": "the whole text of an item of trajectories, which lacks the others; lacking elsewhere",
}


def template_fields(task: Task) -> dict[str, object]:
    """Return the template fields of a task; a field that does not apply is None."""
    if is_trajectory_task(task):
        return {name: None for name in TEMPLATE_FIELDS if name != "instance"} | {"series": trajectory_prompt(task)}
    setup = task.setup
    return {
        "edges": list(map(_edge_fields, task.prior)),
        "class_edges": list(map(_edge_fields, task.edges)) if task.options.compress else None,
        "stimuli": list(setup.stimuli),
        "inhibitors": list(setup.inhibitors),
        "readouts": list(setup.readouts),
        "experiments": [
            {**_clamp_fields(experiment, task), "measured": list(row)}
            for experiment, row in zip(task.experiments, task.values, strict=True)
        ],
        "max_clause": task.options.max_clause or None,
        "questions": [_clamp_fields(question, task) for question in task.questions] or None,
        "series": None,
    }


def _edge_fields(edge: Edge) -> dict[str, object]:
    return {"source": edge.source, "sign": edge.sign, "target": edge.target}


def _clamp_fields(experiment: Experiment, task: Task) -> dict[str, object]:
    return {
        "text": experiment.text(task.setup),
        "on": sorted(experiment.on),
        "inhibited": sorted(experiment.inhibited),
    }


# --- Notes on a task: valid properties that may surprise a reader -----------------------------------------------------
MAX_LISTED_NAMES = 8  # in a note


def task_notes(task: Task) -> list[str]:
    """Return remarks for the head of a report, a line each; none is an error."""
    setup, options = task.setup, task.options
    prior = set(task.prior)
    names = node_names(tuple(prior))
    reached = reachable(setup.stimuli, successors(task.edges))
    outside = sorted({v for row in task.values for v in row if v is not None and not 0 <= v <= 1})
    candidates = [
        ("edges into stimuli, dropped", map(str, sorted(e for e in prior if e.target in setup.stimuli))),
        ("self-edges, dropped", map(str, sorted(e for e in prior if e.source == e.target))),
        ("stimuli that the prior lacks", (_with_nearest(s, names) for s in setup.stimuli if s not in names)),
        (
            "inhibitors that the prior lacks, so that inhibiting them changes no prediction",
            (_with_nearest(i, names) for i in setup.inhibitors if i not in names),
        ),
        (
            "readouts that the prior lacks, predicted 0",
            (_with_nearest(r, names) for r in setup.readouts if r not in {*names, *setup.stimuli}),
        ),
        (
            "readouts that no stimulus reaches, of constant misfit",
            (r for r in setup.readouts if r in names and r not in reached),
        ),
        ("readouts that are stimuli, predicted by their clamp", (r for r in setup.readouts if r in setup.stimuli)),
        ("values outside [0, 1]", (f"{value:g}" for value in outside)),
    ]
    notes = [
        f"{heading}: {_first_names(entries)}" for heading, entries in ((h, list(e)) for h, e in candidates) if entries
    ]
    if options.compress:
        names_to_keep = kept_names(setup)
        reverse = class_edges(task.prior, setup.stimuli, names_to_keep, compress=True, reverse=True)
        if reverse != task.edges:
            notes.append("compression depends on names: merging in reverse order leaves other edges; see --no-compress")
    return notes


def _with_nearest(name: str, names: Collection[str]) -> str:
    """Return a name that the prior lacks, followed by similar names of the prior."""
    near = nearest_names(name, sorted(names))
    return f"{name} (did you mean {' or '.join(near)}?)" if near else name


def _first_names(entries: Iterable[str]) -> str:
    texts = list(entries)
    return ", ".join(texts[:MAX_LISTED_NAMES]) + (", ..." if len(texts) > MAX_LISTED_NAMES else "")
