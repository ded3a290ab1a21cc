"""Rows of CausaLab: exact solvers, and what fixed strategies get from a laboratory (baselines.causalab.rows)."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Literal

from calibrant.bench.protocols import Presentation, Protocol, ProtocolResult, nothing_found, replace_words
from calibrant.dsl.causalab.item import LabItem, rename_item
from calibrant.solvers.causalab.canonical import canonical_names

if TYPE_CHECKING:
    from calibrant.dsl.causalab.episode import LabEpisode


class LabRow(Protocol, frozen=True):
    """Base of the rows: a strategy plays the episode, and its submission is the answer."""

    reads_canonical = True

    @property
    def draws(self) -> int:
        """The seed of a strategy that draws; of the others nothing depends on it."""
        return 0

    @property
    def row_name(self) -> str:
        """Its name among the rows."""
        return self.name

    def answer(self, given: LabEpisode) -> ProtocolResult:
        from calibrant.baselines.causalab.rows import ROWS, play
        from calibrant.solvers.outcome import Found

        outcome = play(ROWS[self.row_name], given, self.draws)
        if not isinstance(outcome, Found):
            return nothing_found(outcome)
        solution = outcome.value
        dialled = {} if solution.frequency is None else {"frequency": solution.frequency}
        return ProtocolResult("found", {**dialled, "hypothesis": dict(solution.hypothesis)})


class Exact(LabRow, frozen=True):
    """Every dial is set once, and a mechanism that gives every reading is stated."""

    name = "exact"


class ExactWeights(LabRow, frozen=True):
    """As exact; in quadratic laboratories further settings give the frequency's weights to six decimals."""

    name = "exact-weights"


class Greedy(LabRow, frozen=True):
    """Settings by expected gain, until graph and frequency are decided; bases as the benchmark draws them."""

    name = "greedy"


class Posterior(LabRow, frozen=True):
    """No settings: the edges of more than half of the members, and the most frequent prediction."""

    name = "posterior"


class Abstain(LabRow, frozen=True):
    """Sets no dial, and states what records decide: the frequency's equation, no edge between properties."""

    name = "abstain"


class TotalEffects(LabRow, frozen=True):
    """Each property is set once, and whatever moved is taken for a child."""

    name = "total-effects"


class LeastNorm(LabRow, frozen=True):
    """No settings: least-norm regression of the frequency on all properties over what is shown."""

    name = "least-norm"


class Hasty(LabRow, frozen=True):
    """Two settings that it ignores, and the least-norm equation of what was shown before.

    verify: once looks at its own readings before it answers, and sets on where the equation misses one
    """

    name = "hasty"
    verify: Literal["never", "once"] = "never"

    @property
    def row_name(self) -> str:
        return "hasty-verified" if self.verify == "once" else self.name


class Mean(LabRow, frozen=True):
    """The mean of the frequencies that were shown, and no hypothesis."""

    name = "mean"


class RandomRow(LabRow, frozen=True):
    """A random weighted DAG as the generator draws them, and what it predicts.

    seed: together with the task it decides the draws
    """

    name = "random"
    seed: int = 0

    @property
    def draws(self) -> int:
        return self.seed


class Prior(LabRow, frozen=True):
    """The empty hypothesis, and nothing dialled."""

    name = "prior"


ROWS = (Exact, ExactWeights, Greedy, Posterior, Abstain, TotalEffects, LeastNorm, Hasty, Mean, RandomRow, Prior)


# --- Canonical presentation of laboratories ---------------------------------------------------------------------------
_NAME = re.compile(r"(?<![A-Za-z0-9])p[0-9]+(?![A-Za-z0-9])")  # also inside names of coefficients: c_p1


def present(item: LabItem) -> Presentation:
    """Return an item with properties p1, p2, ... in an order that its readings decide."""
    canonical = canonical_names(item.task)
    names = {new: old for old, new in canonical.names.items()}
    restore = partial(replace_words, word=_NAME, names=names)
    return Presentation(rename_item(item, canonical.names, canonical.records), restore)
