"""Questions of checklists for benchmarks, and how a release answers each.

ABC: the Agentic Benchmark Checklist, numbered as its repository's docs/checklist.md has it (I, II, III; the paper,
arXiv:2507.02825, has O, T, R). BetterBench: arXiv:2411.12990. The wording is ours. A statement is taken from the
table `statements` of suite.toml, under the question's key, or is not stated.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["proof", "measured", "statement", "not applicable"]
NOT_STATED = "not stated"


class Question(NamedTuple):
    """A question; source: its numbers; key: of its answer by proof or measurement, or of its statement."""

    source: str
    text: str
    kind: Kind
    key: str


QUESTIONS = (
    Question("ABC I.a.1, I.a.2 (O.a.1, O.a.2)", "Are equivalent answers accepted?", "measured", "parsing"),
    Question("ABC I.b.1 (O.b.1)", "Is negation in free text handled?", "not applicable", "structured"),
    Question("ABC I.b.2 (O.b.2)", "Does listing several answers pay?", "measured", "listing"),
    Question("ABC I.b.3, I.h.2 (O.b.3, O.h.2)", "What does guessing get?", "measured", "guessing"),
    Question("ABC I.c.1, I.c.2 (O.c.1, O.c.2)", "Is a judge used, and how good is it?", "statement", "judge"),
    Question("ABC I.e.2 (O.e.2)", "Do the tests cover the inputs?", "statement", "input_coverage"),
    Question("ABC I.f.3 (O.f.3)", "Are results the same when scored again?", "measured", "repeatable"),
    Question("ABC I.g.1 (O.g.1)", "Is the ground truth right, and is every right answer accepted?", "proof", "truth"),
    Question("ABC I.h.1 (O.h.1)", "Is the form of answers stated, and does it parse?", "measured", "parsing"),
    Question("ABC I.i.1 (O.i.1)", "Can the metric be gamed without solving?", "measured", "gaming"),
    Question("ABC II.1, II.6 (T.1, T.6)", "Are versions pinned and the environment static?", "proof", "lock"),
    Question("ABC II.2, II.3 (T.2, T.3)", "Are failures of services detected?", "statement", "services"),
    Question("ABC II.4 (T.4)", "Is state cleared between items?", "measured", "repeatable"),
    Question("ABC II.5 (T.5)", "Is gold out of the agent's reach?", "proof", "isolation"),
    Question("ABC II.5 (T.5)", "Is gold out of reach on a submitter's machine?", "statement", "submitter_machine"),
    Question("ABC II.7 (T.7)", "Is each ground truth verified?", "proof", "truth"),
    Question("ABC II.8 (T.8)", "Is each item solvable?", "proof", "solvable"),
    Question("ABC II.9 (T.9)", "Does an oracle solve the items?", "measured", "oracle"),
    Question("ABC II.10 (T.10)", "Are forged submissions refused?", "measured", "forgeries"),
    Question(
        "ABC III.1, III.2 (R.1, R.2)", "Is the benchmark open, with what it needs to run?", "statement", "openness"
    ),
    Question("ABC III.3 (R.3)", "Is contamination guarded against?", "proof", "commitment"),
    Question("ABC III.4 (R.4)", "Is there a plan for updates?", "statement", "updates"),
    Question(
        "ABC III.5, III.6 (R.5, R.6)", "Which ability is measured, and does success show it?", "statement", "construct"
    ),
    Question("ABC III.7, III.8 (R.7, R.8)", "What are known flaws?", "statement", "flaws"),
    Question(
        "ABC III.9 (R.9)", "How large is the effect of flaws: items that the evidence leaves open?", "proof", "open"
    ),
    Question("ABC III.10 (R.10)", "Do results have intervals?", "measured", "intervals"),
    Question("ABC III.11 (R.11)", "How should results be read?", "statement", "reading"),
    Question("ABC III.12 (R.12)", "What do methods without a language model get?", "measured", "rows"),
    Question("ABC III.12 (R.12), BetterBench", "What do people get?", "statement", "human_level"),
    Question("ABC III.13 (R.13)", "What do trivial agents get?", "measured", "gaming"),
    Question("BetterBench", "Were domain experts consulted?", "statement", "experts"),
    Question("BetterBench", "Who can be asked?", "statement", "contact"),
    Question("BetterBench", "When is the benchmark retired?", "statement", "retirement"),
)
STATEMENT_KEYS = tuple(question.key for question in QUESTIONS if question.kind == "statement")
DATASHEET_KEYS = {
    "motivation": "Why was it made?",
    "funding": "Who paid for it?",
    "collection": "How were the items obtained?",
    "preprocessing": "Was anything cleaned or relabelled?",
    "biases": "Which biases are known?",
    "limitations": "What is it not good for?",
    "uses": "What should it be used for?",
    "social_impact": "Which effects on society are expected?",
    "personal_information": "Does it hold personal or sensitive information?",
    "maintenance": "Who maintains it, and how are errors reported?",
}
"""Further statements, of the datasheet (Gebru et al., arXiv:1803.09010) and of Croissant's RAI fields."""
KEYS = (*dict.fromkeys((*STATEMENT_KEYS, *DATASHEET_KEYS)),)
