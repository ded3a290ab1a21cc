"""Commands on pool files: convert, alternatives, check, unpack, stats, distinct, split, subset, schema."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from calibrant.bench.commands.difficulty import subset
from calibrant.bench.commands.guard import READS, WRITES, WRITES_OR_READS, Writes, guard_paths, require_apart
from calibrant.bench.commands.options import AsJson, ItemOption, NewPool, OfBenchmark, PoolPath, PoolPaths, with_options
from calibrant.bench.core.names import FIRST
from calibrant.bench.core.options import GivenOptions
from calibrant.bench.help import ITEMS, METHOD, OUTPUT, ConvertCommand, GroupedOptions, epilog
from calibrant.bench.terminal import (
    NextCommand,
    json_text,
    pool_commands,
    print_next,
    print_written,
    refuse_existing,
    unused_path,
)
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.text import plural

if TYPE_CHECKING:
    from calibrant.bench.pools.soundness import CheckReport

pool_app = typer.Typer(help="Convert, check and describe pool files.")


@pool_app.command(cls=ConvertCommand, epilog=epilog("pool convert"))
@guard_paths
@with_options("pool convert")
def convert(
    source: PoolPath,
    target: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="File to write: official YAML if .yaml or .yml, else JSONL."),
        WRITES_OR_READS,
    ],
    given: GivenOptions,
    third: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="File to write, after PKN MIDAS."), WRITES
    ] = None,
    item_option: ItemOption = None,
) -> None:
    """Write a pool in the native format, which loads faster and has a schema, or in the official one.

    The official YAML is for the benchmark's own scorer: a pool that was hardened or generated goes back to it. Every
    instance is read back, and is the same, before the file appears. A released suite of CausaLab becomes a native pool;
    so do programs (a state file, a module, lines of {id, source}, a folder of these): with the questions of the
    folder's query files, or with questions that -o draws. A prior network and measurements, PKN MIDAS FILE, become an
    item of logic models without a sealed part.
    """
    from calibrant.bench.core.registry import benchmark_of, sole_provider
    from calibrant.bench.pools.capabilities import FAMILIES, ITEM_CONVERSION, PROGRAMS
    from calibrant.bench.pools.item_options import read_item_options

    families = sole_provider(FAMILIES)
    if third is not None or families.recognizes(source):
        out = _measured_out((source, target), third, item_option or ())
        for line in families.convert(source, target, out, given):
            typer.echo(line, err=True)
        print_next(pool_commands(out))
        return
    refuse_existing([target], "OUT", target)
    programs = sole_provider(PROGRAMS)
    if programs.recognizes(source):
        given.refuse_foreign([programs.benchmark], source.name)
        item_options = read_item_options("pool convert", programs.benchmark, item_option or ())
        for line in programs.convert(source, target, item_options):
            typer.echo(line, err=True)
        print_next(pool_commands(target))
        return
    bench = benchmark_of(source)
    given_options = given.convert(bench.name, source.name)
    if given.values and bench.capability(FAMILIES) is not None:
        flag = next(iter(given.by_flag))
        raise CalibrantError(f"{flag} applies to measurements, PKN MIDAS FILE; {source.name} is a pool")
    item_options = read_item_options("pool convert", bench.name, item_option or ())
    if item_options is None:
        number = bench.items.convert(source, target, given_options)
    else:
        number = bench.require(ITEM_CONVERSION).convert_with_options(source, target, item_options)
    print_written(target, plural(number, "instances"))
    print_next(pool_commands(target))


def _measured_out(inputs: Sequence[Path], third: Path | None, item_option: Sequence[str]) -> Path:
    """Return the output file of measurements: the third argument, or the one named by -o."""
    files = [text for text in item_option if "=" not in text]
    if len(files) < len(item_option):
        raise typer.BadParameter("items of measurements have no options NAME=VALUE", param_hint="-o")
    outs = [*([] if third is None else [third]), *map(Path, files)]
    if len(outs) != 1:
        raise typer.BadParameter("give one file to write: PKN MIDAS FILE", param_hint="FILE")
    require_apart(inputs, WRITES.targets("FILE", outs[0]))  # the guard regards the second argument as the output
    refuse_existing(outs, "FILE", outs[0])
    return outs[0]


@pool_app.command(cls=GroupedOptions, epilog=epilog("pool alternatives"))
@guard_paths
def alternatives(
    source: PoolPath,
    target: NewPool,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.", rich_help_panel=ITEMS)] = 0,
    open_ended: Annotated[
        bool,
        typer.Option(
            "--open-ended",
            help="Also of instances without a known alternative; gold is the reference.",
            rich_help_panel=METHOD,
        ),
    ] = False,
    discovered: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="RUNS",
            help="Take alternatives from answers: folders of `run`, files of `alternatives`.",
            rich_help_panel=METHOD,
        ),
        READS,
    ] = None,
) -> None:
    """Make Alternative-SCM items of a pool: its evidence with one of two known SCMs as the reference.

    The pair is gold and another SCM that fits, with an experiment that tells them apart. Instances that leave no other
    SCM open, or none that a single intervention can tell apart, are named and left out. With --from, as in the paper,
    the other SCM is the first that somebody answered, and items state whose answer it was.
    """
    from calibrant.bench.commands.options import progress_bar
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.pools.capabilities import ALTERNATIVE_ITEMS

    maker = benchmark_of(source).require(ALTERNATIVE_ITEMS)
    with progress_bar() as progress:
        lines = maker.write_alternatives(
            source, target, seed, progress, discovered=discovered or (), open_ended=open_ended
        )
    for line in lines:
        typer.echo(line, err=True)
    print_next(pool_commands(target))


@pool_app.command(cls=GroupedOptions, epilog=epilog("pool check"))
@guard_paths
@with_options("pool check")
def check(
    pools: PoolPaths,
    given: GivenOptions,
    as_json: AsJson = False,
) -> int:
    """Check that gold is legal and replays its worlds, and that the file says what it says consistently.

    Duplicates, ambiguous items and headers that contradict records are noted. Of the other benchmarks: that what the
    file states of an item is true. What may not be wanted, though it is true, is noted: items that nobody can decide
    within what they allow, and whatever `calibrant audit` proves.

    Programs (a state file, a .py module, lines of {id, source}, a folder of these) are read, never run: the first fault
    of each, in the order syntax, unsupported, no SCM, node count, confounding, cycle, disconnected, topology, raises.
    """
    from calibrant.bench.core.items import refuse_empty
    from calibrant.bench.core.registry import one_benchmark, sole_provider
    from calibrant.bench.pools.capabilities import CHECK, PROGRAMS

    programs = sole_provider(PROGRAMS)
    if recognized := [path for path in pools if programs.recognizes(path)]:
        if len(recognized) < len(pools):
            raise CalibrantError(f"{recognized[0].name} holds programs, others are pools; check them one after another")
        report = programs.check(pools, given.convert(programs.benchmark, pools[0].name))
        typer.echo(json_text(report.to_dict()) if as_json else "\n".join(report.lines()))
        return 0 if report.passed else 1
    bench = one_benchmark(pools)
    reports = list(bench.require(CHECK).check(pools, given.convert(bench.name, pools[0].name)))
    for path, checked in zip(pools, reports, strict=True):
        refuse_empty(checked.num_instances, path)
    if as_json:
        typer.echo(json_text([report.to_dict() for report in reports]))
    else:
        typer.echo("\n\n".join(_text(report, list_unread="fields" in given.values) for report in reports))
    return 0 if all(report.passed for report in reports) else 1


def _text(report: CheckReport, *, list_unread: bool) -> str:
    lines = [f"{report.pool}   {plural(report.num_instances, 'instances')}   sha256 {report.digest}"]
    lines.append(f"  failed  {report.official}" if report.official_failure else f"  ok      {_identity(report)}")
    for name, applied in report.applied.items():
        failed = [(instance, reason) for check, instance, reason in report.failures if check == name]
        lines.append(f"  {'failed' if failed else 'ok':6}  {name}: {applied - len(failed)} of {applied}")
        lines += [f"            {instance}: {reason}" for instance, reason in failed]
    for kind in dict.fromkeys(note.kind for note in report.notes or ()):
        notes = [note for note in report.notes or () if note.kind == kind]
        lines.append(f"  note    {kind}: {len({note.instance for note in notes})} of {report.num_instances}")
        lines.append(f"            {notes[0].instance}: {notes[0].claim}")
    if report.unread:
        hint = "" if list_unread else "; --fields lists them"
        lines.append(f"          {len(report.unread)} fields of the file are not read{hint}")
    if list_unread:
        lines += [f"            {path} in {plural(count, 'records')}" for path, count in report.unread.items()]
    return "\n".join(map(in_one_line, lines))


def _identity(report: CheckReport) -> str:
    """Return the sentence that every record was read, with the identity of a published file."""
    from calibrant.bench.pools.soundness import NOT_OFFICIAL

    no_fault = "by its digest none of the published files, which is no fault"
    identity = no_fault if report.official == NOT_OFFICIAL else report.official
    return "; ".join(filter(None, ("every record was read", identity)))


@pool_app.command(cls=GroupedOptions, epilog=epilog("pool unpack"))
@guard_paths
def unpack(
    source: PoolPath,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write, empty or new."), Writes(("*",))],
) -> None:
    """Write a pool of questions about programs as a folder of files.

    Of each program a folder with its modules, bundles, instantiations and query files; state.json with all of them,
    selected.json with the ids of complete ones. `calibrant pool convert DIR` gives the pool back.
    """
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.pools.capabilities import PROGRAMS

    for line in benchmark_of(source).require(PROGRAMS).unpack(source, folder):
        typer.echo(line, err=True)
    print_next([NextCommand(("pool", "convert", folder, unused_path("pool.jsonl")), "back to a pool")])


@pool_app.command(cls=GroupedOptions, epilog=epilog("pool stats"))
@guard_paths
def stats(pools: PoolPaths, as_json: AsJson = False) -> None:
    """Describe pools by stratum or suite: sizes, what items show and hide, the labels that they have."""
    from itertools import groupby

    from calibrant.bench.answers.rates import pool_labels
    from calibrant.bench.core.items import refuse_empty
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.pages.terminal_tables import blocks_text
    from calibrant.bench.pools.soundness import pool_stats
    from calibrant.bench.terminal import width_of
    from calibrant.dsl.records import pool_digest

    loaded = {path: (benchmark_of(path), benchmark_of(path).items.read_pool(path)) for path in pools}
    for path, (_, pool) in loaded.items():
        refuse_empty(len(pool), path)
    digests = {path: pool_digest(path) for path in loaded}
    labels = pool_labels({digests[path]: pool.name for path, (_, pool) in loaded.items()})
    stats_rows = [
        (path, row)
        for path, (bench, pool) in loaded.items()
        for row in pool_stats(labels[digests[path]], pool.items, bench)
    ]
    if as_json:
        records = [row.to_dict() | {"file": path.name, "digest": digests[path]} for path, row in stats_rows]
        typer.echo(json_text(records))
        return
    tables = []
    for _, rows in groupby((row.cells() for _, row in stats_rows), key=list):
        tables.append(blocks_text(list(rows), ("n",), width_of(sys.stdout)))
    if tables:
        typer.echo("\n\n".join(tables))


@pool_app.command(cls=GroupedOptions, epilog=epilog("pool distinct"))
@guard_paths
def distinct(
    source: PoolPath,
    target: NewPool,
    others: Annotated[
        list[Path] | None,
        typer.Option(
            "--apart-from",
            metavar="POOL",
            help="Pool whose items are left out too, of training for instance; may be repeated.",
            rich_help_panel=ITEMS,
        ),
        READS,
    ] = None,
    by: Annotated[
        Literal["item", "model"],
        typer.Option(
            help="model: leave out as well what is about a latent model of the other pools.", rich_help_panel=ITEMS
        ),
    ] = "item",
    as_json: AsJson = False,
) -> None:
    """Take the items that ask something new, so that a test does not repeat what was trained on.

    Small strata have few different items, however many are generated. An item repeats another if a system is shown and
    asked the same, whatever it does and whatever the id; of equal ones the first stays. `calibrant pool check` names
    them. New questions about a known program are new items; --by model leaves out these too.
    """
    from calibrant.bench.commands.options import progress_bar
    from calibrant.bench.pools.distinct import Unit, write_distinct

    if by == "model" and not others:
        raise typer.BadParameter("model needs the other pools, --apart-from POOL", param_hint="--by")
    with progress_bar() as progress:
        written = write_distinct(source, target, others or (), Unit(by), progress)
    if as_json:
        typer.echo(json_text(written.to_dict()))
    else:
        for line in written.lines():
            typer.echo(in_one_line(line), err=True)
        print_next(pool_commands(target))


@pool_app.command(cls=GroupedOptions, epilog=epilog("pool split"))
@guard_paths
def split(
    source: PoolPath,
    folder: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Folder to write, empty or new.", rich_help_panel=OUTPUT),
        Writes(("*",)),
    ],
    by: Annotated[
        Literal["model"],
        typer.Option(help="The unit: a latent model up to renaming; no two parts share one.", rich_help_panel=ITEMS),
    ] = "model",
    shares: Annotated[
        str, typer.Option(metavar="S,...", help="Share of the items of each part.", rich_help_panel=ITEMS)
    ] = ".8,.1,.1",
    seed: Annotated[int, typer.Option(help="The same seed gives the same parts.", rich_help_panel=ITEMS)] = 0,
    others: Annotated[
        list[Path] | None,
        typer.Option(
            "--apart-from",
            metavar="POOL",
            help="Pool whose latent models no part may have; may be repeated.",
            rich_help_panel=ITEMS,
        ),
        READS,
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Split a pool so that no part has an item about a latent model of another part.

    The unit is an SCM, a program, a laboratory, a rule or a network, whatever its variables are called: all that is
    asked about one stays together. Two parts are train and test, three train, validation and test. The report, also in
    split.json, counts items and units, models that parts share (none), items on the same model under another disclosure
    (none), and items on the same structure, a graph of an earlier part.
    """
    from calibrant.bench.commands.options import progress_bar
    from calibrant.bench.pools.distinct import parse_shares, write_split

    parsed_shares = parse_shares(shares)
    with progress_bar() as progress:
        written = write_split(source, parsed_shares, folder, seed, others or (), progress)
    if as_json:
        typer.echo(json_text(written.to_dict()))
        return
    for line in written.lines():
        typer.echo(in_one_line(line), err=True)
    print_next(pool_commands(folder / written.parts[0].file))


pool_app.command("subset", cls=GroupedOptions, epilog=epilog("pool subset"))(guard_paths(subset))


@pool_app.command(cls=GroupedOptions, epilog=epilog("pool schema"))
@guard_paths
def schema(benchmark: OfBenchmark = FIRST) -> None:
    """Print the JSON Schema of the native format."""
    from calibrant.bench.core.registry import benchmark as named
    from calibrant.bench.schemas import pools

    typer.echo(json_text(named(benchmark).items.pool_schema or pools(benchmark)))
