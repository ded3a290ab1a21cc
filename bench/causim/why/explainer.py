"""Explanations of questions about programs."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.audits.causim.why import QuestionWhy, explain
from calibrant.audits.why import listed, number_text
from calibrant.bench.pages.capabilities import Explainable
from calibrant.bench.pages.why.sections import TableExplanations, WhyTable, experiment_table

MAX_VALUES = 8  # of a noise variable that a row lists


def _advice(why: QuestionWhy) -> tuple[str, ...]:
    if why.state != "open":
        return ()
    if not why.reveal:
        return ("What would settle it", "More than three further values, or worlds that were not all listed.")
    number = "one value decides" if len(why.reveal) == 1 else f"{len(why.reveal)} values together decide"
    sentence = f"Reveal {listed(list(why.reveal))}: whatever the value, one answer is left."
    return (
        f"The fewest further values: {number}",
        sentence,
        "calibrant harden reveals what is needed in the true world.",
    )


def _tables(why: QuestionWhy) -> list[WhyTable]:
    keys = [key for key in (*why.decided, *why.open) if not why.open or key in why.open]
    groups = WhyTable(
        "What follows",
        "every right answer by its open variables, and the noise that gives it",
        (*why.unknown, *keys, "worlds"),
        tuple(
            (
                *(_values(group.noise.get(u, ())) for u in why.unknown),
                *(group.answer.get(key, "") for key in keys),
                number_text(int(group.worlds)),
            )
            for group in why.groups
        ),
        numeric=frozenset({len(why.unknown) + len(keys)}),
    )
    values = experiment_table(
        why.experiments, "What revealing one value would leave", "over the values that it may have", "reveal", "worlds"
    )
    return [groups, values]


def _values(values: Sequence[str]) -> str:
    more = f" and {len(values) - MAX_VALUES} more" if len(values) > MAX_VALUES else ""
    return ", ".join(values[:MAX_VALUES]) + more


EXPLANATIONS: Explainable = TableExplanations("questions", lambda item, steps: explain(item), _tables, _advice)
