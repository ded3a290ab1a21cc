"""The native pool format: one JSON object a line, a header first, and the disclosure of each problem.

`schema()` gives it as JSON Schema. Unknown fields are refused. Bits are the integers 0 and 1, a row is a string of the
characters 0 and 1 with one character per variable in the order of `variables`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, ClassVar, TypeAlias, get_args

import msgspec
from msgspec import Meta

from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.replayscm.disclosure import Blocks, Disclosure, HiddenOrder, HiddenRoots, Ordered, natural
from calibrant.dsl.replayscm.extensions.records import ExtensionRecord
from calibrant.dsl.text import Wording

# --- Disclosures in pool files: the record of each, what it means, and how it is written ------------------------------


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


# --- The native pool format: one JSON object a line, a header first. These classes are its schema ---------------------
FORMAT = "calibrant-pool"
WORLD_EXAMPLE = '{"id": "w0", "rows": ["000", "111"], "constants": {"X1": 1}}'
VERSION = 1


class HeaderRecord(msgspec.Struct, forbid_unknown_fields=True):
    """First line of a pool file."""

    format: Annotated[str, Meta(description="name of the format")]
    version: Annotated[int, Meta(description="version of the format")]
    name: Annotated[str, Meta(description="of the pool")] = ""
    metadata: Annotated[dict[str, Any], Meta(description="whatever its maker says of it")] = {}


class WorldRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One world."""

    id: Annotated[str, Meta(description="unique in the instance")]
    rows: Annotated[list[str], Meta(description="a text of 0 and 1 for each unit, a character for each variable")]
    constants: Annotated[dict[str, int], Meta(description="variable -> value that it is clamped to in every row")] = {}
    assigned: Annotated[list[str], Meta(description="those set row by row, as the rows show")] = []
    units: Annotated[
        list[str] | None, Meta(description="names of the rows, only where they differ from the instance's")
    ] = None
    environment: Annotated[dict[str, float], Meta(description="root -> environment level")] = {}


class ResultRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A stored model output with the evaluation that came with it."""

    model: Annotated[str, Meta(description="who answered")]
    raw_response: Annotated[str | None, Meta(description="its text")] = None
    extracted_answer: Annotated[Any, Meta(description="what the file says was extracted")] = None
    evaluation: Annotated[dict[str, Any], Meta(description="the metrics that came with it")] = {}
    verdict: Annotated[dict[str, Any], Meta(description="what stands beside the evaluation, such as `valid`")] = {}


class SealedRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The JSON record of a problem's sealed part."""

    heldout: Annotated[list[WorldRecord], Meta(description="the held-out worlds")] = []
    gold: Annotated[dict[str, str] | None, Meta(description="variable -> formula of the latent SCM")] = None
    gold_size: Annotated[int | None, Meta(description="its total size as stated")] = None
    latent_order: Annotated[list[str] | None, Meta(description="every variable, causes before effects")] = None
    max_predecessors: Annotated[int | None, Meta(description="the generator's window")] = None
    budget_deltas: Annotated[list[int], Meta(description="slack values of accGoldPlus")] = msgspec.field(
        default_factory=lambda: [0, 10, 25]
    )
    labels: Annotated[dict[str, str], Meta(description="stratum, seed, difficulty and pairing ids")] = {}
    seed: Annotated[int | None, Meta(description="of flips and drawn contexts")] = None
    noise: Annotated[
        str | dict[str, str] | None,
        Meta(description="the true rate, or variable -> rate, where the item does not disclose it"),
    ] = None


class ProblemRecord(ExtensionRecord, forbid_unknown_fields=True, omit_defaults=True):
    """One instance: what solvers see, and `sealed` apart from it."""

    EXAMPLES: ClassVar[dict[str, str]] = {
        "$.disclosure.type": f"allowed: {', '.join(DISCLOSURE_TYPES)}",
        "$.sealed.gold": 'gold is an object of formulas in prefix form, such as {"X3": "(and X1 X2)"}',
        "$.sealed.heldout": f"a world is an object such as {WORLD_EXAMPLE}",
        "$.training": f"a world is an object such as {WORLD_EXAMPLE}",
    }

    id: Annotated[str, Meta(description="unique in the pool")]
    kind: Annotated[str, Meta(description="the benchmark's name of what is asked")]
    variables: Annotated[list[str], Meta(description="names, in the order of columns")]
    units: Annotated[list[str], Meta(description="names of the rows")]
    disclosure: Annotated[DisclosureRecord, Meta(description="what is told about roots and order")]
    training: Annotated[list[WorldRecord], Meta(description="the training worlds")]
    sealed: Annotated[SealedRecord, Meta(description="what solvers do not see")]
    operators: Annotated[list[str], Meta(description="those that formulas may use")] = msgspec.field(
        default_factory=lambda: list(STANDARD_OPERATORS)
    )
    allow_constants: Annotated[bool, Meta(description="whether 0 and 1 may")] = False
    shares_units: Annotated[bool, Meta(description="whether a unit keeps its latent thresholds in every world")] = False
    reference: Annotated[
        dict[str, str] | None,
        Meta(description="variable -> formula of the SCM to differ from, in Alternative-SCM items"),
    ] = None
    wording: Annotated[Wording, Meta(description="whether the prompt has the standard sentences")] = "standard"
    results: Annotated[list[ResultRecord], Meta(description="stored model outputs")] = msgspec.field(
        default_factory=list
    )


def schema() -> dict[str, Any]:
    """JSON Schema of a header line and of an instance line."""
    header, instance = (msgspec.json.schema(record) for record in (HeaderRecord, ProblemRecord))
    return {"header": header, "instance": instance}
