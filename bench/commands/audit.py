"""calibrant audit"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.commands.options import AsJson, PoolPath
from bench.commands.progress import progress_bar, usable_cores

if TYPE_CHECKING:
    from bench.audit_run import AuditedPool


def audit(
    pool: PoolPath,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder of the records; an earlier audit resumes.")
    ] = None,
    max_parents: Annotated[int, typer.Option(min=1, max=6, help="The class that verdicts are about.")] = 4,
    nested_roots: Annotated[
        bool, typer.Option("--nested-roots", help="Hidden-roots: only roots with columns nested over shared units.")
    ] = False,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a report to open offline.")] = None,
    certificates: Annotated[
        Path | None, typer.Option("--certificates", metavar="DIR", help="Write a certificate of every count.")
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(metavar="ambiguous[:CLASS]", help="Exit 1 if an instance is; CLASS is kN or parents<=N."),
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes. [default: one per usable core]")] = None,
    budget: Annotated[
        float | None, typer.Option(min=0.001, help="Wall seconds per instance; then its process is killed.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Count the SCMs that each instance's training worlds leave open, and show what bounded searches missed.

    Counts are exact, for classes of at most k functional parents. Every audited instance is appended to
    DIR/audits.jsonl at once; the same command goes on where an earlier one stopped. Reads what is sealed.
    """
    from bench.audit_instance import PROFILE, AuditOptions
    from bench.audit_run import audit_pool
    from bench.audit_text import gate_class

    gate = None if fail_on is None else gate_class(fail_on, headline=max_parents)
    classes = sorted({*PROFILE, max_parents, *([gate] if gate else [])})
    options = AuditOptions(max_parents, tuple(classes), nested_roots)
    with tempfile.TemporaryDirectory(prefix="calibrant-audit-") as scratch, progress_bar() as progress:
        audited = audit_pool(
            pool,
            out or Path(scratch),
            options,
            workers=workers or usable_cores(),
            wall_budget=budget,
            progress=progress,
        )
    if out:
        new = len(audited.records) - audited.skipped
        typer.echo(f"{new} instances audited, {audited.skipped} had a record already", err=True)
    _write(audited, options.max_parents, html, certificates, nested_roots=nested_roots)
    _print(audited, options.max_parents, as_json=as_json)
    return _exit_code(audited, gate)


def _write(
    audited: AuditedPool, max_parents: int, html: Path | None, certificates: Path | None, *, nested_roots: bool
) -> None:
    if html:
        from bench.audit_html import report

        html.write_text(report(audited), encoding="utf-8")
        typer.echo(f"report written to {html}", err=True)
    if certificates:
        from bench.audit_certificates import write_certificates
        from solvers.version_space import ModelClass

        model_class = ModelClass(max_parents, None, nested_roots)
        number = write_certificates(audited.pool.problems, certificates, lambda problem: model_class)
        typer.echo(f"{number} certificates written to {certificates}", err=True)


def _print(audited: AuditedPool, max_parents: int, *, as_json: bool) -> None:
    from bench.audit_text import audits_text

    if as_json:
        typer.echo(json.dumps([record.to_dict() for record in audited.records], indent=1))
    else:
        typer.echo(audits_text(audited.records, max_parents))


def _exit_code(audited: AuditedPool, gate: int | None) -> int:
    """1 if an instance has no findings or, where that is asked for, more than one member."""
    from bench.audit_text import summary, verdict

    unfinished = [record for record in audited.records if record.findings is None]
    for record in unfinished:
        typer.echo(f"{record.instance}: {record.error}", err=True)
    if gate is None:
        return 1 if unfinished else 0
    typer.echo(f"--fail-on: {summary(audited.records, gate)}", err=True)
    ambiguous = any(verdict(record, gate) == "ambiguous" for record in audited.records)
    return 1 if unfinished or ambiguous else 0
