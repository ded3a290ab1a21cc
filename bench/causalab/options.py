"""The options of commands that apply to CausaLab: none beside those that are common to all benchmarks."""

from __future__ import annotations

from msgspec import Struct

OPTIONS: dict[str, type[Struct]] = {}
