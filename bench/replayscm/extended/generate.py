"""Generation of extended items: drawn, labelled, with the findings about each; resumable like plain pools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from calibrant.audits.replayscm.extended.generate import SETTINGS, sample_extended
from calibrant.audits.replayscm.extended.strata import ExtendedStratum, extended_strata
from calibrant.bench.core.options import OptionError
from calibrant.bench.pools.capabilities import GenerateRequest
from calibrant.bench.replayscm.extended.audit import finding_records
from calibrant.bench.replayscm.extended.labels import label_problem
from calibrant.bench.replayscm.pools.unfinished import Made, unfinished_pool
from calibrant.dsl.atomic_write import write_pieces
from calibrant.dsl.errors import short_repr
from calibrant.dsl.replayscm.item import Pool
from calibrant.dsl.replayscm.pools.files import write_pool
from calibrant.dsl.text import known_names, plural

FORMS = ("episode", "passive")


@dataclass(frozen=True)
class ExtendedJob:
    """One item to make; it can be pickled."""

    stratum: str
    seed: int
    setting: str
    is_episode: bool


def generate_extended(request: GenerateRequest, form: str, setting: str, audits: Path) -> Iterator[str]:
    """Write a pool of episodes or of passive items, and the findings about each; yield a line on each file."""
    if setting not in SETTINGS:
        raise OptionError(f"of extended items it is one of {', '.join(SETTINGS)}", "--setting")
    strata = _strata(request.suites)
    metadata = {
        "form": form,
        "setting": setting,
        "seed": request.seed,
        "strata": [stratum.name for stratum in strata],
        "per_stratum": request.num_items,
    }
    jobs = {
        f"{stratum.name}, seed {seed}": ExtendedJob(stratum.name, seed, setting, form == "episode")
        for stratum in strata
        for seed in range(request.seed, request.seed + request.num_items)
    }
    name = f"extended_{form}_{setting}"
    with unfinished_pool(request.out, {"generate": metadata}) as work:
        results = work.make(name, jobs, make_item, execution=request.execution, progress=request.progress)
        write_pieces(audits, (f"{json.dumps(report)}\n" for report in results.reports))
        write_pool(Pool(name, results.problems, metadata), request.out)
        yield f"audits written to {audits}"
        yield f"{plural(len(results.problems), 'instances')} written to {request.out}"


def make_item(job: ExtendedJob) -> Made:
    """Return one labelled item and what is reported of it."""
    stratum = next(stratum for stratum in extended_strata() if stratum.name == job.stratum)
    problem = label_problem(sample_extended(stratum, job.seed, setting=job.setting, is_episode=job.is_episode))
    findings: list[dict[str, Any]] = [msgspec.to_builtins(record) for record in finding_records(problem)]
    return Made(problem, {"id": problem.id, "findings": findings})


def _strata(text: str) -> Sequence[ExtendedStratum]:
    by_name = {stratum.name: stratum for stratum in extended_strata()}
    if text == "all":
        return tuple(by_name.values())
    chosen = []
    for part in text.split(","):
        name = part.strip()
        if name not in by_name:
            names_text = known_names(name, by_name)
            raise OptionError(f"unknown stratum {short_repr(name)} of extended items; {names_text}", "--strata")
        chosen.append(by_name[name])
    return tuple(chosen)
