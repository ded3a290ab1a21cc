"""Certificates of fits of tables: their claims as data, the files, and the check against the table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from calibrant.audits.claims import Certificate, NotExaminedError, Refused, certify, verify
from calibrant.audits.replayscm.certificates.certificate import FORMAT as COUNT_FORMAT
from calibrant.audits.replayscm.fits.catalogue import NUM_COLUMNS
from calibrant.audits.replayscm.fits.evidence import ReadingRecord, TableEvidence
from calibrant.audits.replayscm.fits.formulas import MAX_SCM_COLUMNS
from calibrant.audits.replayscm.fits.verify import VERIFIERS
from calibrant.bench.pools.capabilities import CertificateCheck
from calibrant.bench.pools.findings_audit import ClaimFile
from calibrant.bench.replayscm.fitting.fronts import ScmFront, TargetFront, plain_first
from calibrant.bench.replayscm.fitting.reading import options_of_record, read_with
from calibrant.bench.replayscm.fitting.table import Table, handle_gaps
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.text import plural
from calibrant.solvers.formulas.fronts import Counting, FrontPoint
from calibrant.solvers.formulas.least_formulas import Tree

MAX_STEM_CHARS = 60
MAX_POINTS = 8  # in a line


class Claim(NamedTuple):
    """A claim about a table. subject: column that it is about, empty for the whole table; data: without the reading."""

    name: str
    subject: str
    data: Mapping[str, Any]


class Unclaimed(NamedTuple):
    """A result without a certificate, and the reason."""

    subject: str
    reason: str


def front_claims(fronts: Iterable[TargetFront | ScmFront], num_columns: int) -> Iterator[Claim | Unclaimed]:
    """Yield the claims of fronts on a table of so many columns."""
    for front in fronts:
        if isinstance(front, TargetFront):
            yield front_claim(front, "sure")
        else:
            yield _scm_front_claim(front, num_columns)


def too_wide(max_parents: int, num_columns: int) -> str:
    if min(max_parents, num_columns) <= NUM_COLUMNS:
        return ""
    return f"formulas of more than {NUM_COLUMNS} columns are not recounted: --max-parents {NUM_COLUMNS}"


def front_claim(front: TargetFront, counting: Counting) -> Claim | Unclaimed:
    reason = too_wide(front.max_parents, len(front.columns))
    if reason:
        return Unclaimed(f"front of {front.target}", reason)
    data = {
        "target": front.target,
        "measure": front.measure,
        "max_parents": min(front.max_parents, NUM_COLUMNS),
        "max_errors": front.max_errors,
        "counting": counting,
        "points": [_point(point) for point in front.front.points],
    }
    return Claim("front", front.target if counting == "sure" else f"{front.target}-{counting}", data)


def _point(point: FrontPoint) -> dict[str, Any]:
    return {
        "errors": point.errors,
        "size": list(point.size) if isinstance(point.size, tuple) else point.size,
        "formulas": point.num_formulas,
        "functions": len(point.functions),
        "formula": _as_lists(plain_first(point)),
    }


def _as_lists(tree: Tree) -> Any:
    return [_as_lists(part) for part in tree] if isinstance(tree, tuple) else tree


def _scm_front_claim(front: ScmFront, num_columns: int) -> Claim | Unclaimed:
    num_inner = num_columns - len(front.roots)
    if num_inner > MAX_SCM_COLUMNS:
        reason = f"{num_inner} columns are no roots; up to {MAX_SCM_COLUMNS} are recounted: name more (--roots)"
        return Unclaimed("front of SCMs", reason)
    data = {
        "roots": list(front.roots),
        "measure": front.measure,
        "max_parents": front.max_parents,
        "max_errors": front.max_errors,
        "points": [list(point) for point in front.points],
    }
    return Claim("scm-front", "", data)


# --- Files ------------------------------------------------------------------------------------------------------------


def write_claims(table: Table, claims: Iterable[Claim | Unclaimed], folder: Path) -> Iterator[str]:
    """Write a certificate of each claim; yields a line for what has none, and a last one with the command to check."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for claim in claims:
        if isinstance(claim, Unclaimed):
            yield f"no certificate of {claim.subject}: {claim.reason}"
            continue
        path = folder / f"{_stem(claim, [path.stem for path in paths])}.json"
        content = ClaimFile(table.source, certificate_of(table, claim))
        write_atomically(path, msgspec.json.encode(content).decode() + "\n")
        paths.append(path)
    yield f"{plural(len(paths), 'certificates')} written to {folder}"


def claim_files(folder: Path) -> list[Path]:
    """Return the certificates of claims about tables in a folder."""
    names = tuple(f"{name}-" for name in VERIFIERS)
    return sorted(path for path in folder.glob("*.json") if f"{path.stem}-".startswith(names))


def certificate_of(table: Table, claim: Claim) -> Certificate:
    """Return the certificate of a claim about a table."""
    assert table.reading is not None  # a PLA file has no claims
    data = {"reading": msgspec.to_builtins(table.reading), **claim.data}
    evidence = table.evidence
    certificate = certify(claim.name, "", evidence, data)
    return msgspec.structs.replace(certificate, in_words=VERIFIERS[claim.name].in_words(evidence, certificate))  # type: ignore[attr-defined]


def _stem(claim: Claim, before: Sequence[str]) -> str:
    """Return a name that no earlier certificate has; of a column its letters and digits."""
    subject = re.sub(r"[^A-Za-z0-9]+", "-", claim.subject).strip("-")
    base = f"{claim.name}-{subject}"[:MAX_STEM_CHARS] if claim.subject else claim.name
    stem, number = base, 2
    while stem.lower() in [earlier.lower() for earlier in before]:
        stem, number = f"{base}-{number}", number + 1
    return stem


def check_against(table: Path) -> CertificateCheck:
    """Return the check of one certificate against a table, which is read as the certificate states."""
    read: dict[bytes, TableEvidence] = {}

    def check(content: Mapping[str, object]) -> tuple[bool, str]:
        if content.get("format") == COUNT_FORMAT:
            raise NotExaminedError("it is a count of SCMs, about the pool that --out wrote: give that pool")
        if content.keys() != {"instance", "certificate"}:
            return False, "not an object with the keys instance and certificate"
        try:
            certificate = msgspec.convert(content["certificate"], Certificate, strict=True)
            record = msgspec.convert(certificate.data.get("reading"), ReadingRecord, strict=True)
        except (msgspec.ValidationError, ValueError) as error:
            return False, str(error)
        key = msgspec.json.encode(record)
        if key not in read:
            try:
                rows = handle_gaps(read_with(table, options_of_record(record), record.purpose), record.gaps)
            except CalibrantError as error:
                raise Refused(f"the table cannot be read as it states: {error}") from None
            if rows.reading is None:
                raise Refused("a PLA file has no certificates")
            read[key] = rows.evidence
        verdict = verify(certificate, read[key], VERIFIERS)
        return verdict.holds, verdict.reason or f"{certificate.claim}: {figures(certificate)}; {verdict.in_words}"

    return check


def figures(certificate: Certificate) -> str:
    """Return the figures of a claim that holds."""
    data = certificate.data
    if "points" in data:
        points = [(p["errors"], p["size"]) if isinstance(p, dict) else (p[0], p[1]) for p in data["points"]]
        return ", ".join(f"{plural(e, 'errors')} at size {_size_text(s)}" for e, s in points[:MAX_POINTS]) + (
            f" and {len(points) - MAX_POINTS} more" if len(points) > MAX_POINTS else ""
        )
    if "joint" in data:
        joint = " to ".join(f"{number:,}" for number in sorted(set(data["joint"])))
        return f"{data['must']:,} must fit, {joint} fit under one completion, {data['local']:,} each by itself"
    if "may" in data:
        return f"{data['may']:,} may fit, {data['must']:,} must"
    if "members" in data:
        return plural(data["members"], "networks")
    number = data.get("optimal_networks")
    return f"{data['best_score']:.6f}" + ("" if number is None else f", {plural(number, 'networks')}")


def _size_text(size: int | Sequence[int]) -> str:
    return str(size) if isinstance(size, int) else "+".join(map(str, size))
