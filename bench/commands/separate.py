"""calibrant separate"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant.bench.commands.guard import READS
from calibrant.bench.commands.options import AsJson, PoolPath, with_options
from calibrant.bench.core.options import GivenOptions

if TYPE_CHECKING:
    from calibrant.bench.replayscm.options import SeparateOptions


@with_options("separate")
def separate(
    pool: PoolPath,
    instance: Annotated[str, typer.Argument(metavar="ID", help="Which instance.")],
    given: GivenOptions,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="FILE", help="JSON answer to compare with the reference, or else with gold."),
        READS,
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show every single-variable intervention that separates two SCMs of one instance, the best one and a witness.

    Rates are over all assignments of the roots. Without --against, pairs of the smallest SCMs that fit are compared.
    The last line says which intervention closes most; --targets 2 and 3 also try several variables at once.
    """
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.replayscm.audit.separations import (
        against_file,
        closing_text,
        fit_text,
        member_pairs,
        pair_text,
        smallest,
    )
    from calibrant.bench.replayscm.pages import find_instance
    from calibrant.dsl.replayscm.pools.files import read_pool

    benchmark = benchmark_of(pool).name
    given.refuse_foreign([benchmark], pool.name)
    if against and "members" in given.values:
        raise typer.BadParameter("--against and --members exclude each other")
    problem = find_instance(read_pool(pool, keep_results=False), instance)
    options: SeparateOptions = given.convert(benchmark, pool.name)
    targets = options.targets
    if against:
        pairs = [against_file(problem, against, max_targets=targets)]
        notes = [f"{against.name} {fit_text(problem, pairs[0].models[1])}"]
    else:
        found = smallest(problem, options.members, options.max_parents)
        pairs = member_pairs(found.models, max_targets=targets)
        there = (
            f"{len(found.models)} {'smallest' if found.more else 'only'} members, {options.max_parents} parents at most"
        )
        notes = [f"{there}; {len(pairs)} pairs with the same roots"]
    if as_json:
        made = {"instance": problem.id, "notes": notes, "pairs": [pair.to_dict() for pair in pairs]}
        typer.echo(json.dumps(made, indent=1))
    else:
        typer.echo("\n\n".join([*map(pair_text, pairs), *notes, closing_text(pairs, targets)]))
