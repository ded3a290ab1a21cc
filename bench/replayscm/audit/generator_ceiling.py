"""Best expected HeldoutExact of any answer, if gold is what the published generator draws.

Members are drawn from the posterior (baselines.replayscm.posterior). The best answer does in the held-out worlds what
most of them do, so the first half of the draws chooses a behaviour, and the share of the second half that shows it
estimates without bias what an answer with that behaviour can expect. It may look at the held-out interventions and root
values, as every ceiling may.

The ceilings of audits.replayscm.ceiling are certified, but of truths that no pool is drawn from: all members alike, or
by formula size alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import sqrt
from random import Random
from typing import Annotated, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from calibrant.baselines.replayscm.posterior.posterior import Member, Posterior
from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.evaluator import compile_tables
from calibrant.dsl.replayscm.item import Problem, TaskKind
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Column, Panel, pack_rows
from calibrant.solvers.outcome import BudgetSpent

DRAWS = 400  # to choose the behaviour, and as many to measure it
Behaviour: TypeAlias = tuple[object, ...]
"""The roots, and the values of all variables in the held-out rows."""


class GeneratorCeiling(msgspec.Struct, frozen=True):
    """The ceiling of one instance under the process that published items are drawn from."""

    probability: Annotated[
        float | None, Meta(description="what the best answer found can expect; None where it could not be estimated")
    ]
    standard_error: Annotated[float | None, Meta(description="of that, over `draws` members")]
    draws: Annotated[int, Meta(description="how many members")]
    realised: Annotated[bool | None, Meta(description="whether gold does what that answer does; None without gold")]
    left_out: Annotated[str, Meta(description="why there is none; else empty")]


def generator_ceiling(problem: Problem) -> GeneratorCeiling:
    """Return the ceiling under the published process, or why it is not available; deterministic per problem."""
    try:
        return _estimate(problem)
    except (ValueError, BudgetSpent) as reason:
        return GeneratorCeiling(None, None, 0, None, str(reason) or "too many latent orders or functions to sum over")


def _estimate(problem: Problem) -> GeneratorCeiling:
    task, heldout = problem.task, problem.sealed.heldout
    if not heldout.worlds:
        raise ValueError("there are no held-out worlds")
    if task.kind is TaskKind.ALTERNATIVE or task.grammar != STANDARD:
        raise ValueError("the prior is of SCMs over the standard operators without constants")
    posterior = Posterior(task)
    if not posterior.components:
        raise ValueError("no configuration of the prior explains the evidence")
    rng, replayed = Random(f"generator ceiling:{problem.id}"), BehaviourReplay(heldout)
    samples = replayed.behaviours([posterior.sample(rng) for _ in range(2 * DRAWS)])
    best, _ = Counter(samples[:DRAWS]).most_common(1)[0]
    share = samples[DRAWS:].count(best) / DRAWS
    gold = problem.sealed.gold
    realised = None if gold is None else replayed.heldout_behaviour(gold) == best
    return GeneratorCeiling(share, sqrt(share * (1 - share) / DRAWS), DRAWS, realised, "")


class BehaviourReplay:
    """Behaviour of members in the rows of a panel: targets and roots as given, everything else computed."""

    def __init__(self, panel: Panel) -> None:
        self.panel = panel
        self._rows = pack_rows(panel.worlds, panel.variables)

    def behaviours(self, members: Sequence[Member]) -> list[Behaviour]:
        """Return the behaviour of each member; those that are drawn again are replayed once."""
        distinct: dict[Member, int] = {}
        numbers = [distinct.setdefault(member, len(distinct)) for member in members]
        programs = [
            [(v, member.mechanisms[v].parents, member.mechanisms[v].bits) for v in member.order()]
            for member in distinct
        ]
        results = compile_tables(programs, len(programs[0]) if programs else 0).replay(self._rows)
        columns = {words.tobytes(): words for words in results}
        by_words = {key: tuple(self._columns(words)) for key, words in columns.items()}
        behaviours = [
            (member.roots, *by_words[words.tobytes()]) for member, words in zip(distinct, results, strict=True)
        ]
        return [behaviours[number] for number in numbers]

    def heldout_behaviour(self, gold: Scm) -> Behaviour:
        """Return what the held-out worlds show is what gold does."""
        return gold.roots, *(self.panel.columns[v] for v in self.panel.variables)

    def _columns(self, words: npt.NDArray[np.uint64]) -> Iterator[Column]:
        for i in range(len(self.panel.variables)):
            bits = np.packbits((words >> np.uint64(i) & np.uint64(1)).astype(np.uint8), bitorder="little")
            yield int.from_bytes(bits.tobytes(), "little")
