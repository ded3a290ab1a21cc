"""Reason and facts of a detector in words."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.audits.why import Experiment, Fact, Span, State, listed, number_text, spans
from calibrant.dsl.text import plural
from calibrant.solvers.blickets.exact import DetectorSpace


def reason(
    state: State, space: DetectorSpace, words: Sequence[str], witness: tuple[str, ...] | None, num_moves: int
) -> tuple[Span, ...]:
    if state == "empty":
        return spans("No hypothesis of the class that the task states gives these readings.")
    if state == "decided":
        return spans("The readings leave one rule: ", (words[0],), ".")
    if not num_moves:
        return spans(f"Nothing was placed yet: {number_text(space.count)} hypotheses fit, with {len(words)} answers.")
    if witness is not None:
        alone = listed(list(witness)) + (" alone" if len(witness) == 1 else " and nothing else")
        if len(words) == 2:
            fit = f"Two rules fit, {words[0]} and {words[1]}."
        else:
            fit = f"{number_text(space.count)} rules fit, {words[0]} and {words[1]} among them."
        return spans("The detector was never read with ", (alone,), f" on it. {fit}")
    return spans(
        f"{number_text(space.count)} hypotheses give these readings, with ", (f"{len(words)} answers",), " among them."
    )


def facts(
    space: DetectorSpace,
    full: int,
    words: Sequence[str],
    decided: Sequence[str],
    objects: Sequence[str],
    experiments: Sequence[Experiment],
) -> tuple[Fact, ...]:
    tone = "good" if len(words) == 1 else "warn" if words else "bad"
    listed_facts = [Fact(f"{number_text(space.count)} of {number_text(full)} hypotheses fit", tone)]  # type: ignore[arg-type]
    listed_facts.append(Fact(plural(len(words), "answers")))
    if 0 < len(decided) < len(objects):
        listed_facts.append(Fact(f"the same in all: {listed(list(decided))}"))
    listed_facts.append(Fact(space.in_words))
    if experiments:
        listed_facts.append(Fact("1 move decides" if experiments[0].decides else "no single move is sure to decide"))
    return tuple(listed_facts)
