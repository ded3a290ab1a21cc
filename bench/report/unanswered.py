"""Why protocols found nothing: a line for every system that exhausted its class or ran out of budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from calibrant.bench.core.scoring import PEOPLE_SYSTEM, AnswerContext, participant_of
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.text import plural

MAX_REASON_CHARS = 160
_OUTCOMES = {
    "impossible": "nothing of the class fits (exhausted: {})",
    "out_of_budget": "unanswered within the budget ({})",
}


class UnansweredCounts:
    """Collects outcomes of answers; what is found, or comes from no protocol, is not counted."""

    def __init__(self) -> None:
        self._reasons: dict[tuple[str, str], Counter[str]] = {}

    def add(self, context: AnswerContext) -> None:
        """Count an answer under its system and outcome."""
        if context.outcome in _OUTCOMES:
            system = PEOPLE_SYSTEM if participant_of(context.system) else context.system
            self._reasons.setdefault((system, context.outcome), Counter())[context.reason] += 1

    def lines(self) -> Iterator[str]:
        """Yield a line for each system and outcome: how many items, and the most frequent reason; people are one."""
        for (system, outcome), reasons in sorted(self._reasons.items()):
            number = sum(reasons.values())
            reason = min(reasons, key=lambda reason_text: (-reasons[reason_text], reason_text))
            num_others = len(reasons) - 1
            text = in_one_line(reason)[:MAX_REASON_CHARS] or "no reason recorded"
            more = f"; {plural(num_others, 'other reasons')}" if num_others else ""
            if system == PEOPLE_SYSTEM:
                yield f"{system}: {number} answer{'s are' if number > 1 else ' is'} missing ({text}{more})"
                continue
            items = plural(number, "items")
            yield f"{in_one_line(system)}: {items}: {_OUTCOMES[outcome].format(text + more)}"
