"""Numbers of the answers of one model to one item."""

from __future__ import annotations

from typing import TypeAlias

from calibrant.dsl.errors import CalibrantError, short_repr

SampleKey: TypeAlias = tuple[str, str, str | None]  # digest of the pool, item, model


class SampleNumbers:
    """Numbers answers in the order of the file, unless a line states its own number."""

    def __init__(self) -> None:
        self._counts: dict[SampleKey, int] = {}
        self._stated: set[tuple[SampleKey, int]] = set()

    def number(self, key: SampleKey, stated: int | None) -> int:
        """Return the number of the next answer; `CalibrantError` for one that was used."""
        if stated is None:
            number = self._counts.get(key, 0)
            while (key, number) in self._stated:
                number += 1
            self._counts[key] = number + 1
            return number
        if (key, stated) in self._stated or stated < self._counts.get(key, 0):
            _, instance, model = key
            raise CalibrantError(f"a second sample {stated} of model {short_repr(model)} for {short_repr(instance)}")
        self._stated.add((key, stated))
        return stated
