"""Title, reason and facts of a question in words."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.audits.causim.why.parts import Branch
from calibrant.audits.why import Fact, Span, State, listed, number_text, spans
from calibrant.solvers.causim.exact import AnswerSet


def title(state: State, number: int | None) -> str:
    if state == "decided":
        return "Why is one answer right?"
    if number is None:
        return "Why are several answers right?"
    return f"Why {'is no answer' if not number else f'are {number_text(number)} answers'} right?"


def reason(
    state: State,
    number: int | None,
    members: AnswerSet,
    unknown: Sequence[str],
    open_keys: Sequence[str],
    reveal: Sequence[str],
    branch: Branch | None,
) -> tuple[Span, ...]:
    if state == "empty":
        return spans("No world agrees with what was observed, so nothing is right.")
    if state == "decided":
        return spans("All worlds that fit give the same answer.")
    if state == "uncounted" or number is None:
        return spans(f"{number_text(members.fitting)} worlds fit; their answers were not all listed.")
    if branch is not None and reveal == (branch.noise,):
        test = branch.condition.removeprefix("el").removeprefix("if ")
        kind = "whether" if test != branch.condition else "the line"
        return spans((branch.noise,), f" is not given, and {kind} ", (test,), f" decides {listed(list(open_keys))}.")
    if reveal and set(reveal) == set(open_keys):
        verb = "is" if len(reveal) == 1 else "are"
        return spans(
            (listed(list(reveal)),), f" {verb} asked for, and {number_text(number)} answers agree with what is given."
        )
    if reveal:
        names = listed(list(reveal))
        verb = "is not given, and its value decides" if len(reveal) == 1 else "are not given, and their values decide"
        return spans((names,), f" {verb} {listed(list(open_keys))}.")
    if unknown:
        return spans(
            (listed(list(unknown)),), f" are not given; {number_text(number)} answers follow from their values."
        )
    return spans(f"{number_text(members.fitting)} worlds fit, and {number_text(number)} answers follow from them.")


def facts(
    state: State,
    number: int | None,
    members: AnswerSet,
    open_keys: Sequence[str],
    keys: Sequence[str],
    reveal: Sequence[str],
) -> tuple[Fact, ...]:
    text = "answers not counted" if number is None else f"{number_text(number)} answer{'s' * (number != 1)} right"
    listed_facts = [Fact(text, "good" if state == "decided" else "warn")]
    listed_facts.append(Fact(f"{number_text(members.fitting)} world{' fits' if members.fitting == 1 else 's fit'}"))
    if open_keys:
        listed_facts.append(Fact(f"open: {listed(list(open_keys))}"))
        rest = [k for k in keys if k not in open_keys]
        if rest:
            listed_facts.append(Fact(f"decided: {listed(rest)}"))
    if reveal:
        amount = "one value" if len(reveal) == 1 else f"{len(reveal)} values"
        listed_facts.append(Fact(f"revealing {amount} leaves one answer, whatever the value"))
    return tuple(listed_facts)
