"""Configs of the released suites, items made of them, and the configs consistent with measurements."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, Literal

import msgspec

from calibrant.dsl.causalab.item import BENCHMARK, Bases, Family, LabItem, Name, Terms, Traced, lab_item
from calibrant.dsl.causalab.mechanism import FREQUENCY, TRIES, Equation, Mechanism, Noise, Values, equation
from calibrant.dsl.causalab.records import LabRecord, item_of_record, record_of_item
from calibrant.dsl.causalab.reference import SettingMeaning, bases_after, bases_of, values
from calibrant.dsl.causalab.score import roots
from calibrant.dsl.errors import CalibrantError, PoolError, short_repr
from calibrant.dsl.item import Pool
from calibrant.dsl.parse_limits import TooLargeError, load_json
from calibrant.dsl.records import copied_items, decode_line, decoded_again, plain_pool, pool_head, pool_lines

# --- Variants of an item: shown records, allowed settings, meaning of a setting ---------------------------------------
NUM_RECORDS = 2  # shown records of the released suites
MAX_RECORDS = 64


class View(StrEnum):
    """The visible properties of the reactor crystal."""

    ALL = "all"
    ROOTS = "roots"  # only parentless ancestors of the frequency
    HIDE_ONE = "hide-one"  # all but one parent of the frequency


@dataclass(frozen=True, slots=True)
class Variant:
    """Terms of an item on a released config.

    records: number of shown earlier crystals; released: they are those of the released episodes, drawn by RELEASED_SEED
    allowance: number of settings; None for the config's
    fixed: number of the settable properties that this item forbids to set
    """

    records: int = NUM_RECORDS
    released: bool = False
    allowance: int | None = None
    fixed: int = 0
    view: View = View.ALL
    tries: int = TRIES
    reading: SettingMeaning = SettingMeaning.VALUE

    def __post_init__(self) -> None:
        if not 0 <= self.records <= MAX_RECORDS:
            raise ValueError(f"{self.records} records; 0 to {MAX_RECORDS} are possible")
        if self.allowance is not None and self.allowance < 0:
            raise ValueError(f"an allowance of {self.allowance}")


def visible_properties(view: View, mechanism: Mechanism, rng: random.Random) -> tuple[str, ...]:
    """Return the shown properties of the reactor crystal; HIDE_ONE draws the hidden one."""
    properties = mechanism.properties
    if view is View.ROOTS:
        return tuple(sorted(roots(mechanism.edges)))
    if view is View.HIDE_ONE:
        hidden = rng.choice(sorted(mechanism.frequency.parents))
        return tuple(p for p in properties if p != hidden)
    return properties


# --- Released suites: one config for each line, read as untrusted data; items of them with new crystals ---------------
RELEASED_SEED = 42  # seed of the shown records in every released episode
LOWEST_BASE, HIGHEST_BASE = 0, 100
MAX_NODES = 64
CONFIG_KEYS = frozenset({"graph_id", "nodes"})  # keys that identify a config; if others are missing, an error says so


class _Edge(msgspec.Struct):
    parent: str = msgspec.field(name="from")
    child: str = msgspec.field(name="to")


class _Node(msgspec.Struct):
    is_controllable: bool = True
    computation: str | None = None


class _Hidden(msgspec.Struct):
    enabled: bool
    value_space: list[float]
    affected_nodes: list[str]
    edge_weight: float = 1.0


class _Intervention(msgspec.Struct):
    target_prop: str
    target_value: float


class _Past(msgspec.Struct):
    props: dict[str, float]
    freq: float
    intervention: _Intervention | None = None


class _Quadratic(msgspec.Struct):
    observation_presets: list[dict[str, float]] = []
    property_manipulator: dict[str, float] | None = None
    reactor: dict[str, float] | None = None


class _Config(msgspec.Struct):
    graph_id: str
    nodes: dict[str, _Node]
    edges: list[_Edge]
    params: dict[str, float]
    budget: int
    equation_family: Literal["linear", "quadratic"] = "linear"
    frequency_can_be_parent: bool = False
    hidden_variable: _Hidden | None = None
    bootstrap_past_data: list[_Past] = []
    quadratic_metadata: _Quadratic | None = None


@dataclass(frozen=True, slots=True)
class HiddenNodes:
    """The hidden variable of a config, which states no seed of its draws."""

    values: tuple[float, ...]
    weight: float
    affected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Presets:
    """Bases of crystals that a config fixes, by property; None if they are drawn."""

    records: tuple[Values, ...] = ()
    manipulator: Values | None = None
    reactor: Values | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """One line of a released suite; suite and line identify it, `graph_id` may occur in several files."""

    suite: str
    line: int
    graph_id: str
    mechanism: Mechanism
    settable: tuple[str, ...]
    family: Family
    freq_parent: bool
    allowance: int
    hidden: HiddenNodes | None
    trace: tuple[Traced, ...]
    presets: Presets

    @property
    def id(self) -> str:
        return f"{self.suite}/{self.line}"


def read_configs(path: Path) -> tuple[Config, ...]:
    """Read the configs of a suite file; `PoolError` names file, line and invalid field."""
    with _open_configs(path) as configs:
        return tuple(configs)


@contextmanager
def _open_configs(path: Path) -> Iterator[Iterator[Config]]:
    try:
        with plain_pool(path) as plain:
            yield _configs_of_lines(plain, Path(path.name.removesuffix(".gz")).stem)
    except PoolError as error:
        raise error.with_location(file=path.name) from None


def _configs_of_lines(plain: IO[bytes], suite: str) -> Iterator[Config]:
    lines = pool_lines(plain)
    for line in lines:
        try:
            parsed_config = config(line.text, suite, line.number - 1)
        except PoolError:
            _read_to_end(lines)  # invalid bytes later in the file are reported first
            raise
        yield parsed_config


def _read_to_end(remaining: Iterator[object]) -> None:
    for _ in remaining:
        pass


def is_config(decoded: object) -> bool:
    """Return whether a decoded line looks like a config; such files have no header that names their format."""
    return isinstance(decoded, dict) and decoded.keys() >= CONFIG_KEYS and "format" not in decoded


def is_suite(path: Path) -> bool:
    """Return whether a file begins with a config; `PoolError` if it cannot be read."""
    try:
        return is_config(load_json(pool_head(path)))
    except PoolError as error:
        raise error.with_location(file=path.name) from None
    except (ValueError, TooLargeError):
        return False


def suite_pool(path: Path, seed: int, variant: Variant | None = None) -> Pool[LabItem]:
    """Return an item on each config of a released file, with crystals and noise drawn from seed, file name and line.

    Items of a large file are kept in an unnamed temporary file (dsl.records).
    """
    with _open_configs(path) as configs:
        items = copied_items(_items(configs, seed, variant), _unchanged, _line, _item_of_line)
    return Pool(items[0].suite if items else path.stem, BENCHMARK, items, {"seed": seed})


def _items(configs: Iterator[Config], seed: int, variant: Variant | None) -> Iterator[LabItem]:
    for source_config in configs:
        try:
            item = item_of_config(source_config, seed, variant=variant)
        except CalibrantError as error:
            _read_to_end(configs)  # invalid configs later in the file are reported first
            raise PoolError(str(error), instance=f"line {source_config.line + 1}") from None
        yield item


def _unchanged(item: LabItem) -> LabItem:
    return item


def _line(item: LabItem) -> bytes:
    return msgspec.json.encode(record_of_item(item))


def _item_of_line(line: str) -> LabItem:
    return item_of_record(decoded_again(line, LabRecord))


def config(text: str, suite: str, line: int) -> Config:
    """Return the config of a line's text; line: its number from 0. `PoolError` names line and field."""
    where = f"line {line + 1}"
    try:
        return _config(decode_line(text, _Config), suite, line)
    except PoolError as error:
        raise error.with_location(instance=where) from None
    except CalibrantError as error:  # the graph has a cycle
        raise PoolError(str(error), instance=where, field="nodes") from None


def _config(raw: _Config, suite: str, line: int) -> Config:
    if not 2 <= len(raw.nodes) <= MAX_NODES:
        raise PoolError(f"{len(raw.nodes)} nodes; 2 to {MAX_NODES} are read", field="nodes")
    if raw.budget < 0:
        raise PoolError(f"{short_repr(raw.budget)}; it is 0 or more", field="budget")
    _require_finite(raw.params, "params")
    mechanism = _mechanism(raw)
    _require_same_edges(raw, mechanism)
    quadratic = raw.quadratic_metadata or _Quadratic()
    manipulator, reactor = quadratic.property_manipulator, quadratic.reactor
    presets = Presets(
        tuple(_checked_bases(b, mechanism, "observation_presets") for b in quadratic.observation_presets),
        None if manipulator is None else _checked_bases(manipulator, mechanism, "property_manipulator"),
        None if reactor is None else _checked_bases(reactor, mechanism, "reactor"),
    )
    return Config(
        suite=suite,
        line=line,
        graph_id=raw.graph_id,
        mechanism=mechanism,
        settable=tuple(p for p in mechanism.properties if raw.nodes[p].is_controllable),
        family=Family(raw.equation_family),
        freq_parent=raw.frequency_can_be_parent,
        allowance=raw.budget,
        hidden=_hidden(raw.hidden_variable, mechanism),
        trace=tuple(_check_trace(past, mechanism) for past in raw.bootstrap_past_data),
        presets=presets,
    )


def _mechanism(raw: _Config) -> Mechanism:
    equations = {}
    for node, about in raw.nodes.items():
        is_frequency = node == FREQUENCY
        if about.computation is None and is_frequency:
            raise PoolError("no computation", field=f"nodes.{FREQUENCY}")
        try:
            node_equation = (
                equation(about.computation, raw.params, with_base=is_frequency) if about.computation else Equation()
            )
        except PoolError as error:
            raise PoolError(error.problem, field=f"nodes.{short_repr(node)}.computation") from None
        equations[node] = node_equation
    try:
        return Mechanism(equations)
    except ValueError as error:
        raise PoolError(str(error), field="nodes") from None


def _require_same_edges(raw: _Config, mechanism: Mechanism) -> None:
    edges = {(edge.parent, edge.child) for edge in raw.edges}
    for parent, child in sorted(edges ^ mechanism.edges):
        where = "edges but in no equation" if (parent, child) in edges else "an equation but not in edges"
        raise PoolError(f"{short_repr(parent)} -> {short_repr(child)} is in {where}", field="edges")


def _require_finite(numbers: Mapping[str, float], field: str) -> None:
    for name, value in numbers.items():
        if not math.isfinite(value):
            raise PoolError(f"{short_repr(value)} is not a finite number", field=f"{field}.{short_repr(name)}")


def _checked_bases(bases: dict[str, float], mechanism: Mechanism, field: str) -> Values:
    field = f"quadratic_metadata.{field}"
    if bases.keys() != set(mechanism.nodes_with_drawn_base):
        raise PoolError(f"bases of {short_repr(sorted(bases))}; the properties are meant", field=field)
    _require_finite(bases, field)
    return bases


def _hidden(raw: _Hidden | None, mechanism: Mechanism) -> HiddenNodes | None:
    if raw is None or not raw.enabled:
        return None
    if not raw.value_space:
        raise PoolError("empty", field="hidden_variable.value_space")
    _require_finite({str(i): value for i, value in enumerate([*raw.value_space, raw.edge_weight])}, "hidden_variable")
    for node in raw.affected_nodes:
        if node not in mechanism.equations:
            raise PoolError(f"unknown node {short_repr(node)}", field="hidden_variable.affected_nodes")
    return HiddenNodes(tuple(raw.value_space), raw.edge_weight, tuple(dict.fromkeys(raw.affected_nodes)))


def _check_trace(past: _Past, mechanism: Mechanism) -> Traced:
    field = "bootstrap_past_data"
    if past.props.keys() != set(mechanism.nodes_with_drawn_base):
        raise PoolError(f"values of {short_repr(sorted(past.props))}; the properties are meant", field=f"{field}.props")
    _require_finite({**past.props, "freq": past.freq}, field)
    observed = {name: past.props[name] for name in mechanism.properties} | {FREQUENCY: past.freq}
    if past.intervention is None:
        return Traced(observed)
    setting = past.intervention
    if setting.target_prop not in past.props:
        raise PoolError(
            f"unknown property {short_repr(setting.target_prop)}", field=f"{field}.intervention.target_prop"
        )
    _require_finite({"target_value": setting.target_value}, f"{field}.intervention")
    return Traced(observed, setting.target_prop, setting.target_value)


def released_records(source_config: Config, count: int = NUM_RECORDS) -> tuple[Values, ...]:
    """Return the bases of the first `count` records of released episodes: presets, then draws by RELEASED_SEED."""
    rng = random.Random(RELEASED_SEED)
    presets = [
        source_config.presets.records[i] if i < len(source_config.presets.records) else None for i in range(count)
    ]
    return tuple(crystal(source_config.mechanism, rng) if preset is None else preset for preset in presets)


def crystal(mechanism: Mechanism, rng: random.Random) -> dict[str, float]:
    """Draw the bases of a new crystal, property by property: integers from 0 to 100."""
    return {node: float(rng.randint(LOWEST_BASE, HIGHEST_BASE)) for node in mechanism.nodes_with_drawn_base}


def further_records(mechanism: Mechanism, first: Sequence[Values], count: int, key: str) -> tuple[Values, ...]:
    """Return the first `count` of an endless sequence of records; those after `first` depend on the key alone.

    Hence the number of records changes nothing else of an item.
    """
    rng = random.Random(f"causalab records {key}")
    return (*first[:count], *(crystal(mechanism, rng) for _ in range(count - len(first))))


def item_of_config(
    source_config: Config,
    seed: int,
    *,
    records: Literal["fresh", "released"] = "fresh",
    reading: SettingMeaning = SettingMeaning.VALUE,
    variant: Variant | None = None,
) -> LabItem:
    """Return an item on a released config, with crystals and noise drawn from a seed.

    A config with a static trace allows no settings, whatever its budget says (as the released runs do).
    variant: replaces `records` and `reading`; `CalibrantError` if it fixes more properties than the config can set, or
        has an allowance although the config has a static trace
    """
    variant = variant or Variant(released=records == "released", reading=reading)
    rng = random.Random(f"causalab {seed} {source_config.suite} {source_config.line}")
    presets, mechanism = source_config.presets, source_config.mechanism
    name = Name(f"{source_config.id}/{seed}", source_config.suite, source_config.line)
    fresh = [dict(p) for p in presets.records[:NUM_RECORDS]]
    fresh += [crystal(mechanism, rng) for _ in range(NUM_RECORDS - len(fresh))]
    bases = Bases(
        released_records(source_config, variant.records)
        if variant.released
        else further_records(mechanism, fresh, variant.records, name.id),
        presets.manipulator or crystal(mechanism, rng),
        presets.reactor or crystal(mechanism, rng),
    )
    hidden = source_config.hidden
    noise = None if hidden is None else Noise(hidden.values, hidden.weight, hidden.affected, rng.getrandbits(32))
    return lab_item(name, _terms(source_config, variant, rng), mechanism, bases, noise)


def _terms(source_config: Config, variant: Variant, rng: random.Random) -> Terms:
    settable = source_config.settable
    if variant.fixed > len(settable):
        raise CalibrantError(
            f"{variant.fixed} properties that cannot be set; {len(settable)} can be set in {source_config.id}"
        )
    if source_config.trace and variant.allowance:
        raise CalibrantError(
            f"an allowance of {variant.allowance}; {source_config.id} has a static trace and allows none"
        )
    fixed = set(rng.sample(settable, variant.fixed))
    allowance = source_config.allowance if variant.allowance is None else variant.allowance
    return Terms(
        source_config.family,
        0 if source_config.trace else allowance,
        source_config.freq_parent,
        tries=variant.tries,
        reading=variant.reading,
        trace=source_config.trace,
        settable=tuple(p for p in settable if p not in fixed),
        shown=visible_properties(variant.view, source_config.mechanism, rng),
    )


# --- Configs of a file that reproduce measured transitions, as the released helper selects them -----------------------
TOLERANCE = 0.01  # of a value, whose readings have two decimals


@dataclass(frozen=True, slots=True)
class Transition:
    """The values of all nodes before and after a property was set to `value`."""

    before: Values
    after: Values
    property: str
    value: float


def candidates(configs: Iterable[Config], names: Iterable[str], transitions: Iterable[Transition]) -> list[Config]:
    """Return the configs with these properties that explain every transition within TOLERANCE."""
    properties = set(names)
    observations = list(transitions)
    return [
        c
        for c in configs
        if set(c.mechanism.nodes_with_drawn_base) == properties and all(explains(c, t) for t in observations)
    ]


def explains(candidate: Config, transition: Transition) -> bool:
    """Return whether a config with the same properties maps the values before to those after, within TOLERANCE."""
    mechanism = candidate.mechanism
    try:
        bases = bases_of(mechanism, transition.before)
        after = values(
            mechanism, bases_after(mechanism, bases, transition.property, transition.value, SettingMeaning.VALUE)
        )
    except CalibrantError:  # a value would not be finite
        return False
    return all(abs(after[node] - transition.after[node]) <= TOLERANCE for node in after)
