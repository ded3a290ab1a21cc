"""The items of a pool that predictions may be about, by either id, with the digests of their prompts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from calibrant.bench.scoring.ids import PublicIds
from calibrant.dsl.errors import CalibrantError, short_repr

PROMPT_DIGEST = "promptDigest"  # of a line: `prompt_digest` of the prompt that it answers


def prompt_digest(prompt: str) -> str:
    """Return the SHA-256 of a prompt in hexadecimal."""
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()


class PoolItems(NamedTuple):
    """The items of one pool that predictions may be about.

    names: what a line's `pool` may call it; public: the public ids of its items
    prompt: from the pool's id of an item to its prompt, as `calibrant prompts` writes it
    """

    digest: str
    names: tuple[str, ...]
    instances: Collection[str]
    public: PublicIds | None = None
    prompt: Callable[[str], str] | None = None

    def item_id(self, name: str) -> str | None:
        """Return the pool's id of an item by either id; None if it has no such item."""
        if name in self.instances:
            return name
        return None if self.public is None else self.public.item_id(name)

    def check_prompt(self, item_id: str, line: Mapping[str, Any]) -> None:
        """Refuse a line that was made from another prompt: ids may be equal where items are not."""
        stated = line.get(PROMPT_DIGEST)
        if stated is None or self.prompt is None:
            return
        digest = prompt_digest(self.prompt(item_id))
        if stated != digest:
            raise CalibrantError(
                f"{PROMPT_DIGEST} of {short_repr(item_id)} is {short_repr(stated)}, and that of the pool's item "
                f"{digest}: the line answers another item of that id; give the pool that it was made from"
            )
