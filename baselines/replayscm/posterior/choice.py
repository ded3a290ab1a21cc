"""Choice of the member of the posterior that answers: the most probable, or the likeliest to be held-out exact.

The held-out worlds of a task are hidden, but the generator draws them in a known way: one to three targets, uniform
over all variables, row by row or constant (paper, Table B.1). A root shows a column that it showed in some training
world. An answer is held-out exact iff every mechanism agrees with the truth's worlds in the rows in which
its variable is no target. So each mechanism has an agreement bit for each imagined truth, and the bits of an answer are
the conjunction of those of its mechanisms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Protocol

import numpy as np
import numpy.typing as npt

from calibrant.baselines.replayscm.posterior.latent_orders import MAX_STATES, Local
from calibrant.baselines.replayscm.posterior.posterior import Member, Posterior
from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.table import TruthTable, complete
from calibrant.dsl.replayscm.generation.strata import ASSIGNMENT_BIASES
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.formulas.synthesis import least_formula
from calibrant.solvers.outcome import Budget, BudgetSpent, Found
from calibrant.solvers.replayscm.certified import certify

# --- Held-out worlds simulated from each sampled member, and the members that replay them -----------------------------
NUM_TARGETS_PROBABILITIES = (0.05, 0.5, 0.45)  # of 1, 2 and 3 targets, about the mean of published configurations
ASSIGNED_PROBABILITY = 0.8  # that targets are set row by row

U8 = npt.NDArray[np.uint8]


class ImaginedWorlds:
    """Held-out worlds sampled from each of several members, side by side.

    values: [variables, members, rows] values of 0 and 1; free: [variables, members, rows] whether it is no target
    """

    def __init__(self, task: Task, members: Sequence[Member], rng: Random) -> None:
        self.task = task
        self.members = members
        self.num_rows = task.training.worlds[0].num_rows
        self.num_worlds = max(1, task.num_heldout)
        shape = len(task.variables), len(members), self.num_worlds * self.num_rows
        self.values = np.zeros(shape, np.uint8)
        self.free = np.ones(shape, np.bool_)
        random = np.random.default_rng(rng.getrandbits(64))
        self._shown = [self._columns(variable) for variable in range(len(task.variables))]
        self._intervene(random)
        self._sample_roots(random)
        self._replay()
        self._agreed: dict[tuple[int, Local], int] = {}
        self._with_roots: Counter[tuple[str, ...]] = Counter()
        for index, member in enumerate(members):
            self._with_roots[member.roots] += 1 << index

    def _columns(self, variable: int) -> U8:
        """Return the columns of a variable in the training worlds that do not target it; [worlds, rows]."""
        name = self.task.variables[variable]
        worlds = [world for world in self.task.training.worlds if name not in world.intervention.targets]
        rows = [[world.column(name) >> row % world.num_rows & 1 for row in range(self.num_rows)] for world in worlds]
        return np.array(rows or [[0] * self.num_rows], np.uint8)

    def _intervene(self, random: np.random.Generator) -> None:
        """Sample targets and their values; replay overwrites all other values."""
        num_variables, num_members, _ = self.values.shape
        shape = num_members, self.num_worlds
        ranks = random.random((num_variables, *shape)).argsort(axis=0).argsort(axis=0)
        num_targets = random.choice((1, 2, 3), shape, p=NUM_TARGETS_PROBABILITIES)
        targets = np.repeat(ranks < num_targets, self.num_rows, axis=2)
        biases = np.repeat(random.choice(ASSIGNMENT_BIASES, shape), self.num_rows, axis=1)
        by_row = random.random(self.values.shape) < biases
        constant = np.repeat(random.random((num_variables, *shape)) < 0.5, self.num_rows, axis=2)
        assigned = np.repeat(random.random(shape) < ASSIGNED_PROBABILITY, self.num_rows, axis=1)
        self.free = ~targets
        self.values[targets] = np.where(assigned, by_row, constant)[targets]

    def _sample_roots(self, random: np.random.Generator) -> None:
        """Give the roots of each member columns that they showed in training.

        One call for all of them: a call for each root of each of the 256 members took ten times as long.
        """
        indices = {name: index for index, name in enumerate(self.task.variables)}
        pairs = [
            (indices[root], member_index) for member_index, member in enumerate(self.members) for root in member.roots
        ]
        variables, member_indices = np.array(pairs, np.int64).reshape(-1, 2).T
        num_columns = np.array([len(columns) for columns in self._shown])
        starts = np.cumsum(num_columns) - num_columns
        picks = random.integers(num_columns[variables, np.newaxis], size=(len(pairs), self.num_worlds))
        sampled = self.values.copy()
        worlds = sampled.reshape(*sampled.shape[:2], self.num_worlds, self.num_rows)
        worlds[variables, member_indices] = np.concatenate(self._shown)[starts[variables, np.newaxis] + picks]
        np.copyto(self.values, sampled, where=self.free)

    def _replay(self) -> None:
        """Evaluate the first mechanism of every member's order at once, then the second, and so on.

        A call for each mechanism of each of the 256 members took twice as long.
        """
        orders = [member.order() for member in self.members]
        for step in range(max(map(len, orders), default=0)):
            member_indices = np.array([index for index, order in enumerate(orders) if step < len(order)])
            variables = np.array([orders[member_index][step] for member_index in member_indices])
            mechanisms = [
                self.members[member_index].mechanisms[orders[member_index][step]] for member_index in member_indices
            ]
            rows = np.zeros((len(member_indices), self.values.shape[2]), np.uint8)
            parents = [_indices(mechanism.parents) for mechanism in mechanisms]
            for bit in range(max(map(len, parents))):
                having = np.array([index for index, of in enumerate(parents) if bit < len(of)])
                sources = np.array([parents[number][bit] for number in having])
                rows[having] |= self.values[sources, member_indices[having]] << np.uint8(bit)
            tables = np.stack([_table(mechanism.bits) for mechanism in mechanisms])
            columns = np.take_along_axis(tables, rows, axis=1)
            free = self.free[variables, member_indices]
            self.values[variables, member_indices] = np.where(free, columns, self.values[variables, member_indices])

    def agreement(self, variable: int, mechanism: Local) -> int:
        """Return a mask: bit i is set if the mechanism agrees with all worlds of member i."""
        key = variable, mechanism
        if key not in self._agreed:
            wrong = (_evaluate(mechanism, self.values) != self.values[variable]) & self.free[variable]
            packed = np.packbits(~wrong.any(axis=1), bitorder="little")
            self._agreed[key] = int.from_bytes(packed.tobytes(), "little")
        return self._agreed[key]

    def same_roots(self, roots: tuple[str, ...]) -> int:
        """Return a mask: bit i is set if member i has these roots."""
        return self._with_roots[roots]


def _evaluate(mechanism: Local, values: U8) -> U8:
    """Return the mechanism's column over rows of values, whose first axis is the variable."""
    rows: U8 = np.zeros(values.shape[1:], np.uint8)
    for bit, parent in enumerate(_indices(mechanism.parents)):
        rows |= values[parent] << np.uint8(bit)
    # 36,000 cells in a fifth of the time of an index by array
    cells = rows.tobytes().translate(_table(mechanism.bits).tobytes().ljust(256))
    return np.frombuffer(cells, np.uint8).reshape(rows.shape)


@lru_cache(maxsize=4096)
def _indices(parents: int) -> tuple[int, ...]:
    """Return the variables of a mask, lowest first."""
    return tuple(index for index in range(parents.bit_length()) if parents >> index & 1)


@lru_cache(maxsize=4096)
def _table(bits: int) -> U8:
    return np.unpackbits(np.frombuffer(bits.to_bytes(4, "little"), np.uint8), bitorder="little")


# --- Choice of the member that answers: the most probable one, or the likeliest to agree on held-out worlds -----------
SEED = 20_250_101  # fixed: the answer depends on the task and the options alone
NUM_STARTS = 12  # members from which a search starts
NUM_ALTERNATIVES = 4  # mechanisms of a variable that the search for the most probable member tries


class Draws(Protocol):
    """Source of samples of the posterior, exact or by a Markov chain."""

    task: Task

    def sample(self, rng: Random) -> Member: ...


@dataclass(frozen=True, slots=True)
class Choice:
    """The member that answers.

    value: criterion of the choice: posterior probability, its share of the draws (`most_frequent`), or the share of
        sampled members whose imagined worlds it replays (`most_agreeing`)
    considered: number of members compared
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
    frequent = [member for member, _ in Counter(members).most_common(NUM_STARTS)]
    heaviest = [component.heaviest() for component in posterior.components]
    probabilities = {member: posterior.probability(member) for member in (*heaviest, *frequent)}
    best = max(probabilities, key=lambda member: (probabilities[member], member.key))
    options = _options([*members, *heaviest])
    improved = True
    while improved:
        improved = False
        for variable, mechanisms in options.items():
            for mechanism in mechanisms[:NUM_ALTERNATIVES]:
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
    best = max((_ascend(worlds, options, start) for start in scored[:NUM_STARTS]), key=lambda result: result[0])
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
    """Replace one mechanism at a time by a better one until none is better; return (agreeing truths, member)."""
    member, best = start, _agreeing(worlds, start).bit_count()
    improved = True
    while improved:
        improved = False
        for variable in start.mechanisms:
            # truths on which all other mechanisms agree; a new mechanism of `variable` only intersects this mask
            agreeing = worlds.same_roots(member.roots)
            for second, mechanism in member.mechanisms.items():
                if second != variable:
                    agreeing &= worlds.agreement(second, mechanism)
            for mechanism in options[variable]:
                num_agreeing = (agreeing & worlds.agreement(variable, mechanism)).bit_count()
                if num_agreeing > best and (changed := _with(member, variable, mechanism)):
                    member, best, improved = changed, num_agreeing, True
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
