"""Certificates of a pool: one file per instance, named by its id."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from audits.replayscm.certificates.certificate import certificate, to_json
from dsl.replayscm.problem import Problem
from dsl.whole_file import write_whole
from solvers.budget import BudgetSpent
from solvers.replayscm.version_space import ModelClass

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}")


def certificate_name(instance: str) -> str:
    """The id where it can be a file's name everywhere, else a digest of it."""
    name = instance if _PLAIN_NAME.fullmatch(instance) else f"id_{hashlib.sha256(instance.encode()).hexdigest()[:32]}"
    return f"{name}.json"


def write_certificates(
    problems: Iterable[Problem], folder: Path, class_of: Callable[[Problem], ModelClass]
) -> Iterator[str]:
    """Write the certificate of every count; yields a line for each instance that has none, and a last one."""
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    for problem in problems:
        try:
            text = to_json(certificate(problem, class_of(problem)))
        except (ValueError, BudgetSpent) as error:
            yield f"no certificate of {problem.id}: {error}"
            continue
        write_whole(folder / certificate_name(problem.id), f"{text}\n")
        number += 1
    yield f"{number} certificates written to {folder}"
