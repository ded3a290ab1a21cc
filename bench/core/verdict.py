"""Verdicts on answers: the fields of `calibrant score` that all benchmarks share, and lazily computed verdicts.

A *score* has the fields of one benchmark about an answer; a *verdict*, or line, adds the shared fields.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from json.encoder import c_make_encoder, encode_basestring_ascii  # type: ignore[attr-defined]  # in every CPython
from typing import Annotated, Any, Literal, TypeAlias, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

from calibrant.bench.core.responses import Reading

# keys are in camel case; fields with one-word names need no entry
LINE_KEYS = {
    "instance_id": "instanceId",
    "pool_digest": "poolDigest",
    "pool_size": "poolSize",
    "correct_published": "correctPublished",
    "correct_lenient": "correctLenient",
}
"""Field -> key in a line, where they differ."""


Template: TypeAlias = Annotated[
    str | UnsetType, Meta(description="SHA-256 of the template of `prompts --template`, where the prediction states it")
]


class LineHead(msgspec.Struct, kw_only=True):
    """Beginning of a line, after the name of its benchmark."""

    instance_id: Annotated[str, Meta(description="id of the item")]
    model: Annotated[str | None, Meta(description="who answered; null if the prediction names no model")]
    sample: Annotated[int, Meta(description="number among that model's answers to the item")]
    template: Template = UNSET


class ReadVerdict(dict[str, Any]):
    """Line of a verdict, with the reading of its response as an attribute."""

    __slots__ = ("reading",)

    def __init__(self, line: Mapping[str, Any], reading: Reading) -> None:
        super().__init__(line)
        self.reading = reading

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return ReadVerdict, (dict(self), self.reading)


# fields of every line on how its response was read
PublishedFlag: TypeAlias = Annotated[
    bool | None, Meta(description="`correct` by the published extractor, of the whole text")
]
LenientFlag: TypeAlias = Annotated[
    bool | None, Meta(description="`correct` by the lenient reader, which takes other forms, too")
]
Reason: TypeAlias = Annotated[str, Meta(description="why the response holds no answer; empty if it does")]
Source: TypeAlias = Annotated[
    str, Meta(description="where the answer stands: text, object or tool_call; empty without one")
]
Stop: TypeAlias = Annotated[str, Meta(description="why the response stopped, as the provider states it")]
Warnings: TypeAlias = Annotated[list[str], Meta(description="kinds of what is odd about the response or its line")]
Repairs: TypeAlias = Annotated[
    list[str], Meta(description="what the lenient reader needed, if the paper's rule read nothing")
]


class LineReading(msgspec.Struct, kw_only=True):
    """Fields of a line on how its response was read."""

    correct_published: PublishedFlag = None
    correct_lenient: LenientFlag = None
    reason: Reason = ""
    source: Source = ""
    stop: Stop = ""
    warnings: Warnings = []
    repairs: Repairs = []


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
    """Return the Struct of a line of `calibrant score`: benchmark, head, fields of the score, other fields, tail.

    fields: types of the other fields, or pairs of a type and a default
    """
    tag = Annotated[Literal[benchmark], Meta(description=benchmark)]  # type: ignore[valid-type]  # a value
    keys = {field.name: field.encode_name for field in msgspec.structs.fields(score)}
    return msgspec.defstruct(
        name,
        [
            ("benchmark", tag),
            *_fields(LineHead),
            *_fields(score),
            *((name, *field) if isinstance(field, tuple) else (name, field) for name, field in fields.items()),
            *_fields(LineReading),
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
        if field.default_factory is not msgspec.NODEFAULT:
            yield *pair, msgspec.field(default_factory=field.default_factory)
        else:
            yield pair if field.default is msgspec.NODEFAULT else (*pair, field.default)


class MeanScore(dict[str, Any]):
    """Score of an answer that a tie rule chose; metrics are means over all equally good answers.

    parts: (number of these with the score, score); is_drawn: whether they are a random sample of them, not all
    """

    __slots__ = ("is_drawn", "parts")

    def __init__(
        self, chosen: Mapping[str, Any], parts: Sequence[tuple[int, Mapping[str, Any]]], *, is_drawn: bool = False
    ) -> None:
        super().__init__(chosen)
        self.parts = tuple(parts)
        self.is_drawn = is_drawn

    def map(self, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> MeanScore:
        """Return a copy in which every score is changed."""
        parts = [(times, change(score)) for times, score in self.parts]
        return MeanScore(change(self), parts, is_drawn=self.is_drawn)


def change_score(
    score: Mapping[str, Any], change: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Return a changed score; of a mean, every part is changed."""
    return score.map(change) if isinstance(score, MeanScore) else change(score)


def _line_encoder() -> Callable[[Any], str]:
    """Return `encode` of a JSONEncoder that refuses NaN and skips the check for cycles, which lines cannot have.

    The C encoder is made once, because making it at each call takes two thirds of the time of a line.
    """
    encoder = json.JSONEncoder(allow_nan=False, check_circular=False)
    if c_make_encoder is None:
        return encoder.encode
    separators = encoder.key_separator, encoder.item_separator
    encode = c_make_encoder(
        None, encoder.default, encode_basestring_ascii, None, *separators, False, False, encoder.allow_nan
    )
    return lambda line: "".join(encode(line, 0))


encode_json = _line_encoder()


# within these bounds floats are written without exponent; beyond them msgspec and json write them differently
LEAST_PLAIN, GREATEST_PLAIN = 1e-4, 1e15


def encode_rates(fields: Mapping[str, Any]) -> str:
    """Return `encode_json(fields)` in half of its time; floats must be 0 or from LEAST_PLAIN to GREATEST_PLAIN.

    Falls back to `encode_json` for values that msgspec refuses and characters that it does not escape.
    """
    try:
        text = msgspec.json.format(msgspec.json.encode(fields), indent=0)
    except (OverflowError, UnicodeEncodeError):  # an integer above 64 bits, half a surrogate pair
        return encode_json(fields)
    return text.decode("ascii") if text.isascii() and b"\x7f" not in text else encode_json(fields)


class LazyVerdict(Mapping[str, Any]):
    """Score that is computed at first access; tables can often count it by its attributes, without computing it.

    bulk_key: equal for scores with equal values of every metric in one setting, so that one is computed for all
    meaning: key of the answer's equivalence class (bench.core.metrics.Sample)
    reading: result of reading the response; encode: returns `encode_json(score)` without computing the score
    """

    __slots__ = ("_make", "_record", "bulk_key", "encode", "meaning", "reading")

    def __init__(
        self,
        make: Callable[[], dict[str, Any]],
        encode: Callable[[], str],
        bulk_key: Hashable,
        meaning: str | None,
        reading: Reading,
    ) -> None:
        self._make, self.encode = make, encode
        self._record: dict[str, Any] | None = None
        self.bulk_key = bulk_key
        self.meaning = meaning
        self.reading = reading

    def record(self) -> dict[str, Any]:
        """Return the score as a dictionary, the same at every call."""
        if self._record is None:
            self._record = self._make()
        return self._record

    def __getitem__(self, key: str) -> Any:
        return self.record()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.record())

    def __len__(self) -> int:
        return len(self.record())

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return dict, (self.record(),)  # pickled as a plain dict: `make` stays in this process
