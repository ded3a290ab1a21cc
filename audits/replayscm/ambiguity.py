"""The ambiguity profile of an instance: how many SCMs fit, by class, and how likely one of them is held-out exact.

Counts are exact. Classes without a size cap admit every function of at most k parents. Capped classes bound the formula
size of each mechanism; they are complete enumerations, so a cap is only used up to the number of parents for which
every function of at most that size is listed: `CAPS`. A count of 0 says that the class has no train-exact SCM at all,
for instance because a gold mechanism is too wide for it.

Weights by size are 2**(-total formula size); the exact probabilities come from weighted totals, not from draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log10
from typing import Any

from audits.replayscm.patterns import latent_scm
from dsl.replayscm.problem import Problem
from solvers.formulas.catalogue import MAX_SIZES
from solvers.replayscm.members_by_size import spectrum
from solvers.replayscm.version_space import MAX_PARENTS, ModelClass, VersionSpace

PARENTS = (2, 3, 4, 5)
LEAST_PARENTS = 4  # most published records draw at most four parents; smaller classes would say little
ALL_SIZES = 15  # the largest least formula of a function of four variables: this cap admits all of them
CAPS = {
    ALL_SIZES: 4,
    **{size: parents for parents, size in MAX_SIZES.items()},
}  # cap -> most parents it is complete for
SLACK = 4  # formula size beyond gold's that the spectrum summary looks at
SIZE_PENALTY = 1  # weight 2**-size


@dataclass(frozen=True, slots=True)
class ClassCount:
    """How many SCMs of a class fit the training worlds."""

    model_class: ModelClass
    count: int

    @property
    def log10(self) -> float | None:
        """None for an empty class."""
        return log10(self.count) if self.count else None


@dataclass(frozen=True, slots=True)
class SizeSummary:
    """The size spectrum of a capped class: how many members have a total formula size of at most ...

    smallest: the least total size of a member; gold_size: the size the file states for gold
    """

    smallest: int
    gold_size: int
    at_most_gold: int
    at_most_gold_and_slack: int


@dataclass(frozen=True, slots=True)
class DrawProbability:
    """The exact probability that a member drawn from a class is held-out exact.

    exact: None for an empty class, and without held-out worlds
    """

    model_class: ModelClass
    size_penalty: int | None
    exact: Fraction | None


@dataclass(frozen=True)
class AmbiguityProfile:
    """What the evidence of one instance leaves open.

    counts: classes by parents, uncapped first, then by falling cap
    gold_class: the smallest class of at least four parents that has gold as a member, whatever its formulas
    sizes: of the capped class with gold's number of parents; None if it has no member
    probabilities: uniform over the gold class, uniform over the capped class, weighted by size over the capped class
    """

    problem_id: str
    setting: str
    stratum: str
    counts: tuple[ClassCount, ...]
    gold_class: ModelClass
    sizes: SizeSummary | None
    probabilities: tuple[DrawProbability, ...]

    def count(self, model_class: ModelClass) -> int:
        """The count of a class of the profile; `KeyError` for any other."""
        return {listed.model_class: listed.count for listed in self.counts}[model_class]

    def to_dict(self) -> dict[str, Any]:
        """JSON: counts as texts, because they are larger than the integers of many readers."""
        return {
            "problem": self.problem_id,
            "setting": self.setting,
            "stratum": self.stratum,
            "counts": [{**_named(c.model_class), "count": str(c.count), "log10": c.log10} for c in self.counts],
            "gold_class": _named(self.gold_class),
            "sizes": self.sizes and {name: str(getattr(self.sizes, name)) for name in SizeSummary.__slots__},
            "heldout_exact": [
                {
                    **_named(p.model_class),
                    "size_penalty": p.size_penalty,
                    "probability": None if p.exact is None else float(p.exact),
                }
                for p in self.probabilities
            ],
        }


def _named(model_class: ModelClass) -> dict[str, int | None]:
    return {"max_parents": model_class.max_parents, "max_size": model_class.max_size}


def gold_class(problem: Problem) -> ModelClass:
    """The smallest class, of at least LEAST_PARENTS parents, that has gold as a member."""
    widest = max((len(f.parents) for f in latent_scm(problem).local_functions.values()), default=0)
    if widest > MAX_PARENTS:
        raise ValueError(f"problem '{problem.id}': gold has {widest} parents; at most {MAX_PARENTS} are counted")
    return ModelClass(max(LEAST_PARENTS, widest))


def capped(model_class: ModelClass) -> ModelClass:
    """The same class with the largest cap on formula size that is complete for its number of parents."""
    largest = max(cap for cap, parents in CAPS.items() if parents >= model_class.max_parents)
    return replace(model_class, max_size=largest)


def profile_classes() -> tuple[ModelClass, ...]:
    """The classes of a profile: k = 2 to 5 without a cap, then under each cap as far as it is complete."""
    sized = [ModelClass(k, cap) for cap, most in CAPS.items() for k in range(PARENTS[0], most + 1)]
    return (*(ModelClass(k) for k in PARENTS), *sized)


def ambiguity_profile(problem: Problem) -> AmbiguityProfile:
    """The profile of an instance with gold; ten variables take half a second, most of it for five parents and a cap."""
    smallest = gold_class(problem)
    spaces = {chosen: VersionSpace(problem.task, chosen) for chosen in (*profile_classes(), capped(smallest))}
    return AmbiguityProfile(
        problem.id,
        problem.setting,
        problem.stratum,
        tuple(ClassCount(chosen, spaces[chosen].count) for chosen in profile_classes()),
        smallest,
        _sizes(problem, spaces[capped(smallest)]),
        draw_probabilities(problem, smallest),
    )


def _sizes(problem: Problem, space: VersionSpace) -> SizeSummary | None:
    gold = problem.sealed.gold
    assert gold is not None  # the gold class was computed from it
    if not space.count:
        return None
    sizes: Mapping[int, int] = spectrum(space)
    stated = gold.size if problem.sealed.gold_size is None else problem.sealed.gold_size
    up_to = [sum(n for size, n in sizes.items() if size <= bound) for bound in (stated, stated + SLACK)]
    return SizeSummary(min(sizes), stated, *up_to)


def draw_probabilities(problem: Problem, model_class: ModelClass) -> tuple[DrawProbability, ...]:
    """Uniform over the class, uniform over the capped one, weighted by size over the capped one."""
    whole, sized = (VersionSpace(problem.task, chosen) for chosen in (model_class, capped(model_class)))
    return tuple(_probability(problem, *draw) for draw in ((whole, None), (sized, None), (sized, SIZE_PENALTY)))


def _probability(problem: Problem, space: VersionSpace, penalty: int | None) -> DrawProbability:
    heldout = problem.sealed.heldout.worlds
    exact = space.agreement(heldout, size_penalty=penalty) if space.count and heldout else None
    return DrawProbability(space.model_class, penalty, exact)


def num_unique(profiles: Iterable[AmbiguityProfile], model_class: ModelClass) -> int:
    """Instances with exactly one SCM of the class."""
    return sum(profile.count(model_class) == 1 for profile in profiles)
