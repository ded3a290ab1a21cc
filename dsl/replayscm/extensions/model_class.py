"""The hypothesis class of an extended item: which SCMs there are, hidden variables included, and what each weighs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from calibrant.dsl.replayscm.disclosure import Names, RootedDisclosure
from calibrant.dsl.replayscm.extensions.extension import Extension
from calibrant.dsl.replayscm.extensions.noise import NOISE_FREE, NoiseModel
from calibrant.dsl.replayscm.extensions.prior import Prior, parent_weights


@dataclass(frozen=True)
class MechanismClass:
    """SCMs by functional parents and truth tables, constants included.

    observed: in the order of row strings
    roots: in the order of contexts: row c of a world of all contexts gives root i bit i of c
    disclosure: of observed and hidden variables together
    max_parents: of a mechanism, hidden parents included
    hidden: name -> exact functional parents; None: any admissible observed set of at most `max_parents`
    """

    observed: Names
    roots: Names
    disclosure: RootedDisclosure
    max_parents: int
    prior: Prior = Prior.UNIFORM
    noise: NoiseModel = NOISE_FREE
    hidden: Mapping[str, Names | None] | None = None

    @cached_property
    def hidden_parents(self) -> Mapping[str, Names | None]:
        """Hidden variable -> stated parents or None; empty without hidden variables."""
        return self.hidden or {}

    @cached_property
    def variables(self) -> Names:
        """Observed variables, then hidden ones; solvers number variables in this order."""
        return (*self.observed, *self.hidden_parents)

    @cached_property
    def endogenous(self) -> Names:
        """Observed endogenous variables, in the order of row strings."""
        return tuple(v for v in self.observed if v not in self.roots)

    def admissible_parents(self, variable: str) -> Names:
        """Return what a mechanism may depend on, in the order of `variables`; observed ones only for a hidden one."""
        allowed = self.disclosure.admissible_parents(variable)
        candidates = self.observed if variable in self.hidden_parents else self.variables
        return tuple(v for v in candidates if v in allowed)

    @cached_property
    def candidate_indices(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Each observed endogenous variable with its admissible parents, numbered as `variables`."""
        index = {variable: i for i, variable in enumerate(self.variables)}
        return tuple((index[v], tuple(index[u] for u in self.admissible_parents(v))) for v in self.endogenous)

    @cached_property
    def parent_weights(self) -> tuple[Fraction, ...]:
        """Prior weight of a mechanism by its number of functional parents."""
        return parent_weights(self.prior, len(self.variables), self.max_parents)

    def mechanism_weight(self, variable: str, num_parents: int) -> Fraction:
        """Return the prior weight of a mechanism; functions of stated hidden parents all weigh 1."""
        if self.hidden_parents.get(variable) is not None:
            return Fraction(1)
        return self.parent_weights[num_parents]

    def describe(self) -> str:
        """Return the class in words, for claims."""
        hidden = ", ".join(
            f"hidden {name} of {'any parents' if parents is None else ' '.join(parents) or 'no parents'}"
            for name, parents in self.hidden_parents.items()
        )
        parts = [
            f"functional parents <= {self.max_parents}",
            f"prior {self.prior.value}",
            self.disclosure.label,
            hidden,
        ]
        return ", ".join(part for part in parts if part)


def model_class(extension: Extension, disclosure: RootedDisclosure) -> MechanismClass:
    """Return the class of an extended item."""
    return MechanismClass(
        extension.variables,
        extension.roots,
        disclosure,
        extension.max_parents,
        extension.prior,
        extension.noise,
        dict(extension.hidden),
    )
