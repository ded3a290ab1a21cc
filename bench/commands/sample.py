"""calibrant sample"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from bench.commands.guard import WRITES


def sample(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Native JSONL file to write."), WRITES],
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")],
    strata: Annotated[
        str, typer.Option(metavar="NAME,...", help="Size strata, comma-separated; all: the eight named ones.")
    ] = "all",
    per_stratum: Annotated[int, typer.Option(min=1, help="Instances per stratum.")] = 10,
    setting: Annotated[
        Literal["ordered", "block", "hidden-order", "hidden-roots"], typer.Option(help="What is disclosed.")
    ] = "hidden-order",
) -> None:
    """Sample a pool quickly, without the later stages of `calibrant generate`.

    Latent SCMs, training worlds that rule out shortcut formulas, held-out worlds; no worlds against local alternatives,
    no balance of held-out worlds, no audits. One seed gives the same latent SCMs and worlds in every setting.
    """
    from dsl.replayscm.pools.files import write_pool
    from dsl.replayscm.sampling.problems import sample_pool
    from dsl.replayscm.sampling.strata import NAMED_STRATA, stratum

    try:
        chosen = NAMED_STRATA if strata == "all" else tuple(stratum(name.strip()) for name in strata.split(","))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--strata") from None
    pool = sample_pool(chosen, per_stratum, seed, setting)
    write_pool(pool, out)
    typer.echo(f"{len(pool)} instances written to {out}", err=True)
