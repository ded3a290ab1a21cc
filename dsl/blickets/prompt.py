"""The prompt of an item for a language model, after the description in arXiv:2604.20039, section 3 (wording ours)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from calibrant.dsl.blickets.item import Condition, Task
from calibrant.dsl.episode import Step
from calibrant.dsl.text import Phrases, reword

# --- The prompt of an item in other words; `prompt` has the standard text ---------------------------------------------
PHRASES: Final[Phrases] = (
    (
        "You are examining a detector that glows when it is activated. These objects are at hand: ",
        "A machine lights up under certain conditions. You can put these objects on it: ",
    ),
    (
        "Some of them are blickets. What activates the detector is one of two types of rule:",
        "Among them are blickets, and blickets make the machine, called the detector, work. Its rule has one of two "
        "forms:",
    ),
    (
        "- conjunctive: the detector is active if all blickets are on it;",
        "- conjunctive: it lights up when every blicket is on it;",
    ),
    (
        "- disjunctive: the detector is active if at least one blicket is on it.",
        "- disjunctive: it lights up when one or more of the blickets are on it.",
    ),
    ("Other objects on the detector do no harm.", "Objects that are no blickets make no difference."),
    (
        "While it is active the detector also tells how many blickets are on it.",
        "When it lights up, it also reports the number of blickets on it.",
    ),
    ("The rule stays the same throughout.", "One rule holds from start to end."),
    (
        "After a number of activations the rule may silently change for good, and the detector may fail to activate "
        "although the rule is satisfied.",
        "Once it has lit up some number of times, another rule may take over for good, without a sign. Besides, it may "
        "stay dark when its rule is met.",
    ),
    (
        "After a number of activations the rule may silently change for good.",
        "Once it has lit up some number of times, another rule may take over for good, without a sign.",
    ),
    (
        "The order in which objects were placed may matter.",
        "It may make a difference which object was put on first.",
    ),
    (
        "The detector may fail to activate although the rule is satisfied.",
        "It may stay dark when its rule is met.",
    ),
    (
        "Each turn you place one object on the detector or remove one from it, and then read whether it is ACTIVE or "
        "INACTIVE.\nYou have ",
        "In a turn, put one object on the detector (place) or take one off (remove); its state, ACTIVE or INACTIVE, is "
        "reported.\nThe number of your moves is ",
    ),
    (
        " moves; a move that is not possible is refused and counts. Find out which objects are blickets\nand of which "
        "type the rule is, and submit your answer before your moves are used up. Submitting is no move and ends the\n"
        "task.",
        "; an impossible move is refused, yet counted. Work out the blickets and the form of the rule,\nand hand in "
        "your answer while moves are left. Handing in costs no move and is the end of the task.",
    ),
    ("Reply in two lines:", "Your reply has two lines:"),
    (
        "REASONING: what you conclude from the readings so far and what you want to learn next",
        "REASONING: what follows from the states reported so far, and the next thing to find out",
    ),
    ("ACTION: one JSON object, namely ", "ACTION: a single JSON object: "),
    (" to submit an answer", " to hand in an answer"),
)


_TOLD = {
    Condition.CONJUNCTIVE: "The rule stays the same throughout.",
    Condition.DISJUNCTIVE: "The rule stays the same throughout.",
    Condition.MODERATOR: "After a number of activations the rule may silently change for good.",
    Condition.ORDER: "The order in which objects were placed may matter.",
    Condition.STOCHASTIC: "The detector may fail to activate although the rule is satisfied.",
    Condition.NOISY_MODERATOR: (
        "After a number of activations the rule may silently change for good, and the detector may fail to activate "
        "although the rule is satisfied."
    ),
}


def instructions(task: Task) -> str:
    """Return the complete instructions of an agent."""
    reply = f"""Reply in two lines:
REASONING: what you conclude from the readings so far and what you want to learn next
ACTION: one JSON object, namely {{"place": "{task.objects[0]}"}}, {{"remove": "{task.objects[0]}"}}, or
{{"check": {{"rule": "conjunctive", "blickets": ["{task.objects[0]}", "{task.objects[1]}"]}}}} to submit an answer"""
    return f"{facts(task)}\n\n{reword(reply, task.wording, PHRASES)}"


def facts(task: Task) -> str:
    """Return the description of the detector, without the format of replies."""
    objects = ", ".join(task.objects)
    graded = "\nWhile it is active the detector also tells how many blickets are on it." if task.graded else ""
    informed = "" if task.condition is None else f"\n{_TOLD[task.condition]}"
    text = f"""You are examining a detector that glows when it is activated. These objects are at hand: {objects}.
Some of them are blickets. What activates the detector is one of two types of rule:
- conjunctive: the detector is active if all blickets are on it;
- disjunctive: the detector is active if at least one blicket is on it.
Other objects on the detector do no harm.{graded}{informed}

Each turn you place one object on the detector or remove one from it, and then read whether it is ACTIVE or INACTIVE.
You have {task.budget} moves; a move that is not possible is refused and counts. Find out which objects are blickets
and of which type the rule is, and submit your answer before your moves are used up. Submitting is no move and ends the
task."""
    return reword(text, task.wording, PHRASES)


def observation(step: Step[str], placed: Sequence[str], moves_left: int) -> str:
    """Return one line that reports the outcome of a step.

    placed: names of the objects on the detector after the step
    moves_left: remaining moves of the budget
    """
    if step.refused:
        outcome = f"Refused: {step.refused}."
    elif step.reading is None:
        outcome = "Your answer was submitted."
    else:
        outcome = f"The detector is {step.reading}."
    on = f"On the detector: {', '.join(placed)}." if placed else "The detector is empty."
    return f"{outcome} {on} Moves left: {moves_left}."


# --- Fields of a task for templates of prompts ------------------------------------------------------------------------
TEMPLATE_FIELDS: Final[Mapping[str, str]] = {
    "instance": "public id of the item",
    "objects": "names of the objects",
    "budget": "number of moves",
    "graded": "whether an active detector also tells how many blickets are on it",
    "condition": "what is told of the rule: conjunctive, disjunctive, moderator, order, stochastic, noisy-moderator;"
    " lacking where nothing is",
}


def template_fields(task: Task) -> dict[str, object]:
    """Return the template fields of a task; a field that does not apply is None."""
    condition = None if task.condition is None else task.condition.value
    return {"objects": list(task.objects), "budget": task.budget, "graded": task.graded, "condition": condition}
