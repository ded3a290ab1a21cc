"""Explanations of detectors."""

from __future__ import annotations

from calibrant.audits.blickets.why import DetectorWhy, explain
from calibrant.audits.why import number_text
from calibrant.bench.pages.capabilities import Explainable
from calibrant.bench.pages.design.plots import bar_chart
from calibrant.bench.pages.why.sections import TableExplanations, WhyTable, best_advice, experiment_table


def _advice(why: DetectorWhy) -> tuple[str, ...]:
    return best_advice(why.experiments, "move", "hypotheses")


def _tables(why: DetectorWhy) -> list[WhyTable]:
    full = why.count.total or why.count.lower
    counts = [int(full), *(int(move.remaining) for move in why.moves)]
    labels = ["start", *(str(k) for k in range(1, len(counts)))]
    moves = WhyTable(
        "What was tried",
        "moves in order: what is on the detector, what it read, hypotheses and answers left",
        ("move", "did", "on the detector", "light", "hypotheses", "answers"),
        tuple(
            (
                str(k),
                m.in_words,
                ", ".join(m.placed) or "nothing",
                m.reading,
                number_text(int(m.remaining)),
                str(m.answers),
            )
            for k, m in enumerate(why.moves, 1)
        ),
        chart=bar_chart(labels, counts, "hypotheses left after each move, logarithmic") if why.moves else "",
        numeric=frozenset({0, 4, 5}),
    )
    steps = experiment_table(
        why.experiments, "Every move from here", "what each reading would leave", "move", "hypotheses"
    )
    answers = WhyTable(
        "Answers that fit",
        f"{len(why.answers)} rules, with the hypotheses that give each",
        ("rule", "hypotheses"),
        tuple((share.answer, number_text(int(share.number))) for share in why.answers),
        numeric=frozenset({1}),
    )
    return [steps, moves, answers]


EXPLANATIONS: Explainable = TableExplanations("detectors", explain, _tables, _advice)
