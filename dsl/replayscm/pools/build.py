"""From a pool record to a `Problem`: every check of what a record may mean, in one place.

Whatever contradicts itself is refused with the field named; no row is dropped in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from calibrant.dsl.errors import CalibrantError, ParseError, PoolError, short_repr
from calibrant.dsl.formulas.formula import OPERATORS, Formula
from calibrant.dsl.formulas.table import MAX_TABLE_VARS
from calibrant.dsl.formulas.text import Grammar, parse
from calibrant.dsl.replayscm.disclosure import Disclosure, natural
from calibrant.dsl.replayscm.extensions.extension import Extension
from calibrant.dsl.replayscm.extensions.records import (
    read_extension,
    read_rates,
    require_forecast,
    require_gold,
    require_seed,
)
from calibrant.dsl.replayscm.pools.disclosures import disclosure_from_record, distinct, permutation, subset
from calibrant.dsl.replayscm.pools.records import ProblemRecord, WorldRecord
from calibrant.dsl.replayscm.problem import ModelResult, Problem, Sealed, Task, TaskKind
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Intervention, Panel, World, columns_from_rows
from calibrant.dsl.text import is_name

MAX_VARIABLES = 60  # far above every benchmark of this kind; keeps sets of variables in one signed word
MAX_ALTERNATIVE_VARIABLES = MAX_TABLE_VARS + 1  # a mechanism over all others still has a truth table to compare

Results = Callable[[], tuple[ModelResult, ...]]


def problem_from_record(record: ProblemRecord, results: Results | None = None) -> Problem:
    """Return the problem that a record describes; `PoolError` with the field that cannot be meant otherwise."""
    if not record.id.strip():
        raise PoolError("an instance needs an id", field="id")
    variables = _variables(record.variables)
    every = (*variables, *record.hidden)
    disclosure = disclosure_from_record(record.disclosure, every)
    extension = read_extension(record, variables, getattr(record.disclosure, "roots", ()), disclosure)
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
    require_gold(gold, extension, disclosure)
    require_seed(record.sealed.seed, extension)
    require_forecast(extension, heldout)
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
        read_rates(record.sealed.noise, extension),
    )
    stored = tuple(
        ModelResult(r.model, r.raw_response, r.extracted_answer, r.evaluation, r.verdict) for r in record.results
    )
    return Problem(record.id, task, sealed, results or ResultsInMemory(stored), variables)


class ResultsInMemory:
    """Results that are already in memory."""

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
    """Return the order that is stated or disclosed, else one in which gold has causes before effects."""
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
