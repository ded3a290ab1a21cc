"""Generation of ReplaySCM pools: from nothing with every filter and its audit, or sampled quickly."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from calibrant.audits.replayscm.generation.plans import MAX_ADDED_WORLDS, PLANS
from calibrant.bench.core.options import OptionError
from calibrant.bench.pools.capabilities import GenerateRequest
from calibrant.bench.pools.item_options import read_item_options
from calibrant.bench.replayscm.extended.generate import generate_extended
from calibrant.bench.replayscm.options import GenerateOptions as GenerateArguments
from calibrant.bench.replayscm.pools.generated import GenerateOptions, generated_pool
from calibrant.dsl.atomic_write import write_pieces
from calibrant.dsl.replayscm.generation.problems import sample_pool
from calibrant.dsl.replayscm.generation.strata import NAMED_STRATA, Stratum, stratum
from calibrant.dsl.replayscm.pools.files import write_pool
from calibrant.dsl.text import plural


class ScmGenerator:
    """Implements Generatable (bench.pools.capabilities)."""

    workers = None  # an instance takes seconds

    def generate(self, request: GenerateRequest, options: GenerateArguments) -> Sequence[str]:
        """Write the pool and the audits once all instances are done; before that they are in OUT.unfinished."""
        read_item_options("generate", "replayscm", request.item_options)  # there are none: it refuses any
        out = request.out
        audits = options.audits or out.with_name(f"{out.name.removesuffix(out.suffix)}.audits.jsonl")
        if options.form != "published":
            if options.max_added is not None:
                raise OptionError("worlds against alternatives are added to published items alone", "--max-added")
            return list(generate_extended(request, options.form, options.setting, audits))
        strata = tuple(map(_stratum, PLANS)) if request.suites == "all" else _strata(request.suites)
        limit = MAX_ADDED_WORLDS if options.max_added is None else options.max_added
        settings = GenerateOptions(strata, request.num_items, request.seed, options.setting, limit)
        with generated_pool(out, settings, execution=request.execution, progress=request.progress) as generated:
            write_pieces(audits, (f"{json.dumps(line)}\n" for line in generated.audits))
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
