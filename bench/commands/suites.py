"""Commands of suites: `release`, `submission`, `board` and `variants`."""

from __future__ import annotations

import itertools
import re
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from calibrant.bench.commands.guard import READS, WRITES
from calibrant.bench.commands.options import NewFolder, PoolPath, Workers, execution, progress_bar
from calibrant.bench.help import EXECUTION, INPUT, ITEMS, METHOD, OUTPUT, VIEW
from calibrant.dsl.text import plural

if TYPE_CHECKING:
    from calibrant.bench.suites.manifest import Manifest
    from calibrant.bench.terminal import NextCommand


# --- Command `calibrant release` --------------------------------------------------------------------------------------
SUBMISSIONS = Path("submissions")  # folder of them in the command that is named next
MAX_POOLS = 3  # pools whose certificates a line at the end verifies


def release(
    specification: Annotated[
        Path, typer.Argument(metavar="SUITE.toml", help="Pools, rows and statements of the suite."), READS
    ],
    out: NewFolder,
    lock: Annotated[
        Path | None,
        typer.Option(
            "--lock",
            metavar="FILE",
            help="Lock of an earlier build (gold/suite.lock): inputs must be the same.",
            rich_help_panel=INPUT,
        ),
        READS,
    ] = None,
    workers: Workers = None,
) -> None:
    """Build a suite that certifies itself: pools, certificates, rows, and everything a reviewer asks for.

    Draws or copies each pool, hardens it if the specification asks for it, audits it, verifies every certificate and
    runs the rows. DIR/public may be published; DIR/gold has records, answers, certificates and the keys of the
    commitments. The same specification and lock give the same bytes. A proof without a file that can be checked, and a
    certificate that does not hold, end the build; DIR appears complete or not at all.
    """
    from calibrant.bench.suites.manifest import sha256_of
    from calibrant.bench.suites.release import build_release, read_lock
    from calibrant.bench.terminal import print_next, print_written

    stated = None if lock is None else read_lock(lock)
    name = "" if lock is None else lock.name
    with progress_bar() as progress:
        manifest = build_release(
            specification, out, lock=stated, lock_name=name, execution=execution(workers, None), progress=progress
        )
    total = sum(pool.num_items for pool in manifest.pools)
    print_written(out, f"{manifest.slug}: {plural(total, 'items')} in {plural(len(manifest.pools), 'pools')}")
    typer.echo(f"public  sha256 {sha256_of(out / 'public' / 'SHA256SUMS')}")
    typer.echo(f"gold    sha256 {sha256_of(out / 'gold' / 'SHA256SUMS')}")
    typer.echo(f"root    {manifest.root}")
    print_next(list_next_commands(out, manifest))


def list_next_commands(out: Path, manifest: Manifest, submissions: Path = SUBMISSIONS) -> list[NextCommand]:
    """Return how to verify each pool's certificates, and how to submit: a row's answers, by way of example.

    The example has a version and answers that no submission has, since a board refuses the same ones twice.
    """
    from calibrant.bench.suites.manifest import GOLD, ROWS, sha256_of
    from calibrant.bench.suites.submissions import read_cards, skeleton
    from calibrant.bench.terminal import NextCommand, unused_path

    pools = [out / GOLD / pool.name for pool in manifest.pools]
    pools = [pool for pool in pools if any((pool / "certificates").glob("*.json"))]
    verified = [("verify", pool / "certificates", pool / f"{pool.name}.jsonl") for pool in pools[:MAX_POOLS]]
    label = f"count again, {MAX_POOLS} of {len(pools)} pools" if len(pools) > MAX_POOLS else "count again"
    commands = [NextCommand(words, label) for words in verified]
    cards = read_cards(submissions, manifest)
    submitted = {digest for card in cards for digest in card.files.values()}
    rows = [file for file in sorted((out / GOLD / ROWS).glob("*/*.jsonl")) if sha256_of(file) not in submitted]
    if rows:
        system = "my-system"
        versions = {skeleton(card.version) for card in cards if skeleton(card.system) == skeleton(system)}
        version = next(number for number in map(str, itertools.count(1)) if skeleton(number) not in versions)
        about = ("--system", system, "--system-version", version, "--submitter", "me", "--date", manifest.date)
        words = ("submission", out, rows[0], *about, "--out", unused_path(str(submissions / system)))
        commands.append(NextCommand(words, "submit answers"))
    return commands


# --- Command `calibrant board` ----------------------------------------------------------------------------------------
DEFAULT_SECONDS = 300.0


def board(
    suite: Annotated[Path, typer.Argument(metavar="SUITE", help="Folder that `calibrant release` wrote."), READS],
    submissions: Annotated[
        Path, typer.Argument(metavar="SUBMISSIONS", help="Folder with a folder for each submission."), READS
    ],
    out: NewFolder,
    digest: Annotated[
        str | None,
        typer.Option(
            "--digest", metavar="SHA256", help="Digest of the release, as its authors state it.", rich_help_panel=VIEW
        ),
    ] = None,
    workers: Workers = None,
    budget: Annotated[
        float,
        typer.Option(
            min=0.001, help="Wall seconds for a file of a submission; then it is refused.", rich_help_panel=EXECUTION
        ),
    ] = DEFAULT_SECONDS,
) -> int:
    """Score submissions to a suite again and write their board as static pages.

    A submission is a folder with card.toml and a file POOL.jsonl of predictions or transcripts for each pool. The suite
    is checked first: digests, commitments to gold, certificates. Nothing in a submission is believed; a changed byte, a
    forged transcript, swapped gold or an edited certificate is red with its reason and stays out of the ranking.
    Exit 1 if anything is red.
    """
    from calibrant.bench.suites.board import build_board, unranked_text
    from calibrant.bench.suites.manifest import read_manifest
    from calibrant.bench.terminal import print_next, print_written
    from calibrant.dsl.errors import in_one_line

    with progress_bar() as progress:
        summary = build_board(
            suite,
            submissions,
            out,
            expected=digest or "",
            execution=execution(workers, None, budget),
            progress=progress,
        )
    for pool, reason in summary.damage.items():
        typer.echo(in_one_line(f"red  {pool}: {reason}"))
    for entry in summary.refused:
        typer.echo(in_one_line(f"red  {entry.name}: {entry.reason}"))
    unscored = f", {len(summary.unscored)} not scored" if summary.unscored else ""
    typer.echo(f"{plural(summary.num_ranked, 'systems')} ranked, {len(summary.refused)} refused{unscored}", err=True)
    if not summary.num_ranked:
        typer.echo(f"no system is ranked. {unranked_text(summary.refused, summary.unscored)}", err=True)
    print_written(summary.page)
    if not summary.damage:
        print_next(list_next_commands(suite, read_manifest(suite), submissions))
    return 1 if summary.refused or summary.damage else 0


# --- Command `calibrant submission` -----------------------------------------------------------------------------------


def submission(
    suite: Annotated[
        Path, typer.Argument(metavar="SUITE", help="Folder of the suite; of it, public/suite.json is read."), READS
    ],
    answers: Annotated[
        list[Path],
        typer.Argument(metavar="POOL.jsonl...", help="Predictions or transcripts, called as the pool they are for."),
        READS,
    ],
    system: Annotated[str, typer.Option("--system", metavar="NAME", help="The system.", rich_help_panel=INPUT)],
    version: Annotated[
        str,
        typer.Option("--system-version", metavar="TEXT", help="Its version, a commit perhaps.", rich_help_panel=INPUT),
    ],
    submitter: Annotated[
        str, typer.Option("--submitter", metavar="NAME", help="Who submits it.", rich_help_panel=INPUT)
    ],
    date: Annotated[
        datetime,
        typer.Option("--date", formats=["%Y-%m-%d"], help="Day of the submission.", rich_help_panel=INPUT),
    ],
    out: NewFolder,
    developer: Annotated[
        str, typer.Option("--developer", metavar="NAME", help="Who made the system.", rich_help_panel=INPUT)
    ] = "unknown",
    relationship: Annotated[
        Literal["first_party", "third_party", "collaborative", "other"],
        typer.Option("--relationship", help="Of submitter and developer.", rich_help_panel=INPUT),
    ] = "other",
    cost: Annotated[
        float | None,
        typer.Option("--cost", min=0, help="What the answers cost, with --currency.", rich_help_panel=INPUT),
    ] = None,
    currency: Annotated[
        str | None, typer.Option("--currency", metavar="CODE", help="As EUR or USD.", rich_help_panel=INPUT)
    ] = None,
) -> None:
    """Write a submission to a suite: copies of the files of answers, and a card with their digests.

    A board scores the answers again and believes nothing on the card. Further fields may be added to card.toml by hand.
    """
    from calibrant.bench.suites.manifest import GOLD, read_manifest
    from calibrant.bench.suites.submissions import write_submission
    from calibrant.bench.terminal import NextCommand, print_next, print_written, unused_path

    if (cost is None) is not (currency is None):
        raise typer.BadParameter("--cost and --currency are given together")
    if currency is not None and not re.fullmatch("[A-Z]{3}", currency):
        raise typer.BadParameter(f"--currency {currency!r} is not three capital letters, as USD")
    statements = {
        "system": system,
        "version": version,
        "submitter": submitter,
        "date": date.date(),
        "developer": developer,
        "relationship": relationship,
        "cost": cost,
        "currency": currency,
    }
    manifest = read_manifest(suite)
    write_submission(manifest, answers, statements, out)
    print_written(out, f"submission to {manifest.name} {manifest.release}")
    if (suite / GOLD).is_dir() and out.parent != Path():
        print_next([NextCommand(("board", suite, out.parent, "--out", unused_path("site")), "score it")])


# --- Command `calibrant variants` -------------------------------------------------------------------------------------


def variants(
    pool: PoolPath,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Native JSONL file to write, with all maps.", rich_help_panel=OUTPUT
        ),
        WRITES,
    ] = None,
    kinds: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Kinds of changes, in turns; all, or of rename, rows, worlds, columns, values, equivalent, words.",
            rich_help_panel=METHOD,
        ),
    ] = "all",
    copies: Annotated[int, typer.Option(min=1, max=100, help="Copies of each item.", rich_help_panel=METHOD)] = 5,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.", rich_help_panel=ITEMS)] = 0,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check", metavar="FILE", help="Check a file of variants instead; 1 if one fails.", rich_help_panel=INPUT
        ),
        READS,
    ] = None,
) -> int:
    """Write copies of the items of a pool under other names and orders, each with its map to the original.

    Every copy is checked: the map turns the original into it, as many hypotheses fit, and mapped answers have the same
    verdicts. The file is a pool: `prompts`, `run` and `score` take it; `table --consistency FILE` and `report --pool
    FILE` compare answers. What a kind changes depends on the benchmark: docs/variants.md.
    """
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.terminal import print_written
    from calibrant.bench.variants import VARIANTS, check_variants, read_maps, write_variants
    from calibrant.dsl.errors import in_one_line

    if (out is None) is (check is None):
        raise typer.BadParameter("give one of --out and --check", param_hint="--out")
    if check is not None:
        problems = list(check_variants(pool, check))
        for name, problem in problems:
            typer.echo(in_one_line(f"refused  {name}: {problem}"))
        typer.echo(f"{plural(len(read_maps(check).copies), 'copies')} checked, {len(problems)} refused", err=True)
        return 1 if problems else 0
    assert out is not None
    available = benchmark_of(pool).require(VARIANTS).kinds
    chosen = list(available) if kinds == "all" else [name.strip() for name in kinds.split(",")]
    number, num_without = write_variants(pool, out, chosen, copies, seed)
    print_written(out, plural(number, "copies"))
    if num_without:
        typer.echo(f"without one of these kinds: {plural(num_without, 'items')}", err=True)
    _print_next(pool, out)
    return 0


def _print_next(pool: Path, copies: Path) -> None:
    from calibrant.bench.terminal import NextCommand, print_next, unused_path

    runs = unused_path("runs")
    print_next(
        [
            NextCommand(("prompts", copies, "--out", unused_path("prompts.jsonl")), "what a model is asked"),
            NextCommand(("run", "exact", pool, copies, "--out", runs), "the exact solver on both"),
            NextCommand(("table", runs, "--consistency", copies), "how answers hold up"),
        ]
    )
