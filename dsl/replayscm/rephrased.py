"""The prompt of plain and passive items in other words, and worlds as tables; `prompt` has the standard text."""

from __future__ import annotations

from typing import Final

from calibrant.dsl.text import Phrases

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
