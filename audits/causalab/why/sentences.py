"""Reason and facts of a laboratory in words; frequency and graph in separate sentences."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.audits.why import AnswerShare, Experiment, Fact, Span, State, listed, number_text, spans
from calibrant.dsl.text import plural

UNKNOWN = "not shown"  # the frequency, where the reactor hides a cause of it


def reason(
    state: State, frequencies: Sequence[AnswerShare], open_edges: int, certain_edges: int, never_set: Sequence[str]
) -> tuple[Span, ...]:
    """Return two sentences: the frequency, then the graph."""
    if state == "empty":
        return spans("No mechanism of the class gives these readings.")
    values = [share.answer for share in frequencies if share.answer != UNKNOWN]
    if len(frequencies) == 1 and values:
        first = spans("The frequency is decided: ", (values[0],), ". ")
    elif not values:
        first = spans("The frequency is open: ", ("the reactor does not show what causes it",), ". ")
    else:
        hidden = ", and in some the reactor hides what causes it" if len(values) < len(frequencies) else ""
        first = spans("The frequency is open: ", (f"{_numbered(values, 'value fits', 'values fit')}{hidden}",), ". ")
    if not open_edges:
        return (*first, *spans(f"The graph is decided: {plural(certain_edges, 'edges')}."))
    stay = f"The graph is not: {_in_words(open_edges)} edge{'s stay' if open_edges > 1 else ' stays'} open"
    if len(values) != 1 or len(frequencies) != 1:
        stay = stay.replace("The graph is not", "The graph is open too", 1)
    if not never_set:
        return (*first, *spans(f"{stay} though each of their causes was set."))
    if len(never_set) == 1:
        return (*first, *spans(f"{stay}, because ", (never_set[0],), " was not set."))
    if len(never_set) == 2:
        return (*first, *spans(f"{stay}, because neither ", (never_set[0],), " nor ", (never_set[1],), " was set."))
    return (*first, *spans(f"{stay}, because ", (listed(list(never_set)),), " were not set."))


def uncounted_reason(cause: str) -> tuple[Span, ...]:
    return spans("The mechanisms that fit are not counted: ", (cause,), ".")


def facts(
    state: State,
    count_words: str,
    frequencies: Sequence[AnswerShare],
    numbers: tuple[int, int, int],
    class_words: str,
    experiments: Sequence[Experiment],
    *,
    weighted: bool,
) -> tuple[Fact, ...]:
    """Return the facts; numbers: of edges that are proven, open and ruled out; count_words: how many mechanisms fit."""
    proven, num_open, num_ruled_out = numbers
    if len(frequencies) == 1 and frequencies[0].answer != UNKNOWN:
        listed_facts = [Fact(f"frequency decided: {frequencies[0].answer}", "good")]
    else:
        listed_facts = [Fact(f"{len(frequencies)} frequencies", "warn")]
    words = "mechanisms weighted by their noise" if weighted else count_words
    listed_facts.append(Fact(words, "good" if state == "decided" else "warn"))
    listed_facts.append(Fact(f"{plural(proven, 'edges')} proven", "good" if proven else ""))
    if num_open:
        listed_facts.append(Fact(f"{num_open} open, {num_ruled_out} ruled out", "warn"))
    listed_facts.append(Fact(class_words))
    if experiments:
        listed_facts.append(
            Fact("one setting decides" if experiments[0].decides else "no single setting is sure to decide")
        )
    return tuple(listed_facts)


def share_text(number: int, total: int, *, weighted: bool) -> str:
    """Return how many of all mechanisms; as percent where they are weighted, never 0 or 100 of what is open."""
    if not weighted:
        return f"{number_text(number)} of {number_text(total)}"
    percent = 100 * number / total
    if 0 < percent < 1:
        return "below 1 %"
    return "above 99 %" if 99 < percent < 100 else f"{percent:.0f} %"


def _numbered(entries: Sequence[str], singular: str, plural: str) -> str:
    return f"{len(entries)} {singular if len(entries) == 1 else plural}"


def _in_words(number: int) -> str:
    names = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return names[number] if number < len(names) else str(number)
