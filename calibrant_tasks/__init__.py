"""Calibrant's items as a taskset of verifiers, `calibrant-tasks`: from a pool, or drawn without end.

A module at the top level, because verifiers finds a taskset by the name of one. Needs the extra `verifiers`. Rewards
are those of calibrant.rewards; docs/training.md has commands. Traces hold the records, which hold the right answers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrant_tasks.taskset import ChatHarness, ItemEnv, ItemTaskset

__all__ = ["ChatHarness", "ItemEnv", "ItemTaskset"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'calibrant_tasks' has no attribute '{name}'")
    return getattr(import_module("calibrant_tasks.taskset"), name)
