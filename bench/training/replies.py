"""Completions as trainers hand them over: a text, or the messages that a conversation went on with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Completion: TypeAlias = str | Sequence[Mapping[str, Any]]


def replies(completion: object) -> list[str] | None:
    """Return what the model said, one text a message; None for what is no completion.

    completion: a text, or messages with `role` and `content` as chat interfaces have them; roles other than
        `assistant` are what it was told, and are left out. Of content in parts only texts count.
    """
    if isinstance(completion, str):
        return [completion]
    if not isinstance(completion, Sequence) or not all(isinstance(message, Mapping) for message in completion):
        return None
    return [_text(message.get("content")) for message in completion if message.get("role") == "assistant"]


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    parts = (part.get("text") for part in content if isinstance(part, Mapping))
    return "".join(part for part in parts if isinstance(part, str))
