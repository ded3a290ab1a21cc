"""Items, pools of items, and messages to language models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypedDict, TypeVar, overload

from calibrant.dsl.errors import UnknownItemError, in_one_line, short_repr
from calibrant.dsl.pictures import MAX_PICTURE_ROWS, Picture, Pictured
from calibrant.dsl.text import plural

# --- Items, with a part that a solver may read and a sealed one, and pools --------------------------------------------
T_co = TypeVar("T_co", covariant=True)
S_co = TypeVar("S_co", covariant=True)


class Item(Protocol[T_co, S_co]):
    """One item of a pool.

    id: unique in its pool
    benchmark: name of the benchmark that it belongs to
    setting: the row group of tables that it counts in (a disclosure, a condition)
    stratum: the generator's finer group; empty without one
    task: all that a solver may read
    sealed: what only the evaluator, the audits and an episode may read
    """

    @property
    def id(self) -> str: ...
    @property
    def benchmark(self) -> str: ...
    @property
    def setting(self) -> str: ...
    @property
    def stratum(self) -> str: ...
    @property
    def task(self) -> T_co: ...
    @property
    def sealed(self) -> S_co: ...


I_co = TypeVar("I_co", bound=Item[Any, Any], covariant=True)


@dataclass(frozen=True)
class Pool(Pictured, Generic[I_co]):
    """The items of one file, all of one benchmark, with the file's metadata.

    items: a tuple, or for a large file a sequence that decodes items on access (dsl.records)
    file: path that it was read from; None if it was not

    Iterable; `pool[0]` and `pool["id"]` are items, a slice is a pool. `UnknownItemError` names ids close to an unknown.
    """

    name: str
    benchmark: str
    items: Sequence[I_co]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    file: Path | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[I_co]:
        return iter(self.items)

    @overload
    def __getitem__(self, which: int | str) -> I_co: ...
    @overload
    def __getitem__(self, which: slice) -> Pool[I_co]: ...
    def __getitem__(self, which: int | str | slice) -> I_co | Pool[I_co]:
        if isinstance(which, slice):
            return replace(self, items=self.items[which])
        return self._of_id(which) if isinstance(which, str) else self.items[which]

    def _of_id(self, item_id: str) -> I_co:
        for item in self.items:
            if item.id == item_id:
                return item
        ids = [item.id for item in self.items]
        close = [candidate for candidate in ids if item_id in candidate] or ids
        listed = ", ".join(map(short_repr, close[:3])) + (", ..." if len(close) > 3 else "")
        raise UnknownItemError(
            f"pool {short_repr(self.name)} has no item {short_repr(item_id)}; there is {listed or 'none'}"
        )

    def picture(self) -> Picture:
        """Return the first items, as a table."""
        items = self.items[:MAX_PICTURE_ROWS]
        rows = tuple((item.id, item.setting, item.stratum) for item in items)
        facts = (self.benchmark, plural(len(self), "items"))
        columns = ("item", "setting", "stratum")
        return Picture(f"Pool {self.name}", facts, columns=columns, rows=rows, num_rows=len(self))

    def __repr__(self) -> str:
        return f"<Pool {in_one_line(self.name)[:60]}: {plural(len(self), 'items')} of {self.benchmark}>"


# --- Chat messages between an item and a language model ---------------------------------------------------------------


class Message(TypedDict):
    """One message; `role` is its speaker."""

    role: Literal["system", "user", "assistant"]
    content: str


Model: TypeAlias = Callable[[Sequence[Message]], str]  # all messages so far -> the next reply; its text is untrusted
