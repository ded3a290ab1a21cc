"""What a row gives to be scored."""

from __future__ import annotations

from typing import Any

from calibrant.bench.protocols import ProtocolResult
from calibrant.bench.replayscm.rows.exact import no_answer
from calibrant.dsl.replayscm.item import Task


def answered(task: Task, result: ProtocolResult) -> dict[str, Any]:
    """Return the answer of a row, or what stands in for it."""
    return no_answer(task.kind) if result.answer is None else result.answer
