"""calibrant audit"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from bench.commands.guard import READS, WRITES, Writes
from bench.commands.options import AsJson, PoolPath, Workers
from bench.commands.progress import progress_bar, usable_cores
from dsl.errors import in_one_line

if TYPE_CHECKING:
    from audits.replayscm.instance import AuditOptions
    from bench.audit.calibration import Calibration
    from bench.audit.run import AuditedPool
    from solvers.replayscm.version_space import ModelClass

CertifiedSize: TypeAlias = Annotated[
    int | None, typer.Option("--max-size", min=1, max=12, help="Cap on formula size of the certificates' class.")
]
Details: TypeAlias = Annotated[
    bool, typer.Option("--details", help="Print everything that was found in each instance.")
]


def audit(
    pool: PoolPath,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder of the records; an earlier audit resumes."),
        Writes(("audits.jsonl", "audits.lock"), goes_on=True),
    ] = None,
    max_parents: Annotated[int, typer.Option(min=1, max=6, help="The class that verdicts are about.")] = 4,
    nested_roots: Annotated[
        bool, typer.Option("--nested-roots", help="Hidden-roots: only roots with columns nested over shared units.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a report to open offline."), WRITES
    ] = None,
    certificates: Annotated[
        Path | None,
        typer.Option("--certificates", metavar="DIR", help="Write a certificate of every count."),
        Writes(("*.json",)),
    ] = None,
    max_size: CertifiedSize = None,
    fail_on: Annotated[
        str | None,
        typer.Option(metavar="ambiguous[:CLASS]", help="Exit 1 if an instance is; CLASS is kN or parents<=N."),
    ] = None,
    runs: Annotated[
        list[Path] | None,
        typer.Option("--runs", metavar="DIR", help="Show how far answers of a run stay below."),
        READS,
    ] = None,
    workers: Workers = None,
    budget: Annotated[
        float | None, typer.Option(min=0.001, help="Wall seconds per instance; then its process is killed.")
    ] = None,
    details: Details = False,
    as_json: AsJson = False,
) -> int:
    """Count the SCMs that each instance's training worlds leave open, and show what bounded searches missed.

    Counts are exact, for classes of at most k functional parents. Every audited instance is appended to
    DIR/audits.jsonl at once; the same command goes on where an earlier one stopped. Reads what is sealed.
    """
    from audits.replayscm.ambiguity import PARENTS
    from audits.replayscm.instance import AuditOptions
    from bench.audit.calibration import calibration
    from bench.audit.text import gate_class
    from bench.runs.records import folder_records

    for folder in runs or []:
        folder_records(folder)  # a folder without records is said before the work, not after it
    certified = _certified_class(max_parents, max_size, certificates, nested_roots=nested_roots)
    gate = None if fail_on is None else gate_class(fail_on, headline=max_parents)
    classes = sorted({*PARENTS, max_parents, *([gate] if gate else [])})
    options = AuditOptions(max_parents, tuple(classes), nested_roots)
    audited = _audited(pool, out, options, workers or usable_cores(), budget)
    calibrated = calibration(audited.records, runs or [])
    if html:
        from bench.audit.html import report
        from dsl.whole_file import write_whole

        write_whole(html, report(audited, calibrated))
        typer.echo(f"report written to {html}", err=True)
    if certificates:
        _certify(audited, certificates, certified)
    if details and not as_json:
        _print_details(audited)
    _print(audited, calibrated, max_parents, as_json=as_json)
    return _exit_code(audited, gate)


def _audited(pool: Path, out: Path | None, options: AuditOptions, workers: int, budget: float | None) -> AuditedPool:
    """The audits of a pool; their records are kept if there is a folder for them."""
    from bench.audit.run import audit_pool

    with tempfile.TemporaryDirectory(prefix="calibrant-audit-") as scratch, progress_bar() as progress:
        folder = out or Path(scratch)
        made = audit_pool(pool, folder, options, workers=workers, wall_budget=budget, progress=progress)
    if out:
        new = len(made.records) - made.skipped
        typer.echo(f"{new} instances audited, {made.skipped} had a record already", err=True)
    return made


def _certified_class(
    max_parents: int, max_size: int | None, certificates: Path | None, *, nested_roots: bool
) -> ModelClass:
    from audits.replayscm.certificates.plain_sizes import LARGEST_CAP
    from solvers.replayscm.version_space import ModelClass

    if max_size is not None and certificates is None:
        raise typer.BadParameter(
            "it is the cap of the certificates' class: give --certificates too", param_hint="--max-size"
        )
    most = LARGEST_CAP.get(max_parents, 0)
    if max_size is not None and max_size > most:
        reason = f"with {max_parents} parents, `calibrant verify` recounts sizes up to {most}"
        raise typer.BadParameter(reason if most else f"{reason}: none", param_hint="--max-size")
    return ModelClass(max_parents, max_size, nested_roots)


def _certify(audited: AuditedPool, folder: Path, model_class: ModelClass) -> None:
    from bench.audit.certificates import write_certificates

    for line in write_certificates(audited.pool.problems, folder, lambda problem: model_class):
        typer.echo(line, err=True)


def _print_details(audited: AuditedPool) -> None:
    from bench.audit.details import details_text

    typer.echo("\n\n".join(map(details_text, audited.records)) + "\n")


def _print(audited: AuditedPool, calibrated: Calibration, max_parents: int, *, as_json: bool) -> None:
    from bench.audit.text import audits_text, calibration_text

    if as_json:
        made = {"instances": [record.to_dict() for record in audited.records], "calibration": calibrated.to_dict()}
        typer.echo(json.dumps(made, indent=1))
    else:
        typer.echo("\n".join(filter(None, (audits_text(audited.records, max_parents), calibration_text(calibrated)))))


def _exit_code(audited: AuditedPool, gate: int | None) -> int:
    """1 if an instance has no findings or, where that is asked for, more than one member."""
    from bench.audit.text import summary, verdict

    unfinished = [record for record in audited.records if record.findings is None]
    for record in unfinished:
        typer.echo(in_one_line(f"{record.instance}: {record.error}"), err=True)
    if gate is None:
        return 1 if unfinished else 0
    typer.echo(f"--fail-on: {summary(audited.records, gate)}", err=True)
    ambiguous = any(verdict(record, gate) == "ambiguous" for record in audited.records)
    return 1 if unfinished or ambiguous else 0
