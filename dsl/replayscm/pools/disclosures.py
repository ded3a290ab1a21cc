"""Disclosures in pool files: the record of each, what it means, and how it is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, TypeAlias, get_args

import msgspec
from msgspec import Meta

from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.replayscm.disclosure import Blocks, Disclosure, HiddenOrder, HiddenRoots, Ordered, natural


class OrderedRecord(msgspec.Struct, forbid_unknown_fields=True, tag="ordered", tag_field="type"):
    """The full order is disclosed."""

    order: Annotated[list[str], Meta(description="every variable, causes before effects")]
    roots: Annotated[list[str], Meta(description="names of the variables without a mechanism")]


class BlocksRecord(msgspec.Struct, forbid_unknown_fields=True, tag="blocks", tag_field="type"):
    """Coarse precedence blocks are disclosed."""

    blocks: Annotated[list[list[str]], Meta(description="in their order; together they list every variable once")]
    roots: Annotated[list[str], Meta(description="names of the variables without a mechanism")]


class HiddenOrderRecord(msgspec.Struct, forbid_unknown_fields=True, tag="hidden_order", tag_field="type"):
    """Only the roots are disclosed."""

    roots: Annotated[list[str], Meta(description="names of the variables without a mechanism")]


class HiddenRootsRecord(msgspec.Struct, forbid_unknown_fields=True, tag="hidden_roots", tag_field="type"):
    """Only the number of roots is disclosed."""

    root_count: Annotated[int, Meta(description="that number")]


DisclosureRecord: TypeAlias = OrderedRecord | BlocksRecord | HiddenOrderRecord | HiddenRootsRecord
DISCLOSURE_TYPES = tuple(str(record.__struct_config__.tag) for record in get_args(DisclosureRecord))


def disclosure_from_record(record: DisclosureRecord, variables: tuple[str, ...]) -> Disclosure:
    """Return the disclosure of a record; `PoolError` with the field that contradicts itself."""
    ordered = natural(variables)
    if isinstance(record, HiddenRootsRecord):
        if not 1 <= record.root_count <= len(variables):
            raise PoolError(f"{record.root_count} roots of {len(variables)} variables", field="disclosure.root_count")
        return HiddenRoots(ordered, record.root_count)
    roots = natural(subset(record.roots, variables, "disclosure.roots"))
    match record:
        case OrderedRecord():
            return Ordered(permutation(record.order, variables, "disclosure.order"), roots)
        case BlocksRecord():
            if not all(record.blocks):
                raise PoolError("a block is empty", field="disclosure.blocks")
            permutation([v for block in record.blocks for v in block], variables, "disclosure.blocks")
            return Blocks(tuple(natural(block) for block in record.blocks), roots)
        case HiddenOrderRecord():
            return HiddenOrder(ordered, roots)


def record_from_disclosure(disclosure: Disclosure) -> DisclosureRecord:
    """`TypeError` for a disclosure that has no record."""
    match disclosure:
        case Ordered(order, roots):
            return OrderedRecord(list(order), list(roots))
        case Blocks(blocks, roots):
            return BlocksRecord([list(block) for block in blocks], list(roots))
        case HiddenOrder(_, roots):
            return HiddenOrderRecord(list(roots))
        case HiddenRoots(_, num_roots):
            return HiddenRootsRecord(num_roots)
    raise TypeError(f"pool files have no record of the disclosure {disclosure.label}")


# --- lists of names -------------------------------------------------------------------------------------------------


def distinct(names: Iterable[str], field: str) -> list[str]:
    unique: dict[str, None] = {}
    for name in names:
        if name in unique:
            raise PoolError(f"{short_repr(name)} is listed twice", field=field)
        unique[name] = None
    return list(unique)


def subset(names: Sequence[str], variables: Sequence[str], field: str) -> tuple[str, ...]:
    for name in distinct(names, field):
        if name not in variables:
            raise PoolError(f"{short_repr(name)} is not a variable; variables: {', '.join(variables)}", field=field)
    return tuple(names)


def permutation(names: Sequence[str], variables: Sequence[str], field: str) -> tuple[str, ...]:
    if len(subset(names, variables, field)) != len(variables):
        missing = [v for v in variables if v not in names]
        raise PoolError(f"does not list {', '.join(missing)}", field=field)
    return tuple(names)
