"""Records of the native pool format, and all checks of their content."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar, TypeAlias, get_args

import msgspec
from msgspec import Meta

from calibrant.dsl.errors import CalibrantError, ParseError, PoolError, short_repr
from calibrant.dsl.formulas.formula import OPERATORS, STANDARD_OPERATORS, Formula
from calibrant.dsl.formulas.table import MAX_TABLE_VARS
from calibrant.dsl.formulas.text import Grammar, parse
from calibrant.dsl.replayscm.disclosure import Blocks, Disclosure, HiddenOrder, HiddenRoots, Ordered, natural
from calibrant.dsl.replayscm.extensions import records as extensions_records
from calibrant.dsl.replayscm.extensions.extension import Extension
from calibrant.dsl.replayscm.item import ModelResult, Problem, Sealed, Task, TaskKind
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Intervention, Panel, World, columns_from_rows
from calibrant.dsl.text import Wording, is_name

# --- The native pool format: one JSON object a line, a header first, and the disclosure of each problem ---------------
# `schema()` gives it as JSON Schema. Unknown fields are refused. Bits are the integers 0 and 1, a row is a string of
# the characters 0 and 1 with one character per variable in the order of `variables`.
# --- Records of disclosures -------------------------------------------------------------------------------------------


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

    root_count: Annotated[int, Meta(description="number of roots")]


DisclosureRecord: TypeAlias = OrderedRecord | BlocksRecord | HiddenOrderRecord | HiddenRootsRecord
DISCLOSURE_TYPES = tuple(str(record.__struct_config__.tag) for record in get_args(DisclosureRecord))


def disclosure_from_record(record: DisclosureRecord, variables: tuple[str, ...]) -> Disclosure:
    """Return the disclosure of a record; `PoolError` names an inconsistent field."""
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
    """Return the record of a disclosure; `TypeError` if it has none."""
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


# --- lists of names ---------------------------------------------------------------------------------------------------


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
    name: Annotated[str, Meta(description="name of the pool")] = ""
    metadata: Annotated[dict[str, Any], Meta(description="free fields, such as seed and strata")] = {}


class WorldRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One world."""

    id: Annotated[str, Meta(description="unique in the instance")]
    rows: Annotated[list[str], Meta(description="a text of 0 and 1 for each unit, a character for each variable")]
    constants: Annotated[dict[str, int], Meta(description="variable -> value that it is clamped to in every row")] = {}
    assigned: Annotated[list[str], Meta(description="variables set row by row, to the values in the rows")] = []
    units: Annotated[
        list[str] | None, Meta(description="names of the rows, only where they differ from the instance's")
    ] = None
    environment: Annotated[dict[str, float], Meta(description="root -> environment level")] = {}


class ResultRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A stored model output with the evaluation that came with it."""

    model: Annotated[str, Meta(description="name of the model")]
    raw_response: Annotated[str | None, Meta(description="text of the response")] = None
    extracted_answer: Annotated[Any, Meta(description="extracted answer, as the file states it")] = None
    evaluation: Annotated[dict[str, Any], Meta(description="metrics, as the file states them")] = {}
    verdict: Annotated[dict[str, Any], Meta(description="fields beside the evaluation, such as `valid`")] = {}


class SealedRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The JSON record of a problem's sealed part."""

    heldout: Annotated[list[WorldRecord], Meta(description="the held-out worlds")] = []
    gold: Annotated[dict[str, str] | None, Meta(description="variable -> formula of the latent SCM")] = None
    gold_size: Annotated[int | None, Meta(description="total formula size of gold, as stated")] = None
    latent_order: Annotated[list[str] | None, Meta(description="every variable, causes before effects")] = None
    max_predecessors: Annotated[
        int | None, Meta(description="number of predecessors from which the generator drew parents")
    ] = None
    budget_deltas: Annotated[list[int], Meta(description="slack values of accGoldPlus")] = msgspec.field(
        default_factory=lambda: [0, 10, 25]
    )
    labels: Annotated[dict[str, str], Meta(description="stratum, seed, difficulty and pairing ids")] = {}
    seed: Annotated[int | None, Meta(description="seed of flips and drawn contexts")] = None
    noise: Annotated[
        str | dict[str, str] | None,
        Meta(description="the true rate, or variable -> rate, where the item does not disclose it"),
    ] = None


TASK_KINDS = ", ".join(kind.value for kind in TaskKind)


class ProblemRecord(extensions_records.ExtensionRecord, forbid_unknown_fields=True, omit_defaults=True):
    """One instance: the public part, and `sealed`."""

    EXAMPLES: ClassVar[dict[str, str]] = {
        "$.disclosure.type": f"allowed: {', '.join(DISCLOSURE_TYPES)}",
        "$.sealed.gold": 'gold is an object of formulas in prefix form, such as {"X3": "(and X1 X2)"}',
        "$.sealed.heldout": f"a world is an object such as {WORLD_EXAMPLE}",
        "$.training": f"a world is an object such as {WORLD_EXAMPLE}",
    }

    id: Annotated[str, Meta(description="unique in the pool")]
    kind: Annotated[str, Meta(description=f"the benchmark's name of what is asked: {TASK_KINDS}")]
    variables: Annotated[list[str], Meta(description="names, in the order of columns")]
    units: Annotated[list[str], Meta(description="names of the rows")]
    disclosure: Annotated[DisclosureRecord, Meta(description="disclosure of roots and order")]
    training: Annotated[list[WorldRecord], Meta(description="the training worlds")]
    sealed: Annotated[SealedRecord, Meta(description="what solvers do not see")]
    operators: Annotated[list[str], Meta(description="operators that formulas may use")] = msgspec.field(
        default_factory=lambda: list(STANDARD_OPERATORS)
    )
    allow_constants: Annotated[bool, Meta(description="whether formulas may use 0 and 1")] = False
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
    """Return the JSON Schema of a header line or an instance line."""
    header, instance = (msgspec.json.schema(record) for record in (HeaderRecord, ProblemRecord))
    return {"header": header, "instance": instance}


# --- From a pool record to a `Problem` --------------------------------------------------------------------------------
# Inconsistent input is refused with the field named; no row is dropped silently.
# --- Reading fields of untrusted mappings: every wrong type becomes a `PoolError` that names the field ----------------
_REQUIRED: Any = object()
_INTEGER_BITS = 64  # what JSON readers hold; hexadecimal YAML can say millions of digits that Python never prints


@contextmanager
def error_location(*, file: str = "", instance: str = "", field: str = "") -> Iterator[None]:
    """Add the location to every `PoolError` raised inside."""
    try:
        yield
    except PoolError as error:
        where = f"{field}.{error.field}" if field and error.field else field or error.field
        raise PoolError(
            error.problem, file=error.file or file, instance=error.instance or instance, field=where
        ) from None


class Fields:
    """An untrusted mapping, read field by field; a wrong type is a `PoolError`."""

    def __init__(self, raw: Any, name: str) -> None:
        if not isinstance(raw, Mapping):
            raise PoolError(f"expected a mapping, found {short_repr(raw)}", field=name)
        self._raw = raw
        self._name = name

    def __contains__(self, key: str) -> bool:
        return key in self._raw

    def get(self, key: str, default: Any = None) -> Any:
        return self._raw.get(key, default)

    def only(self, allowed: Collection[str]) -> None:
        """Refuse unknown fields, whose content would otherwise be lost."""
        for key in self._raw:
            if key not in allowed:
                raise PoolError(
                    f"unknown field {short_repr(key)}; known: {', '.join(sorted(allowed))}", field=self._name
                )

    def _typed_field(self, key: str, default: Any, kind: type | tuple[type, ...], expected: str) -> Any:
        value = self._raw.get(key, default)
        if value is _REQUIRED:
            raise PoolError("missing", field=key)
        if value is default or (isinstance(value, kind) and not (kind is int and isinstance(value, bool))):
            return value
        raise PoolError(f"expected {expected}, found {short_repr(value)}", field=key)

    def text(self, key: str, default: str = _REQUIRED) -> str:
        return self._typed_field(key, default, str, "a text")  # type: ignore[no-any-return]

    def flag(self, key: str, default: bool) -> bool:
        return self._typed_field(key, default, bool, "true or false")  # type: ignore[no-any-return]

    def integer(self, key: str, default: int | None) -> int | None:
        value: int | None = self._typed_field(key, default, int, "an integer")
        if value is not None and value.bit_length() >= _INTEGER_BITS:
            raise PoolError(f"an integer of {value.bit_length()} bits; fewer than {_INTEGER_BITS} are read", field=key)
        return value

    def sequence(self, key: str) -> list[Any]:
        return self._typed_field(key, _REQUIRED, list, "a list")  # type: ignore[no-any-return]

    def name_lists(self, key: str) -> list[list[str]]:
        for item in self.sequence(key):
            if not isinstance(item, list) or not all(isinstance(name, str) for name in item):
                raise PoolError(f"expected lists of names, found {short_repr(item)}", field=key)
        return self.sequence(key)

    def mapping(self, key: str, default: Mapping[str, Any] = _REQUIRED) -> Mapping[str, Any]:
        value = self._raw.get(key, default)
        return (
            default
            if value is None and default is not _REQUIRED
            else self._typed_field(key, default, Mapping, "a mapping")
        )

    def child(self, key: str) -> Fields:
        """Return the fields of a nested mapping; empty if it is absent."""
        value = self._raw.get(key)
        return Fields({} if value is None else value, key)

    def names(self, key: str, default: list[str] = _REQUIRED) -> list[str]:
        value = self._typed_field(key, default, list, "a list of names")
        for name in value:
            if not isinstance(name, str):
                raise PoolError(f"expected names, found {short_repr(name)}", field=key)
        return list(value)

    def integers(self, key: str, default: list[int]) -> list[int]:
        value = self._typed_field(key, default, list, "a list of integers")
        if any(type(item) is not int for item in value):
            raise PoolError(f"expected integers, found {short_repr(value)}", field=key)
        if any(item.bit_length() >= _INTEGER_BITS for item in value):
            raise PoolError(f"an integer of {_INTEGER_BITS} bits or more", field=key)
        return list(value)

    def texts(self, key: str, default: dict[str, str] | None) -> dict[str, str] | None:
        value = self._typed_field(key, default, Mapping, "a mapping of texts")
        if value is not None and not all(isinstance(k, str) and isinstance(v, str) for k, v in value.items()):
            raise PoolError("expected a mapping from names to texts", field=key)
        return None if value is None else dict(value)

    def levels(self, key: str) -> dict[str, float]:
        value: Mapping[Any, Any] = self.mapping(key, {})
        for name, level in value.items():
            if not isinstance(name, str) or type(level) not in (int, float) or not 0 <= level <= 1:
                raise PoolError(
                    f"expected levels from 0 to 1, found {short_repr(name)}: {short_repr(level)}", field=key
                )
        return {name: float(level) for name, level in value.items()}

    def bits(self, key: str) -> dict[str, int]:
        value = self._typed_field(key, {}, Mapping, "a mapping from names to bits")
        for name, bit in value.items():
            if not isinstance(name, str) or type(bit) is not int or bit not in (0, 1):
                raise PoolError(f"expected bits 0 or 1, found {short_repr(name)}: {short_repr(bit)}", field=key)
        return dict(value)


# --- From a pool record to a `Problem`: all checks of a record's content ----------------------------------------------
MAX_VARIABLES = 60  # far above every benchmark of this kind; keeps sets of variables in one signed word
MAX_ALTERNATIVE_VARIABLES = MAX_TABLE_VARS + 1  # a mechanism over all others still has a truth table to compare

Results = Callable[[], tuple[ModelResult, ...]]


def problem_from_record(record: ProblemRecord, results: Results | None = None) -> Problem:
    """Return the problem of a record; `PoolError` names an invalid field."""
    if not record.id.strip():
        raise PoolError("an instance needs an id", field="id")
    variables = _variables(record.variables)
    every = (*variables, *record.hidden)
    disclosure = disclosure_from_record(record.disclosure, every)
    extension = extensions_records.read_extension(
        record, variables, getattr(record.disclosure, "roots", ()), disclosure
    )
    grammar = _grammar(record)
    worlds = _Worlds(variables, tuple(distinct(record.units, "units")))
    training = worlds.panel(record.training, "training")
    kind = _kind(record.kind, disclosure, has_reference=record.reference is not None)
    _require_kind(kind, extension)
    if bool(training.worlds) is (kind is TaskKind.EPISODE):
        if training.worlds:
            raise PoolError("an episode has no training worlds; they are asked for", field="training")
        raise PoolError("at least one training world is needed", field="training")
    heldout = worlds.panel(record.sealed.heldout, "sealed.heldout")
    if kind is TaskKind.ALTERNATIVE and len(variables) > MAX_ALTERNATIVE_VARIABLES:
        raise PoolError(
            f"{len(variables)} variables; compared are up to {MAX_ALTERNATIVE_VARIABLES}", field="reference"
        )
    reference = _scm(record.reference, variables, grammar, "reference")
    gold = _scm(record.sealed.gold, every, grammar, "sealed.gold")
    latent_order = _latent_order(record, every, disclosure, gold)
    for model, field in ((reference, "reference"), (gold, "sealed.gold")):
        if model and disclosure.roots is not None and model.roots != natural(disclosure.roots):
            raise PoolError(f"mechanisms leave the roots {', '.join(model.roots)}", field=field)
    extensions_records.require_gold(gold, extension, disclosure)
    extensions_records.require_seed(record.sealed.seed, extension)
    extensions_records.require_forecast(extension, heldout)
    num_heldout, shares_units = len(heldout.worlds), record.shares_units
    task = Task(kind, disclosure, grammar, training, shares_units, num_heldout, reference, extension, record.wording)
    sealed = Sealed(
        gold,
        record.sealed.gold_size if record.sealed.gold_size is not None else (gold.size if gold else None),
        heldout,
        latent_order,
        record.sealed.max_predecessors,
        tuple(record.sealed.budget_deltas),
        {w.id: w.environment for w in (*record.training, *record.sealed.heldout) if w.environment},
        record.sealed.labels,
        record.sealed.seed,
        extensions_records.read_rates(record.sealed.noise, extension, gold),
    )
    stored = tuple(
        ModelResult(r.model, r.raw_response, r.extracted_answer, r.evaluation, r.verdict) for r in record.results
    )
    return Problem(record.id, task, sealed, results or ResultsInMemory(stored), variables)


class ResultsInMemory:
    """Model results that are already parsed, as a callable."""

    def __init__(self, results: tuple[ModelResult, ...]) -> None:
        self._results = results

    def __call__(self) -> tuple[ModelResult, ...]:
        return self._results


def _variables(names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if not is_name(name):
            raise PoolError(f"{short_repr(name)} is not a variable name ([A-Za-z_][A-Za-z0-9_]*)", field="variables")
    if not 1 <= len(names) <= MAX_VARIABLES:
        raise PoolError(f"{len(names)} variables; 1 to {MAX_VARIABLES} are supported", field="variables")
    return tuple(distinct(names, "variables"))


def _kind(name: str, disclosure: Disclosure, *, has_reference: bool) -> TaskKind:
    try:
        kind = TaskKind(name)
    except ValueError:
        known_kinds = ", ".join(k.value for k in TaskKind)
        raise PoolError(f"unknown task {short_repr(name)}; known: {known_kinds}", field="kind") from None
    if (kind is TaskKind.ROOTS) != (disclosure.roots is None):
        raise PoolError(f"task {name} does not go with the disclosure {disclosure.label}", field="kind")
    if (kind is TaskKind.ALTERNATIVE) != has_reference:
        raise PoolError("an Alternative-SCM instance, and only that, has a reference SCM", field="reference")
    return kind


def _require_kind(kind: TaskKind, extension: Extension | None) -> None:
    if (kind is TaskKind.EPISODE) != (extension is not None and extension.is_episode):
        reason = f"kind {TaskKind.EPISODE.value}, and only that, has an allowance (worlds are asked for)"
        raise PoolError(f"{reason}; this item has kind {kind.value}", field="allowance")
    if kind is TaskKind.ALTERNATIVE and extension is not None:
        raise PoolError("Alternative-SCM items have no extensions", field="kind")


def _grammar(record: ProblemRecord) -> Grammar:
    for name in record.operators:
        if name not in OPERATORS:
            raise PoolError(f"unknown operator {short_repr(name)}; known: {', '.join(OPERATORS)}", field="operators")
    operators = tuple(name for name in OPERATORS if name in distinct(record.operators, "operators"))
    return Grammar(operators, record.allow_constants)


def _latent_order(
    record: ProblemRecord, variables: tuple[str, ...], disclosure: Disclosure, gold: Scm | None
) -> tuple[str, ...]:
    """Return the stated or disclosed order, else a topological order of gold."""
    if record.sealed.latent_order is not None:
        order = permutation(record.sealed.latent_order, variables, "sealed.latent_order")
    else:
        of_gold = natural(variables) if gold is None else (*gold.roots, *gold.order)
        order = disclosure.order or of_gold
    if disclosure.order is not None and order != disclosure.order:
        raise PoolError("differs from the disclosed order", field="sealed.latent_order")
    return order


def _scm(texts: Mapping[str, str] | None, variables: tuple[str, ...], grammar: Grammar, field: str) -> Scm | None:
    if texts is None:
        return None
    mechanisms: dict[str, Formula] = {}
    for variable, text in texts.items():
        if variable not in variables:
            raise PoolError(f"{short_repr(variable)} is not a variable; variables: {', '.join(variables)}", field=field)
        where = f"{field}.{variable}"
        try:
            mechanisms[variable] = parse(text, grammar, frozenset(variables) - {variable})
        except ParseError as error:
            is_infix = error.kind == "trailing" and (error.token in OPERATORS or error.token in "&|^=")
            form = "; formulas are in prefix form, such as (and X1 X2)" if is_infix else ""
            raise PoolError(f"{error}{form}", field=where) from None
    try:
        return Scm(tuple(v for v in variables if v not in mechanisms), mechanisms)
    except CalibrantError as error:
        raise PoolError(str(error), field=field) from None


class _Worlds:
    """Builds the worlds of one instance; ids are distinct over training and held-out together."""

    def __init__(self, variables: tuple[str, ...], units: tuple[str, ...]) -> None:
        self.variables = variables
        self.units = units
        self.ids: set[str] = set()

    def panel(self, records: Sequence[WorldRecord], field: str) -> Panel:
        worlds = tuple(self._world(record, f"{field}[{short_repr(record.id)}]") for record in records)
        return Panel(natural(self.variables), worlds)

    def _world(self, record: WorldRecord, field: str) -> World:
        if record.id in self.ids:
            raise PoolError("a second world of that id", field=field)
        self.ids.add(record.id)
        units = tuple(distinct(record.units, f"{field}.units")) if record.units is not None else self.units
        if len(record.rows) != len(units):
            raise PoolError(f"{len(record.rows)} rows for {len(units)} units", field=f"{field}.rows")
        for index, row in enumerate(record.rows):
            if len(row) != len(self.variables) or row.strip("01"):
                expected = f"{len(self.variables)} characters 0 or 1"
                raise PoolError(f"row {index} is {short_repr(row)}, not {expected}", field=f"{field}.rows")
        assigned = natural(subset(record.assigned, self.variables, f"{field}.assigned"))
        constants = {v: record.constants[v] for v in natural(subset(tuple(record.constants), self.variables, field))}
        overlap = set(assigned) & set(constants)
        if overlap:
            raise PoolError(f"{', '.join(natural(overlap))} both constant and assigned", field=field)
        if not all(0 <= level <= 1 for level in record.environment.values()):
            raise PoolError("a level is not from 0 to 1", field=f"{field}.environment")
        by_variable = dict(zip(self.variables, columns_from_rows(record.rows, len(self.variables)), strict=True))
        for variable, bit in constants.items():
            if bit not in (0, 1):
                raise PoolError(f"{variable}={bit}; a constant is 0 or 1", field=f"{field}.constants")
            if by_variable[variable] != ((1 << len(units)) - 1 if bit else 0):
                raise PoolError(f"rows contradict the clamp {variable}={bit}", field=f"{field}.rows")
        columns = natural(self.variables)
        return World(
            record.id, Intervention(constants, assigned), columns, units, tuple(by_variable[v] for v in columns)
        )
