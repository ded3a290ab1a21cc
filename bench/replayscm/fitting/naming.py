"""Names inside formulas and items, and the user's own names in everything that is printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from markupsafe import escape

from calibrant.bench.replayscm.fitting.columns import quote_name


@dataclass(frozen=True)
class Naming:
    """Legal names of columns and the raw ones, in the same order."""

    legal: Sequence[str]
    raw: Sequence[str]

    @cached_property
    def _changed(self) -> Mapping[str, str]:
        return {a: b for a, b in zip(self.legal, self.raw, strict=True) if a != b}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(r"\b(" + "|".join(map(re.escape, self._changed)) + r")\b")

    def to_legal(self, name: str) -> str:
        """Return the legal name of a column."""
        return self.legal[list(self.raw).index(name)]

    def to_raw(self, name: str) -> str:
        """Return the raw name of a column."""
        return self._changed.get(name, name)

    def text(self, text: str) -> str:
        """Return a text with names as they stand in formulas."""
        return self._replace(text, quote_name)

    def markup(self, page: str) -> str:
        """Return HTML or SVG with raw names."""
        return self._replace(page, lambda name: str(escape(name)))

    def value(self, value: Any) -> Any:
        """Return a value for JSON with raw names; inside longer texts they stand as in formulas."""
        if isinstance(value, str):
            return self._changed.get(value) or self.text(value)
        if isinstance(value, Mapping):
            return {self.value(key): self.value(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(entry) for entry in value]
        return value

    def _replace(self, text: str, form: Callable[[str], str]) -> str:
        if not self._changed:
            return text
        return self._pattern.sub(lambda match: form(self._changed[match[1]]), text)
