"""Verdicts on answers: what a line of `calibrant score` has beside a benchmark's own fields, and verdicts made late."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta

LINE_KEYS = {"instance_id": "instanceId", "pool_digest": "poolDigest", "pool_size": "poolSize"}
"""The keys of a line that differ from the names of their fields."""


class LineHead(msgspec.Struct, kw_only=True):
    """Beginning of a line, after the name of its benchmark."""

    instance_id: Annotated[str, Meta(description="id of the item")]
    model: Annotated[str | None, Meta(description="who answered; null if the prediction names no model")]
    sample: Annotated[int, Meta(description="number among that model's answers to the item")]


class LineTail(msgspec.Struct, kw_only=True):
    """End of a line: where the item belongs."""

    pool: Annotated[str, Meta(description="name of the pool")]
    pool_digest: Annotated[str, Meta(description="SHA-256 of what the pool's file holds, decompressed")]
    pool_size: Annotated[int, Meta(description="how many items the pool has; 0 for a log that brings its items along")]
    setting: Annotated[
        str, Meta(description="row group of tables: the disclosure, or the published table that the pool belongs to")
    ]
    stratum: Annotated[str, Meta(description="the finer group of the generator; empty if there is none")]
    seconds: Annotated[
        float | None, Meta(description="seconds that the answer took; null where the prediction has none")
    ]


def line_struct(
    name: str, benchmark: str, score: type[msgspec.Struct], description: str, **fields: Any
) -> type[msgspec.Struct]:
    """Return the Struct of a line of `calibrant score`: benchmark, head, fields of the score, other fields, tail."""
    named = Annotated[Literal[benchmark], Meta(description=benchmark)]  # type: ignore[valid-type]  # a value
    keys = {field.name: field.encode_name for field in msgspec.structs.fields(score)}
    return msgspec.defstruct(
        name,
        [
            ("benchmark", named),
            *_fields(LineHead),
            *_fields(score),
            *fields.items(),
            *_fields(LineTail),
        ],
        namespace={"__doc__": description},
        rename=keys | LINE_KEYS,
        forbid_unknown_fields=True,
        kw_only=True,
    )


def _fields(struct: type[msgspec.Struct]) -> Iterator[tuple[str, Any] | tuple[str, Any, Any]]:
    hints = get_type_hints(struct, include_extras=True)
    for field in msgspec.structs.fields(struct):
        pair = field.name, hints[field.name]
        yield pair if field.default is msgspec.NODEFAULT else (*pair, field.default)


class LazyVerdict(Mapping[str, Any]):
    """A score under its keys that is made when it is first read, and what tables need to know of it before.

    counted: equal for scores of one benchmark that count the same in all columns, whatever their setting
    meaning: as in samples
    unread: why the response has no answer; empty if it has one
    """

    __slots__ = ("_made", "_make", "counted", "meaning", "unread")

    def __init__(
        self, make: Callable[[], dict[str, Any]], counted: Hashable, meaning: str | None, unread: str = ""
    ) -> None:
        self._make = make
        self._made: dict[str, Any] | None = None
        self.counted = counted
        self.meaning = meaning
        self.unread = unread

    @property
    def made(self) -> dict[str, Any]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __getitem__(self, key: str) -> Any:
        return self.made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.made)

    def __len__(self) -> int:
        return len(self.made)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return dict, (self.made,)  # elsewhere nobody can make it
