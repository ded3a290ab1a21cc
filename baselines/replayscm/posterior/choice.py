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
from calibrant.dsl.formulas.table import TruthTable, complete
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.budget import Budget, BudgetSpent
from calibrant.solvers.formulas.synthesis import least_formula
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
    """The member that answers.

    value: what it was chosen by: its posterior probability (estimated by its share of the draws in `most_frequent`), or
        in `most_agreeing` the share of sampled members whose imagined worlds it replays
    considered: how many members were compared
    """

    member: Member
    value: float
    considered: int


def most_probable(posterior: Posterior, num_draws: int) -> Choice:
    """Return the most probable member that hill climbing finds.

    Starts: the best member of the heaviest latent order of each component (one configuration with one root set), and
    the members sampled most often. Steps change one mechanism. With a disclosed order and a single component the start
    is the maximum a posteriori already; in general another member may be more probable.
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
    """Return the member sampled most often, and its share of the draws; the smallest by key among equals."""
    rng = Random(SEED)
    counts = Counter(draws.sample(rng) for _ in range(num_draws))
    best = min(counts, key=lambda member: (-counts[member], member.key))
    return Choice(best, counts[best] / num_draws, len(counts))


def most_agreeing(posterior: Draws, num_draws: int) -> Choice:
    """Return the member most likely to be held-out exact, by hill climbing from the best sampled members.

    Each sampled member is taken for the truth in turn and imagines held-out worlds; a candidate scores one for each of
    these truths whose worlds it replays.
    """
    rng = Random(SEED)
    members = [posterior.sample(rng) for _ in range(num_draws)]
    worlds = ImaginedWorlds(posterior.task, members, rng)
    options = _options(members)
    frequency = Counter(members)
    scored = sorted(frequency, key=lambda m: (-_agreeing(worlds, m).bit_count(), -frequency[m], m.key))
    best = max((_ascend(worlds, options, start) for start in scored[:STARTS]), key=lambda result: result[0])
    return Choice(best[1], best[0] / num_draws, len(frequency))


def _options(members: list[Member]) -> dict[int, list[Local]]:
    """Return for each variable the mechanisms sampled for it, most frequent first."""
    counts: dict[int, Counter[Local]] = {}
    for member in members:
        for variable, mechanism in member.mechanisms.items():
            counts.setdefault(variable, Counter())[mechanism] += 1
    return {
        v: sorted(mechanism_counts, key=lambda m: (-mechanism_counts[m], m))
        for v, mechanism_counts in sorted(counts.items())
    }


def _with(member: Member, variable: int, mechanism: Local) -> Member | None:
    """Return the member with one mechanism replaced; None if the variable is a root there or the graph gets a cycle."""
    if variable not in member.mechanisms:
        return None
    changed = replace(member, mechanisms={**member.mechanisms, variable: mechanism})
    # `order` stops at a cycle, so it is complete iff the graph is acyclic
    return changed if len(changed.order()) == len(changed.mechanisms) else None


def _agreeing(worlds: ImaginedWorlds, member: Member) -> int:
    """Return a mask over the sampled members: bit i if it replays all imagined worlds of member i and has its roots."""
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
            # truths on which all other mechanisms agree; a new mechanism of `variable` only has to be joined to it
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
    """Return a formula of least size for the mechanism's function; `BudgetSpent` beyond MAX_STATES functions.

    Bit v of `parents` is variable v; the lowest parent is variable 0 of the truth table (dsl.formulas.table).
    """
    names = [name for i, name in enumerate(variables) if mechanism.parents >> i & 1]
    formula = least_formula(complete(TruthTable(len(names), mechanism.bits)), names, budget=Budget(MAX_STATES))
    if not isinstance(formula, Found):
        raise BudgetSpent
    return formula.value
