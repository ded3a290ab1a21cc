"""Public ids of items, and items as solvers and models may see them under these ids.

The key (the salt) is a digest of the pool file, the sealed part included, under a prefix of its own. Whoever has the
file can map public ids back; a published digest of the pool gives no key, and the same file gives the same ids.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from calibrant.bench.core.benchmark import Benchmark
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.item import Item
from calibrant.dsl.records import item_ids, pool_digest

# --- Public ids of items: an id such as `order-3-7` names what is hidden, so what is published has keyed
# digests instead
SALT_PREFIX = b"calibrant public ids\n"
NUM_DIGITS = 16  # 64 bits: two of 100,000 items share an id in one of four billion pools


class PublicIds:
    """The public ids of the items of a pool.

    salt: 64 hexadecimal digits, or the pool file whose digest it is; it belongs with gold
    ids: the pool's own, for the way back
    """

    def __init__(self, salt: str | Path, ids: Sequence[str] = ()) -> None:
        self._salt = salt
        self._ids = ids

    @classmethod
    def of_pool(cls, path: Path, items: Sequence[Item[Any, Any]]) -> PublicIds:
        """Return the ids of the items of a pool file; the file is read when the first is asked for."""
        return cls(path, item_ids(items))

    @classmethod
    def of_seed(cls, benchmark: str, seed: int) -> PublicIds:
        """Return the ids of items that are drawn and in no file."""
        return cls(sha256(SALT_PREFIX + f"{benchmark} {seed}".encode()).hexdigest())

    @cached_property
    def salt(self) -> str:
        return pool_digest(self._salt, prefix=SALT_PREFIX) if isinstance(self._salt, Path) else self._salt

    def public(self, item_id: str) -> str:
        """Return the public id of an item; it begins with letters, so that no reader takes it for a number."""
        digest = hmac.digest(self._key, item_id.encode("utf-8", "surrogatepass"), "sha256")
        return f"item-{digest.hex()[:NUM_DIGITS]}"

    def item_id(self, public: str) -> str | None:
        """Return the pool's id behind a public one, None if there is none."""
        return self._by_public.get(public)

    @cached_property
    def _key(self) -> bytes:
        return bytes.fromhex(self.salt)

    @cached_property
    def _by_public(self) -> Mapping[str, str]:
        return {self.public(item_id): item_id for item_id in self._ids}


# --- Items as solvers and models may see them: under public ids, with the fields that their benchmark declares public
I = TypeVar("I", bound=Item[Any, Any])  # noqa: E741  # an item


class PublicPool:
    """The items of a pool file by either id, and what may be shown of them."""

    def __init__(self, benchmark: Benchmark[Any], path: Path) -> None:
        self.benchmark = benchmark
        self.items: Any = benchmark.items.read_pool(path)
        self.ids = PublicIds.of_pool(path, self.items.items)

    def item(self, name: str | None) -> Any:
        """Return the item of that id, public or the pool's own, by default the first; `CalibrantError` if none."""
        return self.benchmark.items.find(self.items, None if name is None else self.own_id(name))

    def own_id(self, name: str) -> str:
        """Return the pool's id for either id; an unknown name as it is."""
        return self.ids.item_id(name) or name

    def shown(self, item: I) -> I:
        """Return the item under its public id."""
        return with_id(item, self.ids.public(item.id))

    def check(self, names: Iterable[str]) -> frozenset[str]:
        """Return the pool's ids of these names; `CalibrantError` for one that is unknown."""
        return frozenset(self.item(name).id for name in names)


def with_id(item: I, item_id: str) -> I:
    """Return the item under another id."""
    changed: I = replace(item, id=item_id)  # type: ignore[type-var]  # items of all benchmarks are dataclasses
    return changed


def public_record(benchmark: Benchmark[Any], item: Any) -> dict[str, Any]:
    """Return what of an item's native record may be shown, in its order, ready for JSON."""
    record = benchmark.items.shown_record(item)
    undeclared = record.keys() - set(benchmark.items.public_fields)
    if undeclared:
        raise CalibrantError(f"fields that are not declared public: {', '.join(sorted(undeclared))}")
    return record
