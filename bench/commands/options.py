"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from bench.commands.guard import READS
from bench.commands.progress import usable_cores

if TYPE_CHECKING:
    from bench.runs.jobs import Execution

PoolPath: TypeAlias = Annotated[
    Path, typer.Argument(metavar="POOL", help="Pool file: official YAML or native JSONL."), READS
]
PoolPaths: TypeAlias = Annotated[
    list[Path], typer.Argument(metavar="POOL...", help="Pool files: official YAML or native JSONL."), READS
]
RunSources: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(metavar="DIR...", help="Folders of runs; also files written by `calibrant score --out`."),
    READS,
]
OfBenchmark: TypeAlias = Annotated[str, typer.Option("--benchmark", metavar="NAME", help="Of which benchmark.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Only: TypeAlias = Annotated[list[str] | None, typer.Option(metavar="ID", help="Only this instance; may be repeated.")]
Limit: TypeAlias = Annotated[int | None, typer.Option(min=1, help="Only the first so many instances.")]
Workers: TypeAlias = Annotated[int | None, typer.Option(min=1, help="Processes. [default: one per usable core]")]
Cluster: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--cluster", metavar="ADDRESS", help="Let the workers of a dask.distributed scheduler do it, tcp://HOST:PORT."
    ),
]
IdField: TypeAlias = Annotated[
    str | None, typer.Option("--id-field", metavar="NAME", help="Field of a prediction that names the instance.")
]
TextField: TypeAlias = Annotated[
    str | None,
    typer.Option("--text-field", metavar="NAME", help="Field that holds the answer; dots lead into objects."),
]
ModelField: TypeAlias = Annotated[
    str | None, typer.Option("--model-field", metavar="NAME", help="Field that names the model.")
]


def execution(workers: int | None, cluster: str | None, budget: float | None = None) -> Execution:
    """What these options ask for together; a process per usable core without any."""
    from bench.runs.jobs import Execution

    if cluster is None:
        return Execution(workers or usable_cores(), budget)
    if workers is not None:
        raise typer.BadParameter("a cluster has its own workers: give one of --cluster and --workers")
    return Execution(wall_budget=budget, cluster=cluster)
