"""calibrant verify"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.commands.guard import READS
from bench.commands.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dsl.replayscm.problem import Problem


def verify(
    paths: Annotated[
        list[Path], typer.Argument(metavar="CERT... POOL", help="Certificates, then the pool file."), READS
    ],
    as_json: AsJson = False,
) -> int:
    """Check certificates against a pool by plain counting, sharing no code with the engines; 1 if one is refused."""
    from bench.benchmarks.registry import DEFAULT, benchmark_of
    from dsl.replayscm.pools.files import read_pool
    from dsl.stored_items import items_by_id

    if len(paths) < 2:
        raise typer.BadParameter("give at least one certificate, and the pool as the last argument")
    *certificates, pool = paths
    of = benchmark_of(pool)
    if of.name != DEFAULT:
        from bench.claims.findings import checked

        items = items_by_id(of.read_pool(pool).items)
        verdicts = [_claim(path, lambda made: checked(of, made, items)) for path in certificates]
        return _print(verdicts, as_json=as_json)
    problems = items_by_id(read_pool(pool, keep_results=False).problems)
    verdicts = [_verdict(path, problems) for path in certificates]
    return _print(verdicts, as_json=as_json)


def _print(verdicts: Sequence[Mapping[str, object]], *, as_json: bool) -> int:
    from dsl.errors import in_one_line

    if as_json:
        typer.echo(json.dumps(verdicts, indent=1))
    else:
        for found in verdicts:
            verdict = "ok     " if found["verified"] else "refused"
            typer.echo(in_one_line(f"{verdict}  {found['certificate']}: {found['reason']}"))
    return 0 if all(found["verified"] for found in verdicts) else 1


def _claim(path: Path, check: Callable[[object], tuple[bool, str]]) -> dict[str, object]:
    """A certificate of audits.claims."""
    from audits.replayscm.certificates.verification import Refused

    try:
        verified, line = check(_certificate(path))
    except Refused as refusal:
        verified, line = False, str(refusal)
    return {"certificate": str(path), "verified": verified, "reason": line}


def _verdict(path: Path, problems: Mapping[str, Problem]) -> dict[str, object]:
    from audits.replayscm.certificates.verification import Refused
    from audits.replayscm.certificates.verification import verify as verify_certificate

    try:
        made = _certificate(path)
        instance = made.get("instance")
        if not isinstance(instance, str) or instance not in problems:
            raise Refused("it is about no instance of this pool")
        line, verified = verify_certificate(made, problems[instance]), True
    except Refused as refusal:
        line, verified = str(refusal), False
    return {"certificate": str(path), "verified": verified, "reason": line}


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    from audits.replayscm.certificates.verification import Refused
    from dsl.errors import shown

    made = dict(pairs)
    if len(made) < len(pairs):
        twice = next(key for place, (key, _) in enumerate(pairs) if key in dict(pairs[:place]))
        raise Refused(f"the field {shown(twice)} stands twice in one object")
    return made


def _certificate(path: Path) -> Mapping[str, object]:
    from audits.replayscm.certificates.verification import Refused
    from dsl.parse_limits import TooLargeError, load_json, read_bounded

    try:
        made = load_json(read_bounded(path), object_pairs_hook=_unique)  # a file that cannot be read is no forgery
    except TooLargeError as error:
        raise Refused(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise Refused(f"not JSON: {' '.join(str(error).split())}") from None
    if not isinstance(made, dict):
        raise Refused("not a JSON object")
    return made
