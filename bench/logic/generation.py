"""Generated items of logic models, and variants of items."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import asdict

from calibrant.audits.logic.generation import SUITES as PLANS
from calibrant.audits.logic.generation import LogicPlan, generate_items
from calibrant.audits.logic.trajectories import TRAJECTORY_STRATA, TrajectoryPlan, generate_trajectories
from calibrant.baselines.logic.rows import greedy_model
from calibrant.bench.core.capabilities import Drawable
from calibrant.bench.core.options import OptionError, require_form
from calibrant.bench.core.registry import benchmark
from calibrant.bench.logic.items import ITEMS
from calibrant.bench.logic.options import GeneratedItems, GenerateOptions
from calibrant.bench.pools.capabilities import GenerateRequest
from calibrant.bench.pools.generated import SuiteGenerator, chosen_strata, write_drawn
from calibrant.bench.pools.item_options import ItemOptions, read_item_options
from calibrant.bench.variants import CopyMap, Record, Variable, Variant, permuted, rephrase, shuffled
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.logic.item import Edge, LogicError, LogicItem, Options, class_edges, discretise, parse_clause
from calibrant.dsl.logic.trajectories import parse_model
from calibrant.dsl.networks.formulas import rename_inputs
from calibrant.dsl.networks.text_formats import bnet_text
from calibrant.dsl.text import plural
from calibrant.solvers.networks.published_parts import UnreachableStratumError, read_folder, read_sources

# --- Generation of pools: suites of experiments, and trajectories of published networks -------------------------------
OF_SERIES = ("networks", "decoys", "functions", "question", "steps")  # item options that only --form series takes


class LogicSuites(Drawable[LogicItem]):
    """Implements Drawable (bench.core.capabilities)."""

    @property
    def names(self) -> Sequence[str]:
        return tuple(PLANS)

    def draw(self, suites: Sequence[str], seed: int, count: int) -> Sequence[LogicItem]:
        return tuple(item for suite in suites for item in self.draw_part(suite, seed, range(count)))

    def parts(self, count: int) -> Sequence[range]:
        return [range(index, index + 1) for index in range(count)]

    def draw_part(self, suite: str, seed: int, indices: range) -> Sequence[LogicItem]:
        """Return the items of a suite with these indices; each depends on suite, seed and index alone."""
        return _draw(PLANS[suite], suite, seed, indices)


# --- Trajectories of published networks -------------------------------------------------------------------------------


@dataclass(frozen=True)
class SeriesSource:
    """Source of items of trajectories, which worker processes get pickled.

    digests: of the folder's networks, in their order; names: neutral (g1, g2, ...) or real, the published ones
    """

    folder: Path
    digests: tuple[str, ...]
    plan: TrajectoryPlan
    names: str

    def draw(self, stratum: str, seed: int, indices: range) -> Iterator[LogicItem]:
        """Yield the items of a stratum with these indices, their genes named as `names` says."""
        sources = read_sources(self.folder, self.digests)
        for index in indices:
            item = generate_trajectories(sources, TRAJECTORY_STRATA[stratum], seed, index, self.plan)
            record = ITEMS.record(item)  # type: ignore[arg-type]  # recognised as an item of trajectories by its fields
            if self.names == "real":
                names = gene_names(record)
                record = VARIANTS.map_record(record, CopyMap(item.id, "names", names))
            yield ITEMS.item_of_record(record)


class LogicGenerator(SuiteGenerator):
    """Generation of suites of experiments, and of trajectories of the networks in a folder."""

    def generate(self, request: GenerateRequest, options: GenerateOptions) -> Sequence[str]:
        """Write a pool; return lines on networks and files. Strata without items are left out, an error if named."""
        require_form(options.form, ("experiments", "series"))
        item_options = read_item_options("generate", self.name, request.item_options)
        values = GeneratedItems() if item_options is None else item_options.values
        if (options.form == "series") is (values.networks is None):
            raise OptionError("--form series and -o networks=FOLDER go together", "--form")
        if options.form == "series":
            return list(self._write_series(request, options, values))
        if options.names is not None:
            raise OptionError("names are chosen for --form series alone", "--names")
        misplaced = next((name for name in OF_SERIES if getattr(values, name) is not None), None)
        if misplaced is not None:
            raise OptionError(f"{misplaced} is of --form series", "-o")
        return super().generate(request, options)

    def _write_series(
        self, request: GenerateRequest, options: GenerateOptions, values: GeneratedItems
    ) -> Iterator[str]:
        stated = {name: value for name, value in asdict(values).items() if value is not None}
        misplaced = next((name for name in stated if name not in OF_SERIES), None)
        if misplaced is not None:
            raise OptionError(f"{misplaced} is of --form experiments", "-o")
        folder = Path(stated.pop("networks"))
        networks = read_folder(folder)
        yield from networks.lines()
        plan = TrajectoryPlan(**{{"functions": "function_class"}.get(name, name): v for name, v in stated.items()})
        source = SeriesSource(folder, tuple(networks.networks), plan, options.names or "neutral")
        strata = []
        for stratum in chosen_strata(request.suites, TRAJECTORY_STRATA, "stratum", " of series"):
            try:
                next(source.draw(stratum, request.seed, range(1)))
            except UnreachableStratumError as error:
                if request.suites != "all":
                    raise OptionError(str(error), "--strata") from None
                yield f"left out: {error}"
                continue
            strata.append(stratum)
        if not strata:
            raise OptionError("no stratum has an item of these networks", "--strata")
        about = {"form": "series", "names": source.names, "networks": list(source.digests), **stated}
        num_written = write_drawn(
            benchmark(self.name),
            request.out,
            strata,
            request.seed,
            request.num_items,
            request.execution,
            progress=request.progress,
            options=ItemOptions(source, about),
        )
        yield f"{plural(num_written, 'instances')} written to {request.out}"


def draw_with_options(
    suite: str, seed: int, indices: range, options: GeneratedItems | SeriesSource
) -> Sequence[LogicItem]:
    """Return items of a suite with the plan's values replaced by options, or of a stratum of trajectories."""
    if isinstance(options, SeriesSource):
        try:
            return tuple(options.draw(suite, seed, indices))
        except UnreachableStratumError as error:
            raise CalibrantError(str(error)) from None
    values = {name: value for name, value in asdict(options).items() if value is not None}
    try:
        plan = replace(PLANS[suite], **values)
    except LogicError as error:
        raise OptionError(str(error), "--option") from None
    return _draw(plan, suite, seed, indices)


def _draw(plan: LogicPlan, suite: str, seed: int, indices: range) -> Sequence[LogicItem]:
    items = generate_items(plan, seed, len(indices), greedy_model, indices.start)
    return tuple(
        replace(item, id=f"{suite}-{seed}-{index}", labels={**item.labels, "stratum": suite})
        for index, item in zip(indices, items, strict=True)
    )


SUITES = LogicSuites()
GENERATE = LogicGenerator("logic", draw_with_options)


# --- Variants of logic models: permuted names and orders, values with equal integers, the compressed network
_COLUMNS = "readouts"  # key of the map of columns in CopyMap.values
_LISTS = ("prior", "stimuli", "inhibitors", "readouts")  # lists whose order does not change the item
_STEPS, _DIGITS = 8, 6  # values move by multiples of 1 / (_STEPS * factor), with as many decimals as prompts show


class LogicVariants(Variable):
    """Implements Variable (bench.variants). Names are replaced whole, since they may contain any sign.

    rename: permute names of all nodes; only of clamped and measured ones if other names decide what compression keeps
    names: in items of trajectories, replace g1, g2, ... by the names of the published network
    columns: permute readouts, stimuli and inhibitors; the map has column numbers from 1, old to new, under `readouts`
    equivalent: the compressed edges, or other values that are discretised to the same integers
    """

    kinds = ("rename", "rows", "columns", "equivalent", "words", "names")
    fixed = frozenset({"id", "labels"})

    def vary(self, record: Record, kind: str, random: Random) -> Variant | None:
        if _has_trajectories(record):
            return _vary_trajectories(record, kind, random)
        if kind == "names":
            return None
        if kind == "rename":
            return self._rename(record, random)
        if kind == "columns":
            return self._reorder_columns(record, random)
        if kind == "equivalent":
            copies = [copy for copy in (_compress(record), _perturb(record, random)) if copy is not None]
            return Variant(random.choice(copies)) if copies else None
        if kind == "words":
            return rephrase(record)
        if len(record["experiments"]) < 2:
            return None
        order = shuffled(range(len(record["experiments"])), random)
        return Variant({**record, **{key: [record[key][k] for k in order] for key in ("experiments", "values")}})

    def _rename(self, record: Record, random: Random) -> Variant | None:
        clamped = {*record["stimuli"], *record["inhibitors"], *record["readouts"]}
        for nodes in (clamped | {name for edge in record["prior"] for name in (edge[0], edge[2])}, clamped):
            names = permuted(sorted(nodes), random)
            try:
                copy = self.map_record(record, CopyMap("", "rename", names))
            except CalibrantError:  # the names decide which edges compression keeps
                continue
            sets = {key: sorted(copy[key]) for key in ("prior", "stimuli", "inhibitors")}
            return Variant(copy | sets, names) if names else None
        return None

    def _reorder_columns(self, record: Record, random: Random) -> Variant | None:
        columns = permuted([str(number) for number, _ in enumerate(record["readouts"], start=1)], random)
        values = {_COLUMNS: columns} if columns else {}
        copy = self.map_record(record, CopyMap("", "columns", {}, values))
        copy |= {key: shuffled(record[key], random) for key in ("stimuli", "inhibitors")}
        return Variant(copy, values=values) if any(copy[key] != record[key] for key in _LISTS) else None

    def normal_form(self, record: Record, kind: str) -> Any:
        if _has_trajectories(record):
            form = self.other_fields(record, kind, ("id", "sealed", "trajectories"))
            lines = sorted(json.dumps(entry, sort_keys=True) for entry in record["trajectories"])
            truth = record["sealed"]["truth"]
            return form | {
                "trajectories": lines,
                "candidates": {gene: sorted(map(tuple, entries)) for gene, entries in record["candidates"].items()},
                "truth": [sorted(truth["network"].splitlines()), truth["answer"]],
            }
        form = self.other_fields(record, kind, ("id", "sealed", *_LISTS, "experiments", "values"))
        prior, values = record["prior"], record["values"]
        if kind == "equivalent":
            prior, values = _class_edges(record), _discretise_values(record)
            form["compress"] = False
        rows = zip(map(_clamps, record["experiments"]), values, strict=True)
        return form | {
            "prior": sorted(map(tuple, prior)),
            "stimuli": sorted(record["stimuli"]),
            "inhibitors": sorted(record["inhibitors"]),
            "readouts": record["readouts"],
            "rows": sorted(map(json.dumps, rows)),
            "questions": list(map(_clamps, record["questions"])),
            "truth": _sorted_truth(record),
        }

    def map_record(self, record: Record, copy_map: CopyMap) -> dict[str, Any]:
        if _has_trajectories(record):
            return _map_trajectories(record, copy_map)
        names, truth = copy_map.names, record["sealed"]["truth"]
        columns = _old_columns(copy_map, len(record["readouts"]))
        if truth is not None:
            gold = [_rename_clause(text, names) for text in truth["gold"]]
            truth = {**truth, "gold": gold, "answers": ["".join(row[k] for k in columns) for row in truth["answers"]]}
        mapped = {
            **record,
            "prior": _rename_edges(record["prior"], names),
            **{key: _rename_all(record[key], names) for key in ("stimuli", "inhibitors")},
            "readouts": _rename_all([record["readouts"][k] for k in columns], names),
            "values": [[row[k] for k in columns] for row in record["values"]],
            **{
                key: [
                    {clamp: _rename_all(part, names) for clamp, part in experiment.items()}
                    for experiment in record[key]
                ]
                for key in ("experiments", "questions")
            },
            "sealed": {**record["sealed"], "truth": truth},
        }
        if names and _class_edges(mapped) != sorted(_rename_edges(_class_edges(record), names)):
            raise CalibrantError("names of merged nodes decide the edges of the class")
        return mapped

    def map_answer(self, answer: Any, copy_map: CopyMap) -> Any:
        if isinstance(answer.get("model"), str):
            return {"model": _rename_network(answer["model"], copy_map.names)}
        mapped = dict(answer)
        if isinstance(mapped.get("model"), list):
            mapped["model"] = [_rename_clause(text, copy_map.names) for text in mapped["model"]]
        if isinstance(mapped.get("probabilities"), list):
            mapped["probabilities"] = [
                [row[k] for k in _old_columns(copy_map, len(row))] for row in mapped["probabilities"]
            ]
        return mapped


def _old_columns(copy_map: CopyMap, width: int) -> list[int]:
    """Return the old index of each new column; `CalibrantError` for a map of anything but these columns."""
    indices = {str(number): number - 1 for number in range(1, width + 1)}
    columns = copy_map.values.get(_COLUMNS, {})
    if not {_COLUMNS}.issuperset(copy_map.values) or not indices.keys() >= columns.keys():
        raise CalibrantError("only columns have a map of values, and these are numbered from 1")
    old_index = {new: indices[number] for number, new in columns.items()}
    return [old_index.get(number, index) for number, index in indices.items()]


def _rename_all(nodes: Sequence[str], names: Mapping[str, str]) -> list[str]:
    return [names.get(name, name) for name in nodes]


def _rename_edges(edges: Sequence[Sequence[Any]], names: Mapping[str, str]) -> list[tuple[str, int, str]]:
    return [(names.get(source, source), sign, names.get(target, target)) for source, sign, target in edges]


def _rename_clause(text: str, names: Mapping[str, str]) -> str:
    """Return a clause with names replaced and literals in their order; a text that is no clause is unchanged."""
    try:
        parse_clause(text)
    except CalibrantError:
        return text
    target, _, body = text.partition("<-")
    literals = [part.strip() for part in body.split("+")]
    signs = ["!" if literal.startswith("!") else "" for literal in literals]
    sources = [literal.removeprefix("!").strip() for literal in literals]
    renamed = "+".join(sign + names.get(source, source) for sign, source in zip(signs, sources, strict=True))
    return f"{names.get(target.strip(), target.strip())}<-{renamed}"


def _class_edges(record: Record) -> list[tuple[str, int, str]]:
    clamped = {*record["stimuli"], *record["inhibitors"], *record["readouts"]}
    edges = itertools.starmap(Edge, record["prior"])
    return [(*edge,) for edge in class_edges(edges, record["stimuli"], clamped, compress=record["compress"])]


def _discretise_values(record: Record) -> list[list[int | None]]:
    options = Options(record["factor"], record["rounding"])
    return [[None if value is None else discretise(value, options) for value in row] for row in record["values"]]


def _clamps(experiment: Record) -> list[list[str]]:
    return [sorted(experiment["stimuli"]), sorted(experiment["inhibited"])]


def _sorted_truth(record: Record) -> Any:
    truth = record["sealed"]["truth"]
    return None if truth is None else {**truth, "gold": sorted(map(parse_clause, truth["gold"]))}


def _compress(record: Record) -> dict[str, Any] | None:
    """Return the record with its compressed edges; None if compression changes nothing."""
    edges = _class_edges(record)
    is_compressed = not record["compress"] or edges == sorted(map(tuple, record["prior"]))
    return None if is_compressed else {**record, "prior": edges, "compress": False}


def _perturb(record: Record, random: Random) -> dict[str, Any] | None:
    """Return the record with values moved within their integer after discretisation; None if none can be moved.

    Values from 0 to 1 stay there.
    """
    options = Options(record["factor"], record["rounding"])

    def neighbour(value: float | None) -> float | None:
        if value is None:
            return None
        steps = (round(value + k / (_STEPS * options.factor), _DIGITS) for k in range(-_STEPS + 1, _STEPS))
        candidates = [
            new
            for new in steps
            if new != value
            and discretise(new, options) == discretise(value, options)
            and (0 <= new <= 1 or not 0 <= value <= 1)
        ]
        return random.choice(candidates) if candidates else value

    values = [list(map(neighbour, row)) for row in record["values"]]
    return None if values == record["values"] else {**record, "values": values}


# --- Items of trajectories --------------------------------------------------------------------------------------------


def _has_trajectories(record: Record) -> bool:
    return "trajectories" in record


def gene_names(record: Record) -> dict[str, str]:
    """Return the published names by neutral gene names (g1, g2, ...); empty if the item has other names."""
    names = dict(zip(record["genes"], record["sealed"]["labels"].get("names", "").split(), strict=False))
    is_neutral = record["genes"] == [f"g{place}" for place, _ in enumerate(record["genes"], start=1)]
    return names if is_neutral and names.keys() == {*record["genes"]} else {}


def _vary_trajectories(record: Record, kind: str, random: Random) -> Variant | None:
    if kind == "words":
        return rephrase(record)
    if kind == "rows":
        trajectories = shuffled(record["trajectories"], random)
        return Variant({**record, "trajectories": trajectories}) if len(trajectories) > 1 else None
    if kind not in ("rename", "names"):
        return None
    names = gene_names(record) if kind == "names" else permuted(record["genes"], random)
    return Variant(_map_trajectories(record, CopyMap("", kind, names)), names) if names else None


def _map_trajectories(record: Record, copy_map: CopyMap) -> dict[str, Any]:
    """Return a record with genes renamed; the order of genes, and so the states, does not change."""
    if copy_map.values:
        raise CalibrantError("values have no map here")
    names, truth = copy_map.names, record["sealed"]["truth"]

    def rename(held: Mapping[str, int]) -> dict[str, int]:
        return {names.get(gene, gene): value for gene, value in held.items()}

    truth = {**truth, "network": _rename_network(truth["network"], names)}
    return {
        **record,
        "genes": _rename_all(record["genes"], names),
        "candidates": {
            names.get(gene, gene): [(names.get(name, name), sign) for name, sign in entries]
            for gene, entries in record["candidates"].items()
        },
        "trajectories": [{**entry, "held": rename(entry["held"])} for entry in record["trajectories"]],
        "question": {**record["question"], "held": rename(record["question"]["held"])},
        "sealed": {**record["sealed"], "truth": truth},
    }


def _rename_network(text: str, names: Mapping[str, str]) -> str:
    """Return a bnet text with genes renamed; a text that is no bnet is unchanged."""
    try:
        network = parse_model(text)
    except CalibrantError:
        return text
    return bnet_text({names.get(gene, gene): rename_inputs(network.function(gene), names) for gene in network.nodes})


VARIANTS = LogicVariants()
