"""Generation of pools of logic models: suites of experiments, and series of published networks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

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
from calibrant.bench.logic.variants import VARIANTS, gene_names
from calibrant.bench.pools.capabilities import GenerateRequest
from calibrant.bench.pools.generated import SuiteGenerator, write_drawn
from calibrant.bench.pools.item_options import ItemOptions, read_item_options
from calibrant.bench.variants import CopyMap
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.logic.item import LogicError, LogicItem
from calibrant.dsl.text import known_names, plural
from calibrant.solvers.networks.folder import read_folder
from calibrant.solvers.networks.windows import Source, UnreachableStratumError

OF_SERIES = ("networks", "decoys", "functions", "question", "steps")  # options of items


class LogicSuites(Drawable[LogicItem]):
    """Implements Drawable (bench.core.capabilities)."""

    @property
    def names(self) -> Sequence[str]:
        return tuple(PLANS)

    def draw(self, suites: Sequence[str], seed: int, count: int) -> Sequence[LogicItem]:
        return tuple(item for suite in suites for item in self.draw_part(suite, seed, range(count)))

    def parts(self, count: int) -> Sequence[range]:
        return [range(place, place + 1) for place in range(count)]

    def draw_part(self, suite: str, seed: int, places: range) -> Sequence[LogicItem]:
        """Return items with their labels; each depends on suite, seed and position alone."""
        return _draw(PLANS[suite], suite, seed, places)


# --- Series of published networks -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SeriesSource:
    """Networks and rules of items of series; it can be pickled. digests: of the networks of the folder, in order."""

    folder: Path
    digests: tuple[str, ...]
    plan: TrajectoryPlan
    names: str

    def draw(self, stratum: str, seed: int, places: range) -> Iterator[LogicItem]:
        """Yield items, under published names if these are asked for."""
        sources = _read_sources(self.folder, self.digests)
        for place in places:
            item = generate_trajectories(sources, TRAJECTORY_STRATA[stratum], seed, place, self.plan)
            record = ITEMS.record(item)  # type: ignore[arg-type]  # told by its fields
            if self.names == "real":
                names = gene_names(record)
                record = VARIANTS.map_record(record, CopyMap(item.id, "names", names))
            yield ITEMS.item_of_record(record)


@cache
def _read_sources(folder: Path, digests: tuple[str, ...]) -> tuple[Source, ...]:
    """Return the networks of a folder; `CalibrantError` if a file changed since the digests were taken."""
    networks = read_folder(folder).networks
    if tuple(networks) != digests:
        raise CalibrantError(f"{folder}: a file changed while items were made; run the same command again")
    return tuple(map(Source, networks.values()))


class LogicGenerator(SuiteGenerator):
    """Suites of experiments, and series of networks in a folder."""

    def generate(self, request: GenerateRequest, options: GenerateOptions) -> Sequence[str]:
        """Write a pool; return lines on networks and files. Strata without an item are left out, unless named."""
        require_form(options.form, ("experiments", "series"))
        stated = read_item_options("generate", self.name, request.item_options)
        values = GeneratedItems() if stated is None else stated.values
        if (options.form == "series") is (values.networks is None):
            raise OptionError("--form series and -o networks=FOLDER go together", "--form")
        if options.form == "series":
            return list(self._write_series(request, options, values))
        if options.names is not None:
            raise OptionError("names are chosen for --form series alone", "--names")
        foreign = next((name for name in OF_SERIES if getattr(values, name) is not None), None)
        if foreign is not None:
            raise OptionError(f"{foreign} is of --form series", "-o")
        return super().generate(request, options)

    def _write_series(
        self, request: GenerateRequest, options: GenerateOptions, values: GeneratedItems
    ) -> Iterator[str]:
        chosen = {name: value for name, value in asdict(values).items() if value is not None}
        foreign = next((name for name in chosen if name not in OF_SERIES), None)
        if foreign is not None:
            raise OptionError(f"{foreign} is of --form experiments", "-o")
        folder = Path(chosen.pop("networks"))
        networks = read_folder(folder)
        yield from networks.lines()
        plan = TrajectoryPlan(**{{"functions": "function_class"}.get(name, name): v for name, v in chosen.items()})
        source = SeriesSource(folder, tuple(networks.networks), plan, options.names or "neutral")
        strata = []
        for stratum in _chosen_strata(request.suites):
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
        about = {"form": "series", "names": source.names, "networks": list(source.digests), **chosen}
        number = write_drawn(
            benchmark(self.name),
            request.out,
            strata,
            request.seed,
            request.num_items,
            request.execution,
            progress=request.progress,
            options=ItemOptions(source, about),
        )
        yield f"{plural(number, 'instances')} written to {request.out}"


def _chosen_strata(text: str) -> Sequence[str]:
    if text == "all":
        return tuple(TRAJECTORY_STRATA)
    names = [part.strip() for part in text.split(",")]
    for name in names:
        if name not in TRAJECTORY_STRATA:
            raise OptionError(
                f"unknown stratum {short_repr(name)} of series; {known_names(name, TRAJECTORY_STRATA)}", "--strata"
            )
    return names


def draw_with_options(
    suite: str, seed: int, places: range, options: GeneratedItems | SeriesSource
) -> Sequence[LogicItem]:
    """Return items of a suite whose plan has some other values, or of a stratum of series."""
    if isinstance(options, SeriesSource):
        try:
            return tuple(options.draw(suite, seed, places))
        except UnreachableStratumError as error:
            raise CalibrantError(str(error)) from None
    values = {name: value for name, value in asdict(options).items() if value is not None}
    try:
        plan = replace(PLANS[suite], **values)
    except LogicError as error:
        raise OptionError(str(error), "--option") from None
    return _draw(plan, suite, seed, places)


def _draw(plan: LogicPlan, suite: str, seed: int, places: range) -> Sequence[LogicItem]:
    items = generate_items(plan, seed, len(places), greedy_model, places.start)
    return tuple(
        replace(item, id=f"{suite}-{seed}-{place}", labels={**item.labels, "stratum": suite})
        for place, item in zip(places, items, strict=True)
    )


SUITES = LogicSuites()
GENERATE = LogicGenerator("logic", draw_with_options)
