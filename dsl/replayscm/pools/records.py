"""The native pool format: one JSON object a line, a header first. These classes are its schema.

`schema()` gives it as JSON Schema. Unknown fields are refused. Bits are the integers 0 and 1, a row is a string of the
characters 0 and 1 with one character per variable in the order of `variables`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from calibrant.dsl.formulas.operators import STANDARD_OPERATORS
from calibrant.dsl.replayscm.extensions.records import ExtensionRecord
from calibrant.dsl.replayscm.pools.disclosures import DisclosureRecord

FORMAT = "calibrant-pool"
VERSION = 1


class HeaderRecord(msgspec.Struct, forbid_unknown_fields=True):
    """First line of a pool file.

    name: of the pool; metadata: whatever its maker says of it
    """

    format: str
    version: int
    name: str = ""
    metadata: dict[str, Any] = {}


class WorldRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One world.

    id: unique in the instance; rows: a text of 0 and 1 for each unit, a character for each variable
    constants: variable -> value that it is clamped to in every row; assigned: those set row by row, as the rows show
    units: names of the rows, only where they differ from the instance's; environment: root -> environment level
    """

    id: str
    rows: list[str]
    constants: dict[str, int] = {}
    assigned: list[str] = []
    units: list[str] | None = None
    environment: dict[str, float] = {}


class ResultRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A stored model output with the evaluation that came with it.

    model: who answered; raw_response: its text; extracted_answer: what the file says was extracted
    evaluation: the metrics that came with it; verdict: what stands beside the evaluation, such as `valid`
    """

    model: str
    raw_response: str | None = None
    extracted_answer: Any = None
    evaluation: dict[str, Any] = {}
    verdict: dict[str, Any] = {}


class SealedRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The JSON record of a problem's sealed part.

    heldout: the held-out worlds; gold: variable -> formula of the latent SCM; gold_size: its total size as stated
    latent_order: every variable, causes before effects; max_predecessors: the generator's window
    budget_deltas: slack values of accGoldPlus; labels: stratum, seed, difficulty and pairing ids
    seed: of flips and drawn contexts; noise: the true rate, or variable -> rate, where the item does not disclose it
    """

    heldout: list[WorldRecord] = []
    gold: dict[str, str] | None = None
    gold_size: int | None = None
    latent_order: list[str] | None = None
    max_predecessors: int | None = None
    budget_deltas: list[int] = msgspec.field(default_factory=lambda: [0, 10, 25])
    labels: dict[str, str] = {}
    seed: int | None = None
    noise: str | dict[str, str] | None = None


class ProblemRecord(ExtensionRecord, forbid_unknown_fields=True, omit_defaults=True):
    """One instance: what solvers see, and `sealed` apart from it.

    id: unique in the pool; kind: the benchmark's name of what is asked; units: names of the rows
    disclosure: what is told about roots and order; training: the training worlds; sealed: what solvers do not see
    operators: those that formulas may use; allow_constants: whether 0 and 1 may
    shares_units: whether a unit keeps its latent thresholds in every world
    reference: variable -> formula of the SCM to differ from, in Alternative-SCM items; results: stored model outputs
    max_parents: class of an extended item, hidden parents included; prior: uniform or by_parents
    noise: "1/20", {"shared": [[rate, prior], ..]} or {"each": [..]}; question: map or forecast
    hidden: name -> exact functional parents, or null for any; allowance: of an episode; asked: worlds to forecast
    """

    id: str
    kind: str
    variables: list[str]
    units: list[str]
    disclosure: DisclosureRecord
    training: list[WorldRecord]
    sealed: SealedRecord
    operators: list[str] = msgspec.field(default_factory=lambda: list(STANDARD_OPERATORS))
    allow_constants: bool = False
    shares_units: bool = False
    reference: dict[str, str] | None = None
    results: list[ResultRecord] = msgspec.field(default_factory=list)


def schema() -> dict[str, Any]:
    """JSON Schema of a header line and of an instance line."""
    header, instance = (msgspec.json.schema(record) for record in (HeaderRecord, ProblemRecord))
    return {"header": header, "instance": instance}
