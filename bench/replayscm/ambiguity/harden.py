"""Hardening of ReplaySCM pools: gold-simulated training worlds, until one SCM of the class is left."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from calibrant.bench.core.options import OptionError
from calibrant.bench.pools.capabilities import Hardened, HardenRequest
from calibrant.bench.replayscm.audit.certificates import write_certificates
from calibrant.bench.replayscm.options import HardenOptions as HardenArguments
from calibrant.bench.replayscm.pools.hardened import HardenedPool, HardenOptions, hardened_pool
from calibrant.bench.replayscm.pools.known_alternatives import read_alternatives
from calibrant.dsl.atomic_write import write_pieces
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.replayscm.generation.strata import STRATA
from calibrant.dsl.replayscm.pools.files import write_pool
from calibrant.dsl.text import plural

PUBLISHED = "the published CEx has 8-11 training worlds before, 14.27 on average after, 11-23 (paper, Tables B.1, F.2)"


class ScmHardening:
    """Implements Hardenable (bench.pools.capabilities)."""

    workers = None  # an instance takes seconds

    def check(self, given: Mapping[str, Any]) -> None:
        """Refuse options that only cex reads, where another mode is requested."""
        if given.get("mode", "cex") != "cex":
            for name in ("alternatives", "goal"):
                if name in given:
                    raise OptionError("it needs --mode cex", f"--{name}")

    def harden(self, request: HardenRequest, options: HardenArguments) -> Hardened:
        """Write the hardened pool once all instances are done; what is done before stays in OUT.unfinished."""
        supplied = read_alternatives(options.alternatives) if options.alternatives else []
        hardening = HardenOptions(options.mode, options.seed, options.max_parents, options.goal)
        making = hardened_pool(
            request.pool,
            request.out,
            hardening,
            alternatives=supplied,
            selection=request.selection,
            execution=request.execution,
            progress=request.progress,
        )
        with making as pool:
            notes = [*_write(pool, hardening, request.out, request.report, request.certificates), *_failures(pool)]
            lines = list(_summary(pool))
            if supplied:
                notes += _refused_alternatives(pool)
                lines.append(_alternatives_summary(pool, len(supplied)))
            return Hardened(lines, notes, pool.num_short)


def _write(
    pool: HardenedPool, options: HardenOptions, out: Path, report: Path | None, certificates: Path | None
) -> Iterator[str]:
    if report:
        write_pieces(report, (f"{json.dumps(line)}\n" for line in pool.reports))
    if certificates:
        hardened = (
            problem for problem, line in zip(pool.pool.problems, pool.reports, strict=True) if "members" in line
        )
        yield from write_certificates(hardened, certificates, options.class_of)
    write_pool(pool.pool, out)
    yield f"{plural(len(pool.pool), 'instances')} written to {out}"


def _failures(pool: HardenedPool) -> Iterator[str]:
    for line in pool.reports:
        if line["outcome"] not in ("reached", "done"):
            yield in_one_line(f"{line['instance']}: {line['outcome'].replace('_', ' ')}: {line['why']}")


def _summary(pool: HardenedPool) -> Iterator[str]:
    """Yield how many instances had each outcome, and how many worlds were added."""
    outcomes = Counter(line["outcome"] for line in pool.reports)
    yield ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in sorted(outcomes.items()))
    worlds = [line["worlds"] for line in pool.reports if "worlds" in line]
    if worlds:
        unique = sum(line.get("members", ["", ""])[1] == "1" for line in pool.reports)
        before, after = [start for start, _ in worlds], [end for _, end in worlds]
        added = [end - start for start, end in worlds]
        yield (
            f"training worlds, median: {median(before):g} before, {median(added):g} added (up to {max(added)}), "
            f"{median(after):g} after; mean {fmean(after):.2f} (range {min(after)}-{max(after)}); "
            f"{plural(unique, 'instances')} {'has' if unique == 1 else 'have'} one member"
        )
        published = {stratum.name for stratum in STRATA}
        if any(problem.stratum in published for problem in pool.pool.problems):
            yield PUBLISHED


def _alternatives(pool: HardenedPool) -> Sequence[tuple[str, Mapping[str, Any]]]:
    return [(line["instance"], entry) for line in pool.reports for entry in line.get("alternatives", ())]


def _refused_alternatives(pool: HardenedPool) -> Iterator[str]:
    for instance, entry in _alternatives(pool):
        if entry["why"]:
            outcome = entry["outcome"].replace("_", " ")
            yield in_one_line(f"{instance}: line {entry['line']}: {outcome}: {entry['why']}")


def _alternatives_summary(pool: HardenedPool, num_supplied: int) -> str:
    entries = _alternatives(pool)
    outcomes = Counter(entry["outcome"] for _, entry in entries)
    parts = [f"{outcomes[name]} {name.replace('_', ' ')}" for name in ("separated", "not_separated", "refused")]
    num_others = num_supplied - len(entries)
    more = f"; {num_others} are about no instance that was hardened" if num_others else ""
    return f"alternatives: {', '.join(parts)}{more}"


HARDEN = ScmHardening()
