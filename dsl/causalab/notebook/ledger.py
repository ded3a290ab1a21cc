"""The ledger of a notebook: what a system copies into `past_data`, beside what it was shown.

Every reading is known, so nothing here is estimated. An entry is `right` if it names all nodes and agrees with one
reading in each of them, `altered` if it agrees with one in more than half of its numbers, else `invented`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from calibrant.dsl.causalab.hypothesis import node_name
from calibrant.dsl.causalab.mechanism import FREQUENCY, Values
from calibrant.dsl.causalab.notebook.reply import EXPERIMENT, TARGET, VALUE, resolved_property

PAST = "past_data"
PROPERTIES, FREQUENCY_KEY = "props", "freq"
TARGET_VALUE = "target_value"
WITHIN = 0.005  # half of the last digit that is shown
MAX_ENTRIES = 1_000  # of one reply; what comes after them is not read


class EntryKind(StrEnum):
    """Agreement of an entry of `past_data` with the readings."""

    RIGHT = "right"
    ALTERED = "altered"
    INVENTED = "invented"


@dataclass
class Ledger:
    """Totals over the replies of a run.

    entries: by kind, over all replies
    missing: readings that the last notebook does not have; None before any notebook
    dropped: entries that a notebook had and the next one has not
    unannounced: actions that are not the announced experiment; announced: replies with an experiment
    """

    entries: dict[EntryKind, int] = field(default_factory=lambda: dict.fromkeys(EntryKind, 0))
    missing: int | None = None
    dropped: int = 0
    announced: int = 0
    unannounced: int = 0
    _previous: list[dict[str, float]] | None = None

    def add(self, raw: Mapping[str, Any], readings: Sequence[Values], properties: Sequence[str]) -> None:
        """Count a reply.

        readings: those before it; properties: of the item
        """
        self._add_announcement(raw, properties)
        if not isinstance(raw.get(PAST), list):
            return
        entries = [read_entry(entry, properties) for entry in raw[PAST][:MAX_ENTRIES]]
        copied: set[int] = set()
        for entry in entries:
            kind, place = classify_entry(entry, readings, properties)
            self.entries[kind] += 1
            if kind is EntryKind.RIGHT and place is not None:
                copied.add(place)
        # equal readings are one fact: one entry stands for all of them
        distinct = [i for i, reading in enumerate(readings) if reading not in readings[:i]]
        self.missing = sum(not any(readings[i] == readings[j] for j in copied) for i in distinct)
        if self._previous is not None:
            self.dropped += sum(entry not in entries for entry in self._previous)
        self._previous = entries

    def _add_announcement(self, raw: Mapping[str, Any], properties: Sequence[str]) -> None:
        experiment = raw.get(EXPERIMENT)
        target = experiment.get(TARGET) if isinstance(experiment, Mapping) else None
        if not isinstance(experiment, Mapping) or not target:
            return
        self.announced += 1
        stated = experiment.get(TARGET_VALUE)
        # a reply with an action ends the run or tries the reactor: it carries out no experiment
        is_set = resolved_property(target, properties) in properties and "action" not in raw
        if not is_set or (stated is not None and not _close(stated, raw.get(VALUE))):
            self.unannounced += 1

    def as_json(self) -> dict[str, Any]:
        """Return totals and the share of each kind, None without entries, ready for JSON."""
        total = sum(self.entries.values())
        shares = {f"{kind}_share": count / total if total else None for kind, count in self.entries.items()}
        return {
            "entries": total,
            **shares,
            "missing": self.missing,
            "dropped": self.dropped,
            "announced": self.announced,
            "unannounced": self.unannounced,
        }


def read_entry(entry: object, properties: Sequence[str]) -> dict[str, float]:
    """Return the numbers of an entry by node; names may differ in case, blanks, `_` and `-`."""
    if not isinstance(entry, Mapping):
        return {}
    numbers: dict[str, float] = {}
    values = entry.get(PROPERTIES)
    for name, value in values.items() if isinstance(values, Mapping) else ():
        node = node_name(resolved_property(name, properties))
        if (number := _number(value)) is not None:
            numbers[node] = number
    if (frequency := _number(entry.get(FREQUENCY_KEY))) is not None:
        numbers[FREQUENCY] = frequency
    return numbers


def classify_entry(
    entry: Mapping[str, float], readings: Sequence[Values], properties: Sequence[str]
) -> tuple[EntryKind, int | None]:
    """Return the kind of an entry, and the index of the reading that it agrees with most; None for an invented one."""
    agreements = [
        sum(node in reading and abs(value - reading[node]) <= WITHIN for node, value in entry.items())
        for reading in readings
    ]
    best = max(range(len(readings)), key=lambda i: agreements[i], default=None)
    if best is None or 2 * agreements[best] <= len(entry):
        return EntryKind.INVENTED, None
    is_complete = entry.keys() == {*properties, FREQUENCY}
    return (EntryKind.RIGHT if is_complete and agreements[best] == len(entry) else EntryKind.ALTERED), best


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _close(stated: object, value: object) -> bool:
    first, second = _number(stated), _number(value)
    return first is not None and second is not None and abs(first - second) <= WITHIN
