"""Different candidates of the same size, for replays that no cache can shorten.

Taken with the released code on 2 vCPU of an AMD EPYC (family 25, model 17) under KVM, CPython 3.12.1, one process,
medians of 5 to 7 runs; the n6 row spread by about 30 % between runs. It was another machine than yours: a ratio to
these numbers compares machines too, unlike the ratios to rivals, which are measured side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from statistics import median

from calibrant.dsl.formulas.formula import Apply, Formula, Node
from calibrant.dsl.replayscm.evaluator import Candidate
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import Scm

LISTS = ("and", "or", "xor", "iff")


def gold_of(problem: Problem) -> Scm:
    """Return the latent SCM; ValueError if the pool does not tell it."""
    if problem.sealed.gold is None:
        raise ValueError(f"{problem.id}: benchmarks need the gold SCM")
    return problem.sealed.gold


def random_candidates(problem: Problem, count: int, seed: int) -> list[Candidate]:
    """Candidates in the shape of gold, with other variables and operators at random; mentions follow gold's order."""
    rng = Random(seed)
    gold = gold_of(problem)
    return [Candidate(*_like(gold, rng)) for _ in range(count)]


def _like(gold: Scm, rng: Random) -> tuple[dict[str, Formula], tuple[str, ...]]:
    earlier = list(gold.roots)
    mechanisms = {}
    for variable in gold.order:
        mechanisms[variable] = Formula(
            tuple(_different(node, earlier, rng) for node in gold.mechanisms[variable].nodes)
        )
        earlier.append(variable)
    return mechanisms, gold.order


def _different(node: Node, variables: Sequence[str], rng: Random) -> Node:
    if isinstance(node, Apply):
        return Apply(rng.choice(LISTS), node.arity) if node.operator in LISTS else node
    return rng.choice(variables) if isinstance(node, str) else node


def typical(problems: Sequence[Problem]) -> Problem:
    """Return the problem whose gold formulas are of median total size."""
    return sorted(problems, key=lambda problem: gold_of(problem).size)[len(problems) // 2]


# --- Measured rates of the benchmark's published scorer, for comparison -----------------------------------------------
SETTINGS = ("Ordered", "Block", "Hidden-order", "Hidden-roots")

# Full submissions a second: parse, legality, replay of 8 training and 8 held-out worlds, gold map, no extraction from
# text. First development problem of each stratum, in the order of SETTINGS.
SUBMISSIONS_PER_STRATUM: Mapping[str, tuple[int, int, int, int]] = {
    "hs_n6_easy_calibration": (691, 653, 1087, 634),
    "hs_n7_anchor_plus": (543, 501, 500, 371),
    "hs_n8_bridge": (410, 435, 436, 306),
    "vhs_n8_dense": (363, 346, 397, 259),
    "vhs_n9_anchor": (327, 333, 352, 267),
    "vhs_n9_dense_strict": (339, 347, 336, 270),
    "vhs_n10_anchor_m10": (231, 254, 232, 220),
    "vhs_n10_extreme_near_impossible": (260, 239, 257, 197),
}
EXPRESSIONS = 43_309  # parse_mechanism on 430 gold mechanisms, 28.7 characters on average


def submissions(setting: str, stratum: str | None = None) -> float | None:
    """Return the published scorer's submissions a second; without a stratum the median over strata. None if unknown."""
    if setting not in SETTINGS:
        return None
    column = SETTINGS.index(setting)
    if stratum is None:
        return median(rates[column] for rates in SUBMISSIONS_PER_STRATUM.values())
    rates = SUBMISSIONS_PER_STRATUM.get(stratum)
    return rates[column] if rates else None
