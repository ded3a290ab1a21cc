"""Command `calibrant release`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant.bench.commands.guard import READS
from calibrant.bench.commands.options import NewFolder, Workers, execution, progress_bar
from calibrant.bench.help import INPUT
from calibrant.dsl.text import plural

if TYPE_CHECKING:
    from calibrant.bench.suites.manifest import Manifest
    from calibrant.bench.terminal import NextCommand

SUBMISSIONS = Path("submissions")  # folder of them in the command that is named next
MAX_POOLS = 3  # whose certificates a line at the end verifies


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
    """Return how to verify each pool's certificates, and how to submit: a row's answers, by way of example."""
    from calibrant.bench.suites.manifest import GOLD, ROWS
    from calibrant.bench.terminal import NextCommand, unused_path

    pools = [out / GOLD / pool.name for pool in manifest.pools]
    pools = [pool for pool in pools if any((pool / "certificates").glob("*.json"))]
    verified = [("verify", pool / "certificates", pool / f"{pool.name}.jsonl") for pool in pools[:MAX_POOLS]]
    commands = [NextCommand(words, "count again") for words in verified]
    rows = sorted((out / GOLD / ROWS).glob("*/*.jsonl"))
    if rows:
        about = ("--system", "my-system", "--system-version", "1", "--submitter", "me", "--date", manifest.date)
        words = ("submission", out, rows[0], *about, "--out", unused_path(str(submissions / "my-system")))
        commands.append(NextCommand(words, "submit answers"))
    return commands
