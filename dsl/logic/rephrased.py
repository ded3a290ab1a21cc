"""The prompt of an item in other words; `prompt` has the standard text."""

from __future__ import annotations

from typing import Final

from calibrant.dsl.text import Phrases

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
