"""The prompt of a laboratory in other words; `prompt` has the standard text."""

from __future__ import annotations

from typing import Final

from calibrant.dsl.causalab.mechanism import FREQUENCY
from calibrant.dsl.texts.rewording import Phrases

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
