"""Context of an answer: whose it is, about which item of which pool, and how it was obtained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

ID_FIELDS = ("instanceId", "custom_id", "id", "item_id", "task_id", "sample_id", "instance")  # of lines about an item
NO_MODEL = "(no model)"  # the system of predictions that name none
PEOPLE = "human:"  # before a participant's id, as the system of an answer
PEOPLE_SYSTEM = "people"  # the name of a group, before the number of its participants


def participant_of(system: str) -> str:
    """Return the participant whose answers a system's are; empty for a system that is none."""
    return system.removeprefix(PEOPLE) if system.startswith(PEOPLE) else ""


class AnswerContext(NamedTuple):
    """Everything that a table needs of one scored answer besides its score.

    config: the options of a protocol, empty for models; outcome: of a protocol only
    seconds: the time that the answer took, where it is known; sample: its number among a system's answers to the item
    benchmark: of the pool
    reason: of a protocol without a result: what it exhausted, or how far it came
    is_tied: whether the score is a mean over answers that are as good as the chosen one (bench.core.verdict.MeanScore)
    is_chosen: whether the score is that of the chosen one of them, which has a row of its own
    """

    system: str
    pool: str
    pool_digest: str
    pool_size: int
    instance: str
    setting: str
    stratum: str
    config: Mapping[str, Any] = {}
    outcome: str | None = None
    seconds: float | None = None
    sample: int = 0
    benchmark: str = ""
    reason: str = ""
    is_tied: bool = False
    is_chosen: bool = False

    @property
    def options(self) -> str:
        """Return the options as text, equal for equal ones."""
        return options_text(self.config)


def options_text(config: Mapping[str, Any]) -> str:
    """Return the options of a protocol as text, equal for equal ones in any order; never empty."""
    return repr(sorted(config.items()))
