"""The commands `harden`, `alternatives` and `separate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from calibrant.bench.commands import options as commands_options
from calibrant.bench.commands.guard import READS, RUN_FOLDER, WRITES, WRITES_POOL, Writes, require_apart
from calibrant.bench.core.options import GivenOptions
from calibrant.bench.help import INPUT, METHOD, OUTPUT
from calibrant.bench.terminal import json_text, typed_json
from calibrant.dsl.atomic_write import write_pieces

# --- Command: calibrant harden ----------------------------------------------------------------------------------------
Report: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--report", metavar="FILE", help="JSON lines: what was added to each item, and why.", rich_help_panel=OUTPUT
    ),
    WRITES,
]
Certificates: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--certificates",
        metavar="DIR",
        help="Write certificates of the SCMs that remain, or that no fewer values decide.",
        rich_help_panel=OUTPUT,
    ),
    Writes(("*.json",)),
]


@commands_options.with_options("harden")
def harden(
    pool: commands_options.PoolPath,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="POOL2", help="Native JSONL file to write.", rich_help_panel=OUTPUT),
        WRITES_POOL,
    ],
    given: GivenOptions,
    report: Report = None,
    certificates: Certificates = None,
    only: commands_options.Only = None,
    limit: commands_options.Limit = None,
    workers: commands_options.Workers = None,
    cluster: commands_options.Cluster = None,
) -> int:
    """Add evidence to every item until one answer is left; what is held out never changes.

    Mode cex (counterexamples) adds worlds to a ReplaySCM item in three steps. The first worlds show variables under
    values of their parents that no world has shown. The next ones separate gold (the true SCM) from the alternatives.
    The last ones rule out consistent SCMs until --goal is reached, or it is proved that no admissible worlds reach it.

    Exit 1 unless every instance reaches its goal. One that does not (impossible, out of budget) keeps the worlds that
    left fewest SCMs; one to which nothing can be added (no gold, gold outside the class) is written unchanged. What is
    done is kept in POOL2.unfinished until POOL2 is written; the same command goes on there.

    A CauSim question reveals the smallest number of further values that leaves one answer, with a certificate that no
    fewer do.
    """
    from calibrant.bench.core.benchmark import PublicPool
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.pools.capabilities import HARDEN, HardenRequest
    from calibrant.bench.runs.runner import Selection
    from calibrant.bench.terminal import NextCommand, print_next, unused_path

    bench = benchmark_of(pool)
    # converted first: the error for an option of another benchmark is more precise than for an unsupported command
    options = given.convert(bench.name, pool.name)
    hardening = bench.require(HARDEN)
    hardening.check(given.values)
    # --only takes the pool's ids and public ones, which HTML pages show
    selected_ids = frozenset(PublicPool(bench, pool).check(only) if only else ())
    selection = Selection(selected_ids, limit)
    by = commands_options.execution(workers or (None if cluster else hardening.workers), cluster)
    with commands_options.progress_bar() as progress:
        request = HardenRequest(pool, out, report, certificates, selection, by, progress)
        hardened = hardening.harden(request, options)
    for note in hardened.notes:
        typer.echo(note, err=True)
    for line in hardened.lines:
        typer.echo(line)
    written = sorted(certificates.glob("*.json"))[:1] if certificates is not None else []
    still_open = [NextCommand(("list", out, "--why"), "what is still open")] if hardened.num_unreached else []
    check = [NextCommand(("verify", *written, hardened.certified), "check a certificate")] if written else []
    print_next(
        [
            *still_open,
            *check,
            NextCommand(("prompts", out, "--out", unused_path("prompts.jsonl")), "what a model is asked"),
            NextCommand(("run", "exact", out, "--out", unused_path("runs")), "the exact solver"),
        ]
    )
    return 1 if hardened.num_unreached else 0


# --- Command: calibrant alternatives ----------------------------------------------------------------------------------
NUM_SEEDS = 50  # seeds of a sweep


def alternatives(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders that `calibrant run` wrote."), READS],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="JSON lines for `calibrant harden`.", rich_help_panel=OUTPUT),
        WRITES,
    ],
    sweep: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="POOL",
            help="First run bnlearn+dsl on this pool with many seeds, into the first DIR.",
            rich_help_panel=METHOD,
        ),
        READS,
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, help=f"How many seeds a sweep runs: 0, 1, and so on. [default: {NUM_SEEDS}]", rich_help_panel=METHOD
        ),
    ] = None,
    cluster: commands_options.Cluster = None,
    as_json: commands_options.AsJson = False,
) -> None:
    """Collect the models of runs that explain all that was shown and are not the true one, each once.

    The file is for `calibrant harden --alternatives`. A table states how often each system finds one; runs that differ
    only in their seed count as one system. --json adds the counts of every instance.
    """
    if not sweep:
        commands_options.refuse_options(
            {"--cluster": cluster, "--seeds": seeds}, "there is nothing to run without --sweep"
        )

    from calibrant.bench.core.registry import one_benchmark, sole_provider
    from calibrant.bench.pages.terminal_tables import aligned
    from calibrant.bench.pools.capabilities import ALTERNATIVES
    from calibrant.bench.terminal import NextCommand, print_next, print_written, unused_path
    from calibrant.dsl.text import plural

    if sweep:
        one_benchmark(sweep).require(ALTERNATIVES)
        require_apart(sweep, RUN_FOLDER.targets("DIR", folders[0]))
        _sweep(sweep, folders[0], seeds or NUM_SEEDS, cluster)
    collected = sole_provider(ALTERNATIVES).collect(folders)
    models = collected.alternatives()
    write_pieces(out, (f"{typed_json(model.to_dict())}\n" for model in models))
    print_written(out, plural(len(models), "alternatives"))
    rows = collected.rows()
    if as_json:
        typer.echo(json_text({"rows": collected.json_rows(), "instances": collected.counts()}))
    elif rows:
        typer.echo(aligned(list(rows[0]), [list(row.values()) for row in rows]))
    if not as_json:
        pool = (sweep or [Path("POOL")])[0]
        harden_command = ("harden", pool, "--alternatives", out, "--out", unused_path("harder.jsonl"))
        rule_out = NextCommand(harden_command, "add worlds that rule these models out")
        print_next([rule_out if sweep else NextCommand(("table", *folders), "rates of these runs")])


def _sweep(pools: list[Path], folder: Path, seeds: int, cluster: str | None) -> None:
    """Run the method of the sweep once for each seed, on the cluster or else in this process."""
    from calibrant.bench.core.registry import sole_provider
    from calibrant.bench.pools.capabilities import ALTERNATIVES
    from calibrant.bench.runs.runner import run

    # without a cluster no worker processes: an instance takes milliseconds, starting a process a second
    by = commands_options.execution(None if cluster else 1, cluster)
    for seed in range(seeds):
        with commands_options.progress_bar(f"seed {seed} of {seeds}: ") as progress:
            protocol = sole_provider(ALTERNATIVES).sweep_protocol(seed)
            run(protocol, pools, folder, execution=by, progress=progress)


# --- Command: calibrant separate --------------------------------------------------------------------------------------


@commands_options.with_options("separate")
def separate(
    pool: commands_options.PoolPath,
    instance: Annotated[str, typer.Argument(metavar="ID", help="Which instance.")],
    given: GivenOptions,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="FILE",
            help="JSON answer to compare with the item's reference SCM, or if it has none with gold (the true SCM).",
            rich_help_panel=INPUT,
        ),
        READS,
    ] = None,
    as_json: commands_options.AsJson = False,
) -> None:
    """Show which experiments tell two models of an item apart.

    It lists every intervention on one variable under which two models differ, marks the best, and gives a witness: an
    assignment of the roots with the values that differ. Rates are over all assignments of the roots. Without --against,
    pairs of the smallest SCMs that fit are compared. The last line names the intervention that separates most pairs;
    --targets 2 and 3 also try several variables at once.
    """
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.pools.capabilities import SEPARATE

    bench = benchmark_of(pool)
    options = given.convert(bench.name, pool.name)  # first, as in `harden`
    separate_models = bench.require(SEPARATE)
    if against and "members" in given.values:
        raise typer.BadParameter("--against and --members exclude each other")
    separation = separate_models(pool, instance, against, options)
    if as_json:
        typer.echo(json_text(separation.to_dict()))
    else:
        typer.echo(separation.text())
