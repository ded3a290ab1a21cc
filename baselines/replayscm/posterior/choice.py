"""Which member of the posterior answers: the most probable one, or the one most likely to agree on held-out worlds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Protocol

from calibrant.baselines.replayscm.posterior.evidence import MAX_STATES
from calibrant.baselines.replayscm.posterior.imagined_worlds import ImaginedWorlds
from calibrant.baselines.replayscm.posterior.local import Local
from calibrant.baselines.replayscm.posterior.posterior import Member, Posterior
from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.partial import complete
from calibrant.dsl.formulas.table import TruthTable
from calibrant.dsl.replayscm.problem import Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.budget import Budget, BudgetSpent
from calibrant.solvers.formulas.least import least_formula
from calibrant.solvers.outcome import Found
from calibrant.solvers.replayscm.certified import certify

SEED = 20_250_101  # fixed: the answer depends on the task and the options alone
STARTS = 12  # members from which a search starts
ALTERNATIVES = 4  # mechanisms of a variable that the search for the most probable member tries


class Draws(Protocol):
    """Source of samples of the posterior, exact or by a Markov chain."""

    task: Task

    def sample(self, rng: Random) -> Member: ...


@dataclass(frozen=True, slots=True)
class Choice:
    """A member; the posterior probability it has, or the share of imagined truths whose worlds it replays.

    considered: how many members were compared
    """

    member: Member
    value: float
    considered: int


def most_probable(posterior: Posterior, num_draws: int) -> Choice:
    """Return the most probable of the candidates.

    Candidates are the members of the heaviest orders, the most frequent of those drawn, and their neighbours.
    A neighbour differs in one mechanism. Where the order is disclosed and one configuration in question this is the
    most probable member of all, because then the heaviest member of the only order is it.
    """
    rng = Random(SEED)
    members = [posterior.sample(rng) for _ in range(num_draws)]
    frequent = [member for member, _ in Counter(members).most_common(STARTS)]
    heaviest = [component.heaviest() for component in posterior.components]
    probabilities = {member: posterior.probability(member) for member in (*heaviest, *frequent)}
    best = max(probabilities, key=lambda member: (probabilities[member], member.key))
    options = _options([*members, *heaviest])
    improved = True
    while improved:
        improved = False
        for variable, mechanisms in options.items():
            for mechanism in mechanisms[:ALTERNATIVES]:
                member = _with(best, variable, mechanism)
                if member is None or member in probabilities:
                    continue
                probabilities[member] = posterior.probability(member)
                if probabilities[member] > probabilities[best]:
                    best, improved = member, True
    return Choice(best, probabilities[best], len(probabilities))


def most_frequent(draws: Draws, num_draws: int) -> Choice:
    """Return the member drawn most often, and its share of the draws; the smallest by key of several."""
    rng = Random(SEED)
    counts = Counter(draws.sample(rng) for _ in range(num_draws))
    best = min(counts, key=lambda member: (-counts[member], member.key))
    return Choice(best, counts[best] / num_draws, len(counts))


def most_agreeing(posterior: Draws, num_draws: int) -> Choice:
    """Return the member that replays the imagined held-out worlds of most members drawn.

    It is reached by ascent from the best of them.
    """
    rng = Random(SEED)
    members = [posterior.sample(rng) for _ in range(num_draws)]
    worlds = ImaginedWorlds(posterior.task, members, rng)
    options = _options(members)
    frequency = Counter(members)
    scored = sorted(frequency, key=lambda m: (-_agreeing(worlds, m).bit_count(), -frequency[m], m.key))
    best = max((_ascend(worlds, options, start) for start in scored[:STARTS]), key=lambda found: found[0])
    return Choice(best[1], best[0] / num_draws, len(frequency))


def _options(members: list[Member]) -> dict[int, list[Local]]:
    """Per variable the mechanisms drawn for it, most frequent first."""
    counts: dict[int, Counter[Local]] = {}
    for member in members:
        for variable, mechanism in member.mechanisms.items():
            counts.setdefault(variable, Counter())[mechanism] += 1
    return {
        v: sorted(mechanism_counts, key=lambda m: (-mechanism_counts[m], m))
        for v, mechanism_counts in sorted(counts.items())
    }


def _with(member: Member, variable: int, mechanism: Local) -> Member | None:
    """Return the member with another mechanism for one of its variables.

    None if it has none there or would be cyclic.
    """
    if variable not in member.mechanisms:
        return None
    changed = replace(member, mechanisms={**member.mechanisms, variable: mechanism})
    return changed if len(changed.order()) == len(changed.mechanisms) else None


def _agreeing(worlds: ImaginedWorlds, member: Member) -> int:
    """Bit i: the member replays all of member i's worlds, and has its roots."""
    agreeing = worlds.same_roots(member.roots)
    for variable, mechanism in member.mechanisms.items():
        agreeing &= worlds.agreement(variable, mechanism)
    return agreeing


def _ascend(worlds: ImaginedWorlds, options: dict[int, list[Local]], start: Member) -> tuple[int, Member]:
    """Change one mechanism at a time for a better one until none is better."""
    member, best = start, _agreeing(worlds, start).bit_count()
    improved = True
    while improved:
        improved = False
        for variable in start.mechanisms:
            agreeing = worlds.same_roots(member.roots)
            for second, mechanism in member.mechanisms.items():
                if second != variable:
                    agreeing &= worlds.agreement(second, mechanism)
            for mechanism in options[variable]:
                number = (agreeing & worlds.agreement(variable, mechanism)).bit_count()
                if number > best and (changed := _with(member, variable, mechanism)):
                    member, best, improved = changed, number, True
    return best, member


def certified_member(task: Task, member: Member) -> Scm:
    """Return the member with formulas of least size, once the reference has replayed it on every training row."""
    variables = task.variables
    mechanisms = {
        variables[v]: formula_of_function(mechanism, variables) for v, mechanism in sorted(member.mechanisms.items())
    }
    return certify(task, Scm(member.roots, mechanisms))


def formula_of_function(mechanism: Local, variables: Sequence[str]) -> Formula:
    """Return a formula of least size for the mechanism's function; `BudgetSpent` if that is out of reach."""
    names = [name for i, name in enumerate(variables) if mechanism.parents >> i & 1]
    formula = least_formula(complete(TruthTable(len(names), mechanism.bits)), names, budget=Budget(MAX_STATES))
    if not isinstance(formula, Found):
        raise BudgetSpent
    return formula.value
