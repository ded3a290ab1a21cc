"""Reasons why items are open, as records of audits store them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, Protocol, TypeAlias

import msgspec
from msgspec import Meta

from calibrant.audits.why import Why
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.pages.aligned import wrapped_lines
from calibrant.bench.pages.capabilities import EXPLANATIONS
from calibrant.dsl.errors import CalibrantError

ReasonState: TypeAlias = Literal["decided", "open", "empty", "uncounted", "unexplained"]


class ReasonRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why an item is open, in short; `calibrant show POOL ID --why --json` has all of it."""

    state: Annotated[ReasonState, Meta(description="state of the count; unexplained: there is no reason")]
    reason: Annotated[str, Meta(description="one or two sentences; of unexplained items why there is no reason")]
    fit: Annotated[str, Meta(description="hypotheses that fit, as people read it")] = ""
    lower: Annotated[str, Meta(description="certified lower bound of that number, empty without one")] = ""
    upper: Annotated[str, Meta(description="certified upper bound, equal where the count is exact")] = ""


class Recorded(Protocol):
    """A record of an audit."""

    @property
    def instance(self) -> str: ...
    @property
    def error(self) -> str: ...
    @property
    def why(self) -> ReasonRecord | None: ...


def explain_item(of: Benchmark[Any], item: Any) -> Why | str:
    """Return the reason of an item before any step, or one line that says why there is none."""
    try:
        return of.require(EXPLANATIONS).explain(item, ())
    except CalibrantError as error:
        return str(error)


def reason_record(why: Why | str) -> ReasonRecord:
    """Return a reason in short."""
    if isinstance(why, str):
        return ReasonRecord("unexplained", why)
    return ReasonRecord(why.state, why.reason_text, why.count.in_words(), why.count.lower, why.count.upper or "")


def reason_of(record: Recorded) -> ReasonRecord:
    """Return the reason in a record; records of earlier versions and of items without results have none."""
    return record.why or ReasonRecord(
        "unexplained", record.error or "recorded without a reason; audit it into a new --out"
    )


def reason_lines(records: Iterable[Recorded], width: int | None) -> Iterator[str]:
    """Yield the lines of a table: item, how many fit, and why; reasons are wrapped to the width."""
    cells = [(record.instance, (why := reason_of(record)).fit, why.reason) for record in records]
    return wrapped_lines(["Instance", "Fit", "Why"], cells, width)
