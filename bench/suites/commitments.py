"""Commitments to gold: salted digests that reveal nothing, and their Merkle root, so that items can be opened singly.

An unsalted digest gives gold away: whoever lists the answers that fit can hash each. The salt of an item is
HMAC-SHA256(master, id), 32 bytes; its leaf is SHA-256(salt, gold). Inner nodes hash a byte 1 before their children,
leaves a byte 0 (RFC 6962, section 2.1), so that no inner node can be shown as a leaf.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from calibrant.dsl.errors import CalibrantError

MASTER_DIGITS = 64
PUBLIC_MASTER = sha256(b"calibrant public gold").hexdigest()  # of suites whose gold is there for everybody


class Opening(NamedTuple):
    """Everything that shows one item's gold to be the committed one; path: digests beside the way to the root."""

    id: str
    salt: str
    gold: str
    path: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Commitments:
    """Leaves of the items of a suite, in the order of their ids; root: of their tree."""

    leaves: Sequence[tuple[str, str]]

    @classmethod
    def of_gold(cls, master: str, gold: Iterable[tuple[str, str]]) -> Commitments:
        """Commit to (id, canonical gold) of all items."""
        return cls(sorted((name, commitment(item_salt(master, name), text.encode())) for name, text in gold))

    @property
    def root(self) -> str:
        return self._nodes[-1][0].hex()

    def path(self, name: str) -> tuple[tuple[str, str], ...]:
        """Return (side, digest) of the nodes beside the way from a leaf to the root; `KeyError` for an unknown id."""
        place = self._places[name]
        steps = []
        for level in self._nodes[:-1]:
            sibling = place ^ 1
            if sibling < len(level):
                steps.append(("left" if sibling < place else "right", level[sibling].hex()))
            place //= 2
        return tuple(steps)

    @cached_property
    def _nodes(self) -> list[list[bytes]]:
        return _levels([_leaf(name, digest) for name, digest in self.leaves])

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: k for k, (name, _) in enumerate(self.leaves)}


def item_salt(master: str, name: str) -> str:
    """Return the salt of an item or a file, 64 hexadecimal digits."""
    return hmac.digest(bytes.fromhex(master), name.encode("utf-8", "surrogatepass"), "sha256").hex()


def file_label(master: str, name: str) -> str:
    """Return what a file beside gold is called in public: its name may be an item's, which tells of what is hidden."""
    return hmac.digest(bytes.fromhex(master), b"name " + name.encode("utf-8", "surrogatepass"), "sha256").hex()[:32]


def file_commitment(master: str, name: str, content: bytes) -> str:
    """Return the salted digest of a file beside gold."""
    return commitment(item_salt(master, name), content)


def commitment(salt: str, content: bytes) -> str:
    """Return SHA-256 of salt and content."""
    return sha256(bytes.fromhex(salt) + content).hexdigest()


def check_opening(opening: Opening, root: str) -> bool:
    """Return whether gold and salt of an opening lead to the root."""
    node = _leaf(opening.id, commitment(opening.salt, opening.gold.encode()))
    for side, digest in opening.path:
        sibling = bytes.fromhex(digest)
        node = _inner(sibling, node) if side == "left" else _inner(node, sibling)
    return node.hex() == root


def read_master(path: Path) -> str:
    """Return the master key in a file; `CalibrantError` for anything but 64 hexadecimal digits."""
    with path.open("rb") as file:
        text = file.read(1_000).decode("ascii", "replace").strip().lower()
    if len(text) != MASTER_DIGITS or not set(text) <= set("0123456789abcdef"):
        raise CalibrantError(f"{path.name}: a master is {MASTER_DIGITS} hexadecimal digits; write 32 random bytes so")
    return text


def _leaf(name: str, digest: str) -> bytes:
    return sha256(b"\x00" + name.encode("utf-8", "surrogatepass") + b"\x00" + bytes.fromhex(digest)).digest()


def _inner(first: bytes, second: bytes) -> bytes:
    return sha256(b"\x01" + first + second).digest()


def _levels(leaves: list[bytes]) -> list[list[bytes]]:
    """Return the nodes from the leaves to the root; a node without a sibling moves up as it is."""
    levels = [leaves]
    while len(levels[-1]) > 1:
        level = levels[-1]
        paired = [_inner(level[k], level[k + 1]) for k in range(0, len(level) - 1, 2)]
        levels.append(paired + level[len(paired) * 2 :])
    return levels
