"""Certificates of a pool: one file per instance, named by its id."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from calibrant.audits.replayscm.certificates.certificate import build_certificate, to_json
from calibrant.audits.replayscm.certificates.counting import MAX_CAP
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.text import plural
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.replayscm.space import ModelClass

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}")


def certificate_name(instance: str) -> str:
    """Return the id where it can be a file's name everywhere, else a digest of it."""
    name = instance if _PLAIN_NAME.fullmatch(instance) else f"id_{hashlib.sha256(instance.encode()).hexdigest()[:32]}"
    return f"{name}.json"


def _recountable(model_class: ModelClass) -> ModelClass:
    """Return the class; `ValueError` if its cap is larger than the checker can recount."""
    parents, size = model_class.max_parents, model_class.max_size
    max_size = MAX_CAP.get(parents, 0)
    if size is not None and size > max_size:
        raise ValueError(f"with {parents} parents, `calibrant verify` recounts sizes up to {max_size}, not {size}")
    return model_class


def write_certificates(
    problems: Iterable[Problem], folder: Path, class_of: Callable[[Problem], ModelClass]
) -> Iterator[str]:
    """Write the certificate of every count; yields a line for each instance that has none, and a last one."""
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    for problem in problems:
        try:
            text = to_json(build_certificate(problem, _recountable(class_of(problem))))
        except (ValueError, BudgetSpent) as error:
            yield f"no certificate of {problem.id}: {error}"
            continue
        write_atomically(folder / certificate_name(problem.id), f"{text}\n")
        number += 1
    yield f"{plural(number, 'certificates')} written to {folder}"
