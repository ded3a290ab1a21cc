"""Messages between an item and a language model, in the form that chat interfaces take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, TypedDict


class Message(TypedDict):
    """One message; `role` says who speaks."""

    role: Literal["system", "user", "assistant"]
    content: str


Model: TypeAlias = Callable[[Sequence[Message]], str]  # all messages so far -> the next reply; its text is untrusted
