"""Certificates of a pool: one file per instance, named by its id."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from audits.certificate import certificate, to_json
from dsl.problem import Problem
from dsl.whole_file import write_whole
from solvers.version_space import ModelClass

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}")


def certificate_name(instance: str) -> str:
    """The id where it can be a file's name everywhere, else a digest of it."""
    name = instance if _PLAIN_NAME.fullmatch(instance) else f"id_{hashlib.sha256(instance.encode()).hexdigest()[:32]}"
    return f"{name}.json"


def write_certificates(problems: Iterable[Problem], folder: Path, class_of: Callable[[Problem], ModelClass]) -> int:
    """Write the certificate of every instance's count in its class; how many."""
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    for problem in problems:
        text = to_json(certificate(problem, class_of(problem)))
        write_whole(folder / certificate_name(problem.id), f"{text}\n")
        number += 1
    return number
