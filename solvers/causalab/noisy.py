"""Linear laboratories with hidden noise: their solver, and mechanisms together with the sequence of draws.

Solver: a property is set to its present value until a reading moves; the change is the direction of the noise, up to
its sign. Then each property is set to two values whose steps have a ratio that no two draws imitate, so that exactly
one pair of draws makes both readings agree on the effects of the property.

Version space: given the draws, fit is local again. A shifted node (one with noise) changes by the weighted sum of its
parents' changes plus the difference of two draws. So sequences of draws are extended reading by reading, each with the
vectors of every node that remain; sequences with equal remaining vectors are merged and counted. Members are summed
over the acyclic assignments of each sequence. The count is exact for the class `in_words`, which is larger than the
laboratory's: the base that a property has after a setting is not used, or with `settings` only where that is local;
`solvers.causalab.noise_sequences` uses it fully.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.item import Weights
from calibrant.dsl.causalab.mechanism import FREQUENCY, Edge, Mechanism, Values
from calibrant.dsl.causalab.reference import SettingMeaning
from calibrant.dsl.errors import CycleError
from calibrant.solvers.causalab.evidence import (
    DECIMALS,
    EXACT,
    MAX_EXACT_READING,
    Answer,
    Evidence,
    Floats,
    direct_effects,
    evidence_of,
    linear_matrix,
    mechanism_of,
    misfit,
    predict_frequency,
)
from calibrant.solvers.causalab.space import (
    MAX_LISTED,
    PER_UNIT,
    GraphSpace,
    Integers,
    Local,
    acyclic_choices,
    count_choices,
    explain_node,
    in_hundredths,
    masks_of,
    predict_frequencies,
)
from calibrant.solvers.outcome import BudgetSpent, Found, Impossible, Outcome, OutOfBudget
from calibrant.solvers.space import space_repr

# --- Version space of linear laboratories with hidden noise: mechanisms together with the sequence of draws -----------
SCALES = (0.5, 5.0, 50.0)  # scales of the noise in the released suites
MAX_WORLDS = 5_000  # different sets of remaining vectors that are followed

Law: TypeAlias = tuple[int, ...]  # equally probable draws, which are added to a shifted node, in hundredths
RELEASED_LAWS: tuple[Law, ...] = tuple((-round(s * PER_UNIT), 0, round(s * PER_UNIT)) for s in SCALES)


@dataclass(frozen=True)
class Shifted:
    """Remaining hypotheses on one node: rows of a weight vector, and whether the noise shifts the node.

    vectors: (rows, nodes); shifted: (rows,)
    """

    node: int
    vectors: Integers
    shifted: npt.NDArray[np.bool_]

    def filter_explaining(self, change: Integers, shift: int) -> Shifted:
        """Keep the rows whose change is the weighted sum of the others' changes, plus `shift` if it is shifted."""
        return self.filter(self.vectors @ change - change[self.node] + shift * self.shifted == 0)

    def filter_responding(self, responses: Sequence[int | None]) -> Shifted:
        """Keep the rows that agree with the node's response to a draw, given the known responses of its parents."""
        own_response = responses[self.node]
        if own_response is None:
            return self
        known_responses = np.array([response or 0 for response in responses], dtype=np.int64)
        is_open = np.array([response is None for response in responses])
        sums = self.vectors @ known_responses + self.shifted
        is_complete = ~np.any(self.vectors[:, is_open] > 0, axis=1)
        # unknown responses are not negative
        return self.filter(np.where(is_complete, sums == own_response, sums <= own_response))

    def filter_based(self, reading: Integers, base: int, shift: int) -> Shifted:
        """Keep the rows with which the node has this base in a reading."""
        return self.filter(reading[self.node] - self.vectors @ reading - shift * self.shifted == base)

    def filter(self, keep: npt.NDArray[np.bool_]) -> Shifted:
        return Shifted(self.node, self.vectors[keep], self.shifted[keep])

    def options(self, *, shifted: bool) -> dict[int, int]:
        """Count the rows by mask of parents; unshifted ones only, unless `shifted`."""
        vectors = self.vectors if shifted else self.vectors[~self.shifted]
        return Counter(Local(self.node, vectors).masks.tolist())


@dataclass(frozen=True)
class World:
    """Sequences of draws of one law that end in `last`, with the remaining hypotheses of every node.

    sequences: number of merged sequences
    responses: change of each node by a draw of 1, None if not observed; empty if settings are not used
    """

    law: Law
    last: int
    nodes: tuple[Shifted, ...]
    sequences: int = 1
    responses: tuple[int | None, ...] = ()

    @cached_property
    def count(self) -> int:
        """Number of members: acyclic assignments with a shifted node (all, minus those without), times sequences."""
        all_options = {n.node: n.options(shifted=True) for n in self.nodes}
        unshifted_options = {n.node: n.options(shifted=False) for n in self.nodes}
        return self.sequences * (count_choices(all_options) - count_choices(unshifted_options))

    def count_with_edge(self, parent: int, child: int) -> int:
        """Count the members with an edge."""
        totals = []
        for shifted in (True, False):
            options = {n.node: n.options(shifted=shifted) for n in self.nodes}
            options[child] = {mask: count for mask, count in options[child].items() if mask >> parent & 1}
            totals.append(count_choices(options))
        return self.sequences * (totals[0] - totals[1])

    def count_with_parents(self, masks: Sequence[int]) -> int:
        """Count the members whose parents are these masks."""
        totals = []
        for shifted in (True, False):
            options_by_node = [n.options(shifted=shifted) for n in self.nodes]
            totals.append(
                count_choices({i: {m: o[m]} if (m := masks[i]) in o else {} for i, o in enumerate(options_by_node)})
            )
        return self.sequences * (totals[0] - totals[1])

    def filter(self, node: int, keep: npt.NDArray[np.bool_]) -> World:
        """Keep some rows of one node only."""
        narrowed = self.nodes[node].filter(keep)
        return replace(self, nodes=tuple(narrowed if n.node == node else n for n in self.nodes))


@dataclass(frozen=True)
class NoisyDags(GraphSpace):
    """Mechanisms, affected nodes, scales and draws that explain the evidence."""

    evidence: Evidence
    worlds: tuple[World, ...]
    bounded: bool = False
    laws: tuple[Law, ...] = RELEASED_LAWS
    settings: bool = False

    __repr__ = space_repr

    @property
    def in_words(self) -> str:
        sink = "" if self.evidence.task.freq_parent else f", {FREQUENCY} without children"
        bases_note = "bases as they are drawn (integers from 0 to 100, 15 to 25 for the frequency)"
        bases = bases_note if self.bounded else "any bases"
        settings_note = "used where it is local" if self.settings else "not used"
        return (
            f"linear mechanisms with weights 1, 2, 3{sink} and {bases}, together with one or more shifted nodes, "
            f"{law_words(self.laws)} for every setting; what base a setting leaves is {settings_note}"
        )

    @cached_property
    def count(self) -> int:
        return sum(world.count for world in self.worlds)

    def fits(self, member: Mechanism) -> bool:
        """Return whether some member has this mechanism."""
        matrix = linear_matrix(member, self.evidence)
        return matrix is not None and any(_has_member(world, matrix) for world in self.worlds)

    def noises(self, member: Mechanism) -> list[tuple[Law, tuple[str, ...]]]:
        """List (law, shifted nodes) of every member with this mechanism."""
        nodes = self.evidence.nodes
        laws: set[tuple[Law, tuple[str, ...]]] = set()
        for world in self.worlds:
            flags = []
            for node, child in zip(world.nodes, nodes, strict=True):
                row = [member.weights(child).get(parent, 0.0) for parent in nodes]
                flags.append(sorted(set(node.shifted[np.all(node.vectors == row, axis=1)].tolist())))
            for chosen in product(*flags):
                shifted = tuple(node for node, flag in zip(nodes, chosen, strict=True) if flag)
                if shifted:
                    laws.add((world.law, shifted))
        return sorted(laws)

    def after(self, experiment: tuple[str, float], reading: Values) -> NoisyDags:
        """Add a reading; `BudgetSpent` if the draws leave more than MAX_WORLDS different outcomes."""
        evidence = self.evidence.after(*experiment, reading)
        return replace(self, evidence=evidence, worlds=tuple(_extend_worlds(self.worlds, evidence)))

    def verdicts(self) -> Mapping[float, int]:
        """Count the members by predicted frequency of the reactor crystal; NaN where a parent is hidden."""
        unknown = float("nan")  # one object, so that it is one key
        value_counts: Counter[float] = Counter()
        for world in self.worlds:
            frequency_node = world.nodes[-1]
            values = predict_frequencies(Local(frequency_node.node, frequency_node.vectors), self.evidence)
            for value in np.unique(values[~np.isnan(values)]).tolist():
                value_counts[value / PER_UNIT] += world.filter(frequency_node.node, values == value).count
            value_counts[unknown] += world.filter(frequency_node.node, np.isnan(values)).count
        return {value: count for value, count in value_counts.items() if count}

    @cached_property
    def edge_counts(self) -> dict[Edge, int]:
        """Number of members with each edge that some member has."""
        nodes, edge_counts = self.evidence.nodes, Counter[Edge]()
        for world in self.worlds:
            for child in range(len(nodes)):
                for parent in range(len(nodes)):
                    edge_counts[nodes[parent], nodes[child]] += world.count_with_edge(parent, child)
        return {edge: count for edge, count in edge_counts.items() if count}

    def having_graph(self, edges: Set[Edge]) -> int:
        """Count the members with exactly these edges."""
        masks = masks_of(edges, self.evidence.nodes)
        return 0 if masks is None else sum(world.count_with_parents(masks) for world in self.worlds)

    def mechanisms(self) -> list[Mechanism]:
        """List the mechanisms of members, each once; `BudgetSpent` if members are too many to list."""
        if self.count > MAX_LISTED:
            raise BudgetSpent(f"{self.count} members; at most {MAX_LISTED} are written out")
        distinct = {matrix for world in self.worlds for matrix in _matrices(world)}
        return [self._mechanism(np.array(matrix)) for matrix in sorted(distinct)]

    def _mechanism(self, matrix: Integers) -> Mechanism:
        weights = [{int(p): float(row[p]) for p in np.flatnonzero(row)} for row in matrix]
        first = self.evidence.table[0]
        return mechanism_of(self.evidence.nodes, weights, float(np.round(first[-1] - first @ matrix[-1], 2)))


def law_words(laws: Sequence[Law]) -> str:
    """Describe the draws in words."""
    if tuple(laws) == RELEASED_LAWS:
        return f"a scale s of {', '.join(f'{scale:g}' for scale in SCALES)}, and a draw of -s, 0 or s"
    return "and a draw of " + " or ".join(", ".join(f"{shift / PER_UNIT:g}" for shift in law) for law in laws)


def noisy_dags(
    evidence: Evidence, *, bounded: bool = False, laws: Sequence[Law] = RELEASED_LAWS, settings: bool = False
) -> NoisyDags:
    """Return the space of a linear noisy task; `BudgetSpent` if the draws leave more than MAX_WORLDS outcomes.

    bounded: whether sampled bases are known to be integers from 0 to 100, the frequency's from 15 to 25
    laws: possible laws of draws; settings: whether the base that a setting leaves is used where that is local
    """
    is_noisy = [observation.noisy for observation in evidence.observations]
    start = is_noisy.index(True) if True in is_noisy else len(is_noisy)
    noise_free = Evidence(evidence.task, evidence.observations[:start], evidence.fresh)
    nodes = []
    for node in range(len(evidence.nodes)):
        vectors = explain_node(noise_free, node, bounded=bounded).vectors
        # before any noisy reading, every vector is possible for a shifted and for an unshifted node
        shifted = np.repeat([False, True], len(vectors))
        nodes.append(Shifted(node, np.vstack([vectors, vectors]), shifted))
    responses = (None,) * len(nodes) if settings else ()
    worlds = [World(law, 0, tuple(nodes), 1, responses) for law in laws]
    for end in range(start + 1, len(evidence.observations) + 1):
        worlds = _extend_worlds(worlds, Evidence(evidence.task, evidence.observations[:end], evidence.fresh))
    return NoisyDags(evidence, tuple(worlds), bounded, tuple(laws), settings)


def _extend_worlds(worlds: Sequence[World], evidence: Evidence) -> list[World]:
    """Extend every world by every draw under which each node explains its readings, and some node is shifted."""
    changed = evidence.observations[-1].changed
    step = evidence.last_difference
    worlds_by_key: dict[tuple[object, ...], World] = {}
    for world in worlds:
        for shift, times in Counter(world.law).items():
            nodes = world.nodes
            if len(step):
                change = in_hundredths(step)[0]
                # each reading has its own draw on the same bases: a change has the difference of two draws
                shift_change = shift - world.last
                nodes = tuple(
                    n if n.node == changed else n.filter_explaining(change, shift_change) for n in world.nodes
                )
            shifted_world = _apply_setting(
                replace(world, last=shift, nodes=nodes, sequences=world.sequences * times), evidence
            )
            if (
                shifted_world is not None
                and all(len(n.vectors) for n in shifted_world.nodes)
                and any(n.shifted.any() for n in shifted_world.nodes)
            ):
                parts = (part for n in shifted_world.nodes for part in (n.vectors.tobytes(), n.shifted.tobytes()))
                # worlds with equal remaining vectors have equal futures: merged, they stay far below 3**readings
                key = (shifted_world.law, shift, shifted_world.responses, *parts)
                before = worlds_by_key[key].sequences if key in worlds_by_key else 0
                worlds_by_key[key] = replace(shifted_world, sequences=before + shifted_world.sequences)
    if len(worlds_by_key) > MAX_WORLDS:
        raise BudgetSpent(f"{len(worlds_by_key)} different outcomes of the draws; at most {MAX_WORLDS} are followed")
    return list(worlds_by_key.values())


def _apply_setting(world: World, evidence: Evidence) -> World | None:
    """Apply the last setting to its property; None if the draw contradicts it.

    Without noise the property would have the stated value. So the excess is a multiple of the draw, the same multiple
    (its response) at every setting of it. In the paper's meaning the stated value is the base.
    """
    observation = evidence.observations[-1]
    value = set_hundredths(observation.setting)
    if (
        not world.responses
        or observation.changed is None
        or value is None
        or not np.all(np.abs(observation.values) <= MAX_EXACT_READING)
    ):
        return world
    reading = in_hundredths(np.array(observation.values))
    if evidence.task.reading is SettingMeaning.BASE:
        based_node = world.nodes[observation.changed].filter_based(reading, value, world.last)
        return replace(world, nodes=tuple(based_node if n.node == based_node.node else n for n in world.nodes))
    excess = int(reading[observation.changed]) - value
    if world.last == 0:
        return None if excess else world
    # integers, as weights are 1, 2, 3: a response is a whole number, and never negative
    response, remainder = divmod(excess, world.last)
    if remainder or response < 0 or world.responses[observation.changed] not in (None, response):
        return None
    responses = tuple(response if i == observation.changed else r for i, r in enumerate(world.responses))
    return replace(world, responses=responses, nodes=tuple(n.filter_responding(responses) for n in world.nodes))


def set_hundredths(setting: float) -> int | None:
    """Return the value of a setting in hundredths; None beyond MAX_EXACT_READING, or halfway between two hundredths."""
    if not abs(setting) <= MAX_EXACT_READING or abs(abs(setting * PER_UNIT) % 1 - 0.5) < 1e-4:
        return None
    return round(setting * PER_UNIT)


def _has_member(world: World, matrix: Floats) -> bool:
    """Return whether a world has a member with these weights, row = child."""
    is_shifted = False
    for node, row in zip(world.nodes, matrix, strict=True):
        matching = np.all(node.vectors == row, axis=1)
        if not matching.any():
            return False
        is_shifted |= bool(node.shifted[matching].any())
    return is_shifted


def _matrices(world: World) -> Iterator[tuple[tuple[int, ...], ...]]:
    return (matrix for matrix, _ in list_members(world))


def list_members(world: World) -> Iterator[tuple[tuple[tuple[int, ...], ...], tuple[bool, ...]]]:
    """Yield the weights of every acyclic assignment, row = child, and which nodes are shifted."""
    # fewest rows first: the search tree is narrow at the top
    order = sorted(world.nodes, key=lambda n: len(n.vectors))
    for rows in acyclic_choices([Local(n.node, n.vectors) for n in order]):
        chosen = {n.node: (tuple(n.vectors[r].tolist()), bool(n.shifted[r])) for n, r in zip(order, rows, strict=True)}
        matrix, shifted = zip(*(chosen[node] for node in sorted(chosen)), strict=True)
        if any(shifted):
            yield matrix, shifted


def replays(space: NoisyDags, member: Mechanism) -> bool:
    """Return whether the reference reproduces every reading under some noise that a member has with this mechanism."""
    for law, nodes in space.noises(member):
        shifts = [dict.fromkeys(nodes, shift / PER_UNIT) for shift in law]
        if misfit(member, space.evidence, reading=space.evidence.task.reading, shifts=shifts) <= EXACT:
            return True
    return False


# --- Linear laboratories with hidden noise: one scalar draw at each setting, along one direction ----------------------
STEPS = (97.0, -41.0)  # settings minus the value without noise; draws could imitate a ratio of +-1, 2 or 1/2
DRAWS = (-1, 0, 1)
NULL_SETTINGS = 6  # settings to the present value; six draws of 0 have probability 1/729
IN_WORDS = "linear mechanisms with weights of two decimals and draws -s, 0, s on one set of nodes"


def solve_noisy(episode: LabEpisode) -> Outcome[Answer]:
    """Find the mechanism under noise; needs an episode without settings, and settings that state the value."""
    task = episode.task
    if task.reading is not SettingMeaning.VALUE or task.weights is not Weights.SMALL or episode.steps:
        return OutOfBudget("hidden noise is solved from the start, with settings that give the value, weights 1, 2, 3")
    start = evidence_of(task).table[-1]
    direction = _direction(episode, start)
    if direction is None:
        return _without_direction(episode)
    totals = np.zeros((len(task.nodes), len(task.properties)))
    noise_free = start  # reading of the crystal without noise
    for node, name in enumerate(task.properties):
        if name not in task.settable or episode.left < len(STEPS):
            return OutOfBudget(f"{len(episode.steps)} settings made; {name} cannot be set twice more")
        effects = _effects(episode, node, noise_free, direction)
        if isinstance(effects, Impossible):
            return effects
        totals[:, node] = effects
        noise_free = noise_free + effects * STEPS[-1]
    return _certify(evidence_of(task, episode.steps), totals, direction)


def _direction(episode: LabEpisode, start: Floats) -> Floats | None:
    """Return the change of a reading by noise alone; None if no setting to the present value shows any."""
    name = episode.task.settable[0]
    for _ in range(NULL_SETTINGS):
        if episode.left <= 0:
            return None
        reading = _set_and_read(episode, name, episode.task.baseline[name])
        if np.abs(reading - start).max() > EXACT:
            return np.asarray(reading - start)
    return None


def _without_direction(episode: LabEpisode) -> Outcome[Answer]:
    """Solve without a known direction of the noise: set each property twice and count the remaining mechanisms."""
    task = episode.task
    # in 1 of 729 episodes no null setting shows the direction: list mechanisms, and certify them by replay
    num_null_settings = len(episode.steps)
    for name, step in product(task.settable, STEPS):
        if episode.left > 0:
            _set_and_read(episode, name, task.baseline[name] + step)
    evidence = evidence_of(task, episode.steps)
    try:
        space = noisy_dags(evidence)
        survivors = [member for member in space.mechanisms() if replays(space, member)]
    except BudgetSpent as spent:
        return OutOfBudget(str(spent))
    if len(survivors) != 1:
        return OutOfBudget(
            f"{num_null_settings} settings changed nothing, the noise did not show; "
            f"{len(survivors)} mechanisms are left"
        )
    return Found(Answer(survivors[0], predict_frequency(survivors[0], evidence), True, space.in_words))


def _set_and_read(episode: LabEpisode, name: str, value: float) -> Floats:
    step = episode.act({"set": name, "value": float(round(value, DECIMALS))})
    return np.array([(step.reading or {})[node] for node in episode.task.nodes])


def _effects(episode: LabEpisode, node: int, noise_free: Floats, direction: Floats) -> Floats | Impossible:
    """Return the total effects of a property from two settings of it; noise_free: present reading without noise."""
    name = episode.task.properties[node]
    changes = [_set_and_read(episode, name, noise_free[node] + step) - noise_free for step in STEPS]
    columns = [
        [(change - draw * direction) / step for draw in DRAWS] for change, step in zip(changes, STEPS, strict=True)
    ]
    # exactly one pair of draws agrees: see STEPS
    for first, second in product(*columns):
        if np.abs(first - second).max() <= EXACT and abs(first[node] - 1) <= EXACT:
            return np.asarray(np.rint(first * 100) / 100)
    return Impossible(f"{IN_WORDS}: no pair of draws makes both settings of {name} agree")


def _certify(evidence: Evidence, totals: Floats, direction: Floats) -> Outcome[Answer]:
    """Return the answer of the mechanism with these total effects, if it explains every reading with its draw.

    direction: change of a reading by noise alone, see `_direction`
    """
    m = evidence.frequency
    direct = direct_effects(totals)
    weights = [{p: float(w) for p, w in enumerate(row) if w} for row in direct]
    baseline = evidence.table[[observation.noisy for observation in evidence.observations].index(True) - 1]
    base = float(np.round(baseline[m] - baseline[:m] @ direct[m], DECIMALS))
    try:
        mechanism = mechanism_of(evidence.nodes, weights, base)
    except CycleError as error:
        return Impossible(f"{IN_WORDS}: {error}")
    node_shifts = np.round(direction - np.hstack([direct, np.zeros((m + 1, 1))]) @ direction, DECIMALS)
    shifts = [_shift(evidence, node_shifts * draw) for draw in DRAWS]
    # one draw shifts all affected nodes: shifts of different sizes contradict the class
    if len(set(np.abs(node_shifts[node_shifts != 0]))) > 1:
        return Impossible(f"{IN_WORDS}: nodes are shifted by different amounts")
    if (distance := misfit(mechanism, evidence, reading=evidence.task.reading, shifts=shifts)) > EXACT:
        return Impossible(f"{IN_WORDS}: the only one that explains the changes is {distance:g} away from a reading")
    return Found(Answer(mechanism, predict_frequency(mechanism, evidence), True, IN_WORDS))


def _shift(evidence: Evidence, node_shifts: Floats) -> Mapping[str, float]:
    return {node: float(shift) for node, shift in zip(evidence.nodes, node_shifts, strict=True) if shift}
