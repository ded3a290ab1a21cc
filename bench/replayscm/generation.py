"""Generated items of ReplaySCM, Alternative-SCM items made of others, and variants of items."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from calibrant.audits.replayscm.extended.generate import SETTINGS, ExtendedStratum, extended_strata, sample_extended
from calibrant.audits.replayscm.generation import generate as generation_generate
from calibrant.audits.replayscm.generation.published import MAX_ADDED_WORLDS, NETWORK_STRATA, PLANS, draw_windows
from calibrant.bench import variants
from calibrant.bench.core.options import OptionError, require_form
from calibrant.bench.pools.capabilities import GenerateRequest
from calibrant.bench.pools.generated import chosen_strata
from calibrant.bench.pools.item_options import read_item_options
from calibrant.bench.replayscm.items import ITEMS, require_plain
from calibrant.bench.replayscm.options import GenerateOptions as GenerateArguments
from calibrant.bench.replayscm.pools.unfinished import Made, unfinished_pool
from calibrant.bench.runs.executors import HERE, Execution, Progress
from calibrant.bench.terminal import typed_json
from calibrant.dsl.atomic_write import write_pieces
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.replayscm.generation.problems import sample_pool
from calibrant.dsl.replayscm.generation.strata import NAMED_STRATA, Stratum, stratum
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.dsl.text import plural
from calibrant.solvers.networks.published_parts import Source, UnreachableStratumError, read_folder, read_sources

if TYPE_CHECKING:
    from calibrant.bench.replayscm.hardening import SuppliedAnswer

J = TypeVar("J")

# --- Generation of a whole pool, parallel over instances, resumable; equal bytes for any number of workers ------------


@dataclass(frozen=True)
class GenerateOptions:
    """Options of a generated pool.

    setting: one of the sampler's SETTINGS
    max_added: largest number of worlds added to an item to rule out alternatives (targeted disambiguation)
    """

    strata: Sequence[Stratum]
    per_stratum: int
    seed: int
    setting: str
    max_added: int = MAX_ADDED_WORLDS

    @property
    def job_arguments(self) -> tuple[Sequence[Stratum], int, int, str, int]:
        return self.strata, self.per_stratum, self.seed, self.setting, self.max_added


@dataclass(frozen=True)
class GeneratedPool:
    """A generated pool, and the audit of every instance, ready for JSON, in the order of the pool."""

    pool: Pool
    audits: Sequence[dict[str, Any]]


@contextmanager
def generated_pool(
    out: Path,
    options: GenerateOptions,
    *,
    execution: Execution = HERE,
    progress: Progress = lambda name, done, total: None,
) -> Iterator[GeneratedPool]:
    """Yield the generated pool, for the caller's block to write to `out`.

    Results are stored beside `out` until the block succeeds, so that the same call resumes after a kill.
    """
    name, metadata = (
        generation_generate.pool_name(options.setting),
        generation_generate.pool_metadata(*options.job_arguments),
    )
    jobs = {
        f"{job.stratum.name}, seed {job.seed}": job for job in generation_generate.pool_jobs(*options.job_arguments)
    }
    with unfinished_pool(out, {"generate": metadata}) as work:
        results = work.make(name, jobs, generate_instance, execution=execution, progress=progress)
        yield GeneratedPool(Pool(name, results.problems, metadata), results.reports)


def generate_instance(job: generation_generate.Job) -> Made:
    """Return one instance and its audit."""
    generated = generation_generate.run_job(job)
    return Made(generated.problem, {"id": generated.problem.id, **generated.audit.to_dict()})


# --- Generation of extended items: sampled and labelled, with findings about each; resumable like plain pools ---------
FORMS = ("episode", "passive")


@dataclass(frozen=True)
class ExtendedJob:
    """One item to generate; picklable."""

    stratum: str
    seed: int
    setting: str
    is_episode: bool


def generate_extended(request: GenerateRequest, form: str, setting: str, audits: Path) -> Iterator[str]:
    """Write a pool of episodes or of passive items, and the findings about each item; yield a line for each file."""
    if setting not in SETTINGS:
        raise OptionError(f"of extended items it is one of {', '.join(SETTINGS)}", "--setting")
    strata = _extended_strata(request.suites)
    metadata = {
        "form": form,
        "setting": setting,
        "seed": request.seed,
        "strata": [stratum.name for stratum in strata],
        "per_stratum": request.num_items,
    }
    jobs = {
        f"{stratum.name}, seed {seed}": ExtendedJob(stratum.name, seed, setting, form == "episode")
        for stratum in strata
        for seed in range(request.seed, request.seed + request.num_items)
    }
    yield from _write_items(request, f"extended_{form}_{setting}", metadata, jobs, make_item, audits)


def _write_items(
    request: GenerateRequest,
    name: str,
    metadata: Mapping[str, Any],
    jobs: Mapping[str, J],
    make: Callable[[J], Made],
    audits: Path,
) -> Iterator[str]:
    """Make the items of jobs, resumably, and write their pool and audits; yield a line for each file."""
    with unfinished_pool(request.out, {"generate": metadata}) as work:
        results = work.make(name, jobs, make, execution=request.execution, progress=request.progress)
        write_pieces(audits, (f"{typed_json(report)}\n" for report in results.reports))
        write_pool(Pool(name, results.problems, metadata), request.out)
        yield f"audits written to {audits}"
        yield f"{plural(len(results.problems), 'instances')} written to {request.out}"


def make_item(job: ExtendedJob) -> Made:
    """Return one labelled item with the findings about it."""
    from calibrant.bench.replayscm.audit.extended import finding_records, label_problem

    stratum = next(stratum for stratum in extended_strata() if stratum.name == job.stratum)
    problem = label_problem(sample_extended(stratum, job.seed, setting=job.setting, is_episode=job.is_episode))
    findings: list[dict[str, Any]] = [msgspec.to_builtins(record) for record in finding_records(problem)]
    return Made(problem, {"id": problem.id, "findings": findings})


def _extended_strata(text: str) -> Sequence[ExtendedStratum]:
    by_name = {stratum.name: stratum for stratum in extended_strata()}
    return tuple(by_name[name] for name in chosen_strata(text, by_name, "stratum", " of extended items"))


# --- Items whose mechanisms are those of published networks, from a folder of the user's own --------------------------
@dataclass(frozen=True)
class NetworkJob:
    """One item to generate; picklable. digests: digests of the folder's networks, in order; names: neutral or real."""

    stratum: str
    seed: int
    setting: str
    max_added: int
    folder: Path
    digests: tuple[str, ...]
    names: str


def generate_of_networks(
    request: GenerateRequest, folder: Path, options: GenerateArguments, audits: Path
) -> Iterator[str]:
    """Write a pool of windows (parts of a network that suit a stratum) and their audits; yield lines about both.

    A stratum without a window in these networks is skipped with a line; if it was named, `OptionError`.
    """
    networks = read_folder(folder)
    yield from networks.lines()
    digests, seeds = tuple(networks.networks), range(request.seed, request.seed + request.num_items)
    max_added = MAX_ADDED_WORLDS if options.max_added is None else options.max_added
    names = options.names or "neutral"
    jobs: dict[str, NetworkJob] = {}
    strata = []
    sources = [*map(Source, networks.networks.values())]
    for name in chosen_strata(request.suites, NETWORK_STRATA, "stratum", " of networks"):
        stratum = NETWORK_STRATA[name]
        try:
            next(draw_windows(sources, stratum, Random(stratum.name)))
        except UnreachableStratumError as error:
            if request.suites != "all":
                raise OptionError(str(error), "--strata") from None
            yield f"left out: {error}"
            continue
        strata.append(stratum.name)
        for seed in seeds:
            job = NetworkJob(stratum.name, seed, options.setting, max_added, folder, digests, names)
            jobs[f"{stratum.name}, seed {seed}"] = job
    metadata = {
        "form": "network",
        "setting": options.setting,
        "names": names,
        "seed": request.seed,
        "strata": strata,
        "per_stratum": request.num_items,
        "max_added_worlds": max_added,
        "networks": list(digests),
    }
    name = f"networks_{options.setting.replace('-', '_')}" + ("_real" if names == "real" else "")
    yield from _write_items(request, name, metadata, jobs, make_network_item, audits)


def make_network_item(job: NetworkJob) -> Made:
    """Return one item and its audit, under the network's names if the job has `names` real."""
    sources = read_sources(job.folder, job.digests)
    stratum = NETWORK_STRATA[job.stratum]
    try:
        generated = generation_generate.generate_from_networks(
            sources, stratum, job.seed, setting=job.setting, max_added=job.max_added
        )
    except UnreachableStratumError as error:
        raise CalibrantError(str(error)) from None
    problem, audit = generated.problem, generated.audit.to_dict()
    if job.names == "real":
        names = network_names(problem.sealed.labels)
        problem = ITEMS.item_of_record(variants.rename_json(ITEMS.record(problem), names, VARIANTS.fixed))
        audit = variants.rename_json(audit, names)
    return Made(problem, {"id": problem.id, **audit})


# --- Commands: pools with all filters and audits (`generate`), or sampled without them (`sample`) ---------------------


class ScmGenerator:
    """Implements Generatable (bench.pools.capabilities)."""

    workers = None  # an instance takes seconds

    def generate(self, request: GenerateRequest, options: GenerateArguments) -> Sequence[str]:
        """Write pool and audits once all instances are done; until then they are in OUT.unfinished."""
        require_form(options.form, ("published", "episode", "passive", "network"))
        item_options = read_item_options("generate", "replayscm", request.item_options)
        network_folder = None if item_options is None else item_options.values.networks
        if (options.form == "network") is (network_folder is None):
            raise OptionError("--form network and -o networks=FOLDER go together", "--form")
        if options.names is not None and network_folder is None:
            raise OptionError("names are chosen for --form network alone", "--names")
        out = request.out
        audits = options.audits or out.with_name(f"{out.name.removesuffix(out.suffix)}.audits.jsonl")
        if network_folder is not None:
            return list(generate_of_networks(request, Path(network_folder), options, audits))
        if options.form != "published":
            if options.max_added is not None:
                raise OptionError("worlds against alternatives are added to published items alone", "--max-added")
            return list(generate_extended(request, options.form, options.setting, audits))
        strata = tuple(map(_stratum, PLANS)) if request.suites == "all" else _strata(request.suites)
        max_added = MAX_ADDED_WORLDS if options.max_added is None else options.max_added
        settings = GenerateOptions(strata, request.num_items, request.seed, options.setting, max_added)
        with generated_pool(out, settings, execution=request.execution, progress=request.progress) as generated:
            write_pieces(audits, (f"{typed_json(line)}\n" for line in generated.audits))
            write_pool(generated.pool, out)
            return [f"audits written to {audits}", f"{plural(len(generated.pool), 'instances')} written to {out}"]


def sample(out: Path, strata: str, per_stratum: int, seed: int, setting: str) -> int:
    """Write a sampled pool; return the number of its instances."""
    chosen = NAMED_STRATA if strata == "all" else _strata(strata)
    pool = sample_pool(chosen, per_stratum, seed, setting)
    write_pool(pool, out)
    return len(pool)


def _strata(text: str) -> tuple[Stratum, ...]:
    return tuple(_stratum(name.strip()) for name in text.split(","))


def _stratum(name: str) -> Stratum:
    try:
        return stratum(name)
    except ValueError as error:
        raise OptionError(str(error), "--strata") from None


GENERATE = ScmGenerator()
SAMPLE = sample


# --- Alternative-SCM pools, made from pools that ask for an SCM -------------------------------------------------------


def alternative_pool(
    pool: Pool,
    seed: int,
    *,
    discovered: Sequence[SuppliedAnswer] | None = None,
    open_ended: bool = False,
    progress: Progress = lambda name, done, total: None,
) -> tuple[Pool, list[str]]:
    """Return Alternative-SCM items in the order of the pool, and the ids of instances that give none.

    `CalibrantError` for an instance without gold, with hidden roots or with a reference of its own.

    discovered: answers that become the known alternatives; None: alternatives are sampled from the version space
    open_ended: whether instances without a known alternative become items too, with gold as the reference
    """
    from calibrant.audits.replayscm.alternative_items import alternative_item, open_ended_item
    from calibrant.bench.replayscm.hardening import group_by_instance

    require_plain(pool.problems, "`pool alternatives`")
    items, without_item = [], []
    answers = None if discovered is None else group_by_instance(discovered)
    for index, problem in enumerate(pool.problems):
        try:
            if answers is None:
                item = alternative_item(problem, seed)
            else:
                item = _discovered_item(problem, seed, answers.get(problem.id, ()))
        except ValueError as error:
            raise CalibrantError(f"{pool.name}: {error}") from None
        if item is None and open_ended:
            item = open_ended_item(problem)
        items += [item] if item else []
        without_item += [] if item else [problem.id]
        progress(pool.name, index + 1, len(pool))
    metadata = {"alternatives_of": pool.name, "seed": seed} | ({"open_ended": True} if open_ended else {})
    return Pool(f"{pool.name}_alternatives", tuple(items), metadata), without_item


def _discovered_item(problem: Problem, seed: int, supplied: Sequence[SuppliedAnswer]) -> Problem | None:
    from calibrant.audits.replayscm.alternative_items import discovered_pair
    from calibrant.bench.replayscm.hardening import check_alternatives

    models = check_alternatives(problem, supplied).models
    systems = {answer.line: answer.systems for answer in supplied}
    pair = discovered_pair(problem, seed, [(model, systems[line]) for line, model in models.items()])
    return None if pair is None else pair.problem


class AlternativeItems:
    """Implements AlternativesMakeable (bench.pools.capabilities)."""

    def write_alternatives(
        self,
        source: Path,
        target: Path,
        seed: int,
        progress: Progress,
        *,
        discovered: Sequence[Path],
        open_ended: bool,
    ) -> Sequence[str]:
        from calibrant.bench.replayscm.hardening import discovered_alternatives

        source_pool = read_pool(source, keep_results=False)
        answers = discovered_alternatives(discovered) if discovered else None
        pool, without_item = alternative_pool(
            source_pool, seed, discovered=answers, open_ended=open_ended, progress=progress
        )
        write_pool(pool, target)
        reason = "no other SCM" if answers is None else "no discovered SCM fits, differs from gold and is one"
        lines = [in_one_line(f"{name}: {reason} that a single intervention tells apart") for name in without_item]
        return [*lines, f"{plural(len(pool), 'instances')} written to {target}"]


ALTERNATIVE_ITEMS = AlternativeItems()


# --- Variants of items: renamed variables, reordered worlds and rows, other notations and wordings --------------------
# Columns are not reordered: prompts list them by name. Items of episodes have no variants: their readings depend on the
# names of variables and the order of worlds.
_EXTENSIONS = ("hidden", "asked")  # fields of a record with lists in the order of its roots or variables


class ScmVariants(variants.Variable):
    """Variants of an item, by kind.

    equivalent: constants of a training world are written as assigned values, which its rows show anyway
    names: neutral names g1, g2, ... of an item of a published network are replaced by the network's names
    """

    kinds = ("rename", "rows", "worlds", "equivalent", "words", "names")
    fixed = frozenset({"id", "labels", "kind", "type", "operators", "units", variants.WORDING})

    def absence(self, record: variants.Record) -> str:
        if record.get("allowance"):
            return "items of episodes have no variants: their readings are drawn by the names of variables"
        return "" if "heldout" in record["sealed"] else "an item without held-out worlds has no variants"

    def vary(self, record: variants.Record, kind: str, random: Random) -> variants.Variant | None:
        if self.absence(record):
            return None
        if kind == "words":
            return variants.rephrase(record)
        if kind == "names":
            names = network_names(record["sealed"].get("labels", {}))
            is_neutral = bool(names) and names.keys() == set(record["variables"])
            return variants.Variant(variants.rename_json(record, names, self.fixed), names) if is_neutral else None
        copy = json.loads(json.dumps(record))
        worlds = [copy["training"], copy["sealed"]["heldout"]]
        if kind == "rename":
            names = variants.permuted(copy["variables"], random)
            return variants.Variant(variants.rename_json(copy, names, self.fixed), names) if names else None
        if kind == "equivalent":
            return _as_assigned(copy, random)
        if kind == "worlds":
            copy["training"], copy["sealed"]["heldout"] = (variants.shuffled(split, random) for split in worlds)
            return variants.Variant(copy)
        return _with_rows(copy, random)

    def normal_form(self, record: variants.Record, kind: str) -> Any:
        names = record["variables"]
        columns = sorted(range(len(names)), key=names.__getitem__)

        def normal_world(world: variants.Record) -> str:
            units = world.get("units") or record["units"]
            rows = [[unit, "".join(row[k] for k in columns)] for unit, row in zip(units, world["rows"], strict=True)]
            assigned, constants = sorted(world.get("assigned", ())), world.get("constants", {})
            if kind == "equivalent":
                assigned, constants = sorted({*assigned, *constants}), {}
            other_fields = {key: world[key] for key in world if key not in ("units", "id")}
            normal = {**other_fields, "rows": sorted(rows), "assigned": assigned, "constants": constants}
            return json.dumps(normal, sort_keys=True)

        sealed, is_extended = record["sealed"], any(record.get(key) for key in _EXTENSIONS)
        hidden = {key: value for key, value in sealed.items() if key not in ("labels", "heldout")}
        return self.other_fields(record, kind, ("id", "variables", "units", "sealed")) | {
            "names": sorted(names),
            "training": sorted(map(normal_world, record["training"])),
            "heldout": sorted(map(normal_world, sealed.get("heldout", ()))),
            "disclosure": record["disclosure"] if is_extended else _sorted_lists(record["disclosure"]),
            "hidden": hidden,
        }


def network_names(labels: Mapping[str, str]) -> dict[str, str]:
    """Return neutral name -> published name for an item of a network; empty for other items."""
    return {f"g{number}": name for number, name in enumerate(labels.get("names", "").split(), start=1)}


def _with_rows(copy: dict[str, Any], random: Random) -> variants.Variant:
    """Permute the rows of all worlds alike; a world with its own units gets a permutation of its own."""
    shared_order = variants.shuffled(range(len(copy["units"])), random)
    for world in (*copy["training"], *copy["sealed"]["heldout"]):
        order = variants.shuffled(range(len(world["rows"])), random) if world.get("units") else shared_order
        world["rows"] = [world["rows"][k] for k in order]
        if world.get("units"):
            world["units"] = [world["units"][k] for k in order]
    copy["units"] = [copy["units"][k] for k in shared_order]
    return variants.Variant(copy)


def _as_assigned(copy: dict[str, Any], random: Random) -> variants.Variant | None:
    """Write the constants of at least one training world as assigned values; None if no world has constants."""
    worlds = [world for world in copy["training"] if world.get("constants")]
    for world in random.sample(worlds, random.randint(1, len(worlds))) if worlds else ():
        world["assigned"] = [*world.get("assigned", ()), *world.pop("constants")]
    return variants.Variant(copy) if worlds else None


def _sorted_lists(disclosure: variants.Record) -> dict[str, Any]:
    """Sort the sets of a disclosure, roots and each block; the order of blocks and of variables stays."""
    return {
        key: sorted(value) if key == "roots" else [sorted(block) for block in value] if key == "blocks" else value
        for key, value in disclosure.items()
    }


VARIANTS = ScmVariants()
