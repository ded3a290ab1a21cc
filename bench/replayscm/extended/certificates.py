"""Certificates of extended items: written for a pool, and checked against its items."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

from calibrant.audits.claims import Refused
from calibrant.audits.replayscm.extended.attribution import item_evidence
from calibrant.audits.replayscm.extended.certificates import (
    FORMAT,
    clairvoyant_certificate,
    class_record,
    mass_certificate,
)
from calibrant.audits.replayscm.extended.verification import MAX_ENDOGENOUS, CertificateError, verify_certificate
from calibrant.bench.replayscm.extended.labels import clairvoyant_search
from calibrant.bench.replayscm.extended.scoring import is_episode
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import MissingExtraError
from calibrant.dsl.replayscm.episode import ScmEpisode, candidate_worlds, task_class
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.replayscm.noise.posterior import Posterior

MAX_LINE_CHARS = 200
MAX_CHOICES = 3_000_000  # assignments of parent sets that a check lists: about a minute


def minimum_certificate(problem: Problem) -> dict[str, Any] | None:
    """Return the certificate of the fewest worlds of an item, None of items without that minimum.

    `MissingExtraError` without HiGHS.
    """
    search = clairvoyant_search(problem)
    return None if search is None else {"instance": problem.id, **clairvoyant_certificate(search, search.solve())}


def evidence_certificate(problem: Problem) -> dict[str, Any]:
    """Return the certificate of the mass of an item's evidence, of an episode that of the start.

    `ValueError` or `BudgetSpent` where the mass cannot be recounted.
    """
    scm_class = task_class(problem.task)
    num_endogenous = len(scm_class.endogenous) + len(scm_class.hidden_parents)
    if num_endogenous > MAX_ENDOGENOUS:
        raise ValueError(f"masses are recounted for up to {MAX_ENDOGENOUS} endogenous variables, not {num_endogenous}")
    document = {"instance": problem.id, **mass_certificate(Posterior(scm_class).condition(*_evidence(problem)))}
    choices = num_choices(document)
    if choices > MAX_CHOICES:
        raise ValueError(f"recounting its mass would list {choices:,} choices of parent sets; at most {MAX_CHOICES:,}")
    return document


def num_choices(document: Mapping[str, Any]) -> int:
    """Return how many assignments of parent sets the check of a mass lists."""
    terms = (term for column in document["columns"] for term in column["terms"])
    return sum(prod(len(sets) for sets in term["weights"].values()) for term in terms)


def _evidence(problem: Problem) -> list[Any]:
    return item_evidence(problem, ScmEpisode(problem).steps if is_episode(problem) else ())


def write_item_certificates(problem: Problem, folder: Path, stem: str) -> Iterator[str]:
    """Write an item's certificates; yield a line where one is missing."""
    for claim, build in (("fewest worlds", minimum_certificate), ("mass", evidence_certificate)):
        try:
            document = build(problem)
        except (ValueError, BudgetSpent, MissingExtraError) as error:
            yield f"no certificate of the {claim} of {problem.id}: {error}"
            continue
        if document is not None:
            text = json.dumps(document, indent=1, sort_keys=True)
            write_atomically(folder / f"{stem}.{document['claim']}.json", f"{text}\n")


def is_extended_certificate(document: Mapping[str, object]) -> bool:
    """Return whether a file is a certificate of these."""
    return document.get("format") == FORMAT


def check_certificate(document: Mapping[str, Any], problem: Problem) -> str:
    """Return what was checked about an item; `Refused` if the certificate is about another one or does not hold."""
    if problem.task.extension is None:
        raise Refused("the instance is a plain one")
    scm_class = task_class(problem.task)
    if document.get("class") != json.loads(json.dumps(class_record(scm_class))):
        raise Refused("its class is not the item's")
    try:
        if document.get("claim") == "mass":
            _require_rows(document, problem)
            if num_choices(document) > MAX_CHOICES:
                raise Refused(f"to recount it would list more than {MAX_CHOICES:,} choices of parent sets")
        elif document.get("claim") == "clairvoyant":
            _require_candidates(document, problem)
        return verify_certificate(document)[:MAX_LINE_CHARS]  # a mass under noise has hundreds of digits
    except (CertificateError, KeyError, TypeError, AttributeError) as error:
        raise Refused(str(error) or "malformed") from None


def _require_rows(document: Mapping[str, Any], problem: Problem) -> None:
    rows = [
        {"row": row, "targets": [v for v in task_class(problem.task).observed if v in world.constants], "clean": False}
        for world in _evidence(problem)
        for row in world.rows
    ]

    def key(row: Mapping[str, Any]) -> tuple[str, tuple[str, ...], bool]:
        return row["row"], tuple(row["targets"]), bool(row["clean"])

    if sorted(map(key, document["rows"])) != sorted(map(key, rows)):
        raise Refused("its rows are not the item's")


def _require_candidates(document: Mapping[str, Any], problem: Problem) -> None:
    gold, extension = problem.sealed.gold, problem.task.extension
    assert extension is not None
    if gold is None or extension.allowance is None:
        raise Refused("the item has no gold, or is no episode")
    candidates = candidate_worlds(task_class(problem.task).observed, extension.allowance.max_targets)
    if document["candidates"] != candidates:
        raise Refused("its candidates are not the item's")
    tables = {
        v: "".join(str(f.table.bits >> row & 1) for row in range(1 << len(f.parents)))
        for v, f in gold.local_functions.items()
    }
    truth = {v: {"parents": list(f.parents), "table": tables[v]} for v, f in gold.local_functions.items()}
    if document["truth"] != truth:
        raise Refused("its truth is not gold")
