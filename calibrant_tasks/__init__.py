"""Calibrant's items as a taskset of verifiers, `calibrant-tasks`: from a pool, or drawn without end.

A module at the top level, because verifiers finds a taskset by the name of one. Needs the extra `verifiers`. Rewards
are those of calibrant.rewards; docs/training.md has commands. Traces hold the records, which hold the right answers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrant_tasks.play import ChatHarness, ItemEnv
    from calibrant_tasks.taskset import ItemTaskset

__all__ = ["ChatHarness", "ItemEnv", "ItemTaskset"]

_HOME = {
    "ChatHarness": "calibrant_tasks.play",
    "ItemEnv": "calibrant_tasks.play",
    "ItemTaskset": "calibrant_tasks.taskset",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'calibrant_tasks' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)
