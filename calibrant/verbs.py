"""The verbs on pools and items. Each asks the item's benchmark; its options are checked before anything is done.

Every verb raises `CalibrantError` for what is no item, for an option that it does not know and for one out of range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import msgspec

from bench.benchmarks.registry import benchmark, benchmark_of, benchmark_of_item
from bench.verbs.base import Solution, Verbs
from calibrant.options import Auditing, Counting, Generating, HardeningOptions, Scoring, Separating, Solving
from dsl.errors import CalibrantError
from dsl.item import Pool
from solvers.outcome import Found, Impossible, OutOfBudget

if TYPE_CHECKING:  # what compiles is not imported for its name
    from audits.replayscm.findings import Findings
    from audits.replayscm.generation.generate import Generated
    from audits.replayscm.hardening.harden import Hardening
    from bench.audit.separations import SeparatedPair
    from calibrant.kinds import Item, Verdict
    from dsl.replayscm.scm import Scm
    from solvers.replayscm.version_space import VersionSpace


def load_pool(path: str | PathLike[str]) -> Pool[Item]:
    """The items of a file, official or native, plain or gzip. `PoolError` names what in it cannot be meant."""
    return benchmark_of(Path(path)).verbs.load_pool(Path(path))


def score(item: Item, answer: object, **options: Unpack[Scoring]) -> Verdict:
    """The published verdict on a response text or an answer object; other JSON values are answers that are not valid.

    `CalibrantError` for a value that JSON does not have.
    """
    found: Verdict = _asked(_verbs(item).score, Scoring, options, item, answer)
    return found


def score_many(items: Iterable[Item], answers: Iterable[object], **options: Unpack[Scoring]) -> Iterator[Verdict]:
    """The verdicts on the first answer to the first item, the second to the second, and so on, one at a time.

    k samples of an item are the item k times. `CalibrantError` at the end if there are more of one than of the other.
    """
    pairs = zip(items, answers, strict=True)
    number = 0
    while True:
        try:
            item, answer = next(pairs)
        except StopIteration:
            return
        except ValueError:
            raise CalibrantError(f"after {number} pairs there is an item or an answer without the other") from None
        number += 1
        yield score(item, answer, **options)


def solve(item: Item, **options: Unpack[Solving]) -> Found[Solution[Scm]] | Impossible | OutOfBudget:
    """The exact solver's answer from `item.task`, certified by the reference; never a guess."""
    found: Found[Solution[Scm]] | Impossible | OutOfBudget = _asked(_verbs(item).solve, Solving, options, item)
    return found


def version_space(item: Item, **options: Unpack[Counting]) -> VersionSpace:
    """Every hypothesis of a class that fits what the item shows: counted, sampled and compared without enumeration."""
    found: VersionSpace = _asked(_verbs(item).version_space, Counting, options, item)
    return found


def audit(item: Item, **options: Unpack[Auditing]) -> Findings:
    """What the evidence of an item leaves open: exact counts beside bounded searches. Reads what is sealed."""
    found: Findings = _asked(_verbs(item).audit, Auditing, options, item)
    return found


def separate(item: Item, *answers: object, **options: Unpack[Separating]) -> tuple[SeparatedPair, ...]:
    """What experiments tell answers apart: each pair of those given, one and the truth, or the smallest that fit."""
    found: tuple[SeparatedPair, ...] = _asked(_verbs(item).separate, Separating, options, item, answers)
    return found


def harden(item: Item, seed: int = 0, **options: Unpack[HardeningOptions]) -> Hardening:
    """Training worlds added until the goal is reached or proved out of reach. The same seed gives the same worlds."""
    found: Hardening = _asked(_verbs(item).harden, HardeningOptions, options, item, _seed(seed))
    return found


def generate(seed: int, *, of: str = "replayscm", **options: Unpack[Generating]) -> Generated:
    """An item of a benchmark from nothing, with its audit. The same seed gives the same item.

    of: name of the benchmark
    """
    found: Generated = _asked(benchmark(of).verbs.generate, Generating, options, _seed(seed))
    return found


def _verbs(item: object) -> Verbs:
    return benchmark_of_item(item).verbs


def _seed(seed: object) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise CalibrantError(f"a seed is a whole number, not {type(seed).__name__}")
    return seed


def _asked(verb: Callable[..., Any], kind: type[Any], options: Mapping[str, Any], *arguments: object) -> Any:
    """The verb's answer; what it says of options and items that it cannot mean becomes a `CalibrantError`."""
    name, known = verb.__name__, kind.__annotations__
    unknown = sorted(options.keys() - known.keys())
    if unknown:
        raise CalibrantError(f"{name} has no option '{unknown[0]}'; its options: {', '.join(known)}")
    try:
        checked = {key: value for key, value in msgspec.convert(options, kind).items() if value is not None}
    except msgspec.ValidationError as error:
        raise CalibrantError(f"{name}: {error}") from None
    try:
        return verb(*arguments, **checked)
    except ValueError as error:
        raise CalibrantError(f"{name}: {error}") from error
