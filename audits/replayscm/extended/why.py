"""Why an extended item is open: posteriors of edges and of the most probable SCM, and the value of next worlds.

If there is no noise and few SCMs fit, these are listed, and every candidate world with its possible readings. Otherwise
the world that the greedy policy chooses is given with an estimate of its value. Both work on the canonical form of the
evidence, so results do not depend on names and orders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property, partial
from math import prod
from random import Random
from typing import Any, TypeAlias

import msgspec
import numpy as np

from calibrant.audits.why import (
    Count,
    Experiment,
    Fact,
    Outcome,
    Span,
    State,
    Why,
    experiment,
    number_text,
    percent,
    spans,
)
from calibrant.dsl.episode import Step
from calibrant.dsl.replayscm import episode
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.extensions.extension import Allowance, Contexts, MechanismClass, Prior
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.dsl.replayscm.world import Panel
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.replayscm.canonical import CanonicalTask, canonical_task
from calibrant.solvers.replayscm.experiments.candidates import MemberArrays, request_rows
from calibrant.solvers.replayscm.experiments.greedy import WorldChooser
from calibrant.solvers.replayscm.hidden import mass as hidden_mass
from calibrant.solvers.replayscm.hidden.columns import hidden_parent_sets
from calibrant.solvers.replayscm.noise.most_probable import MostProbable, most_probable
from calibrant.solvers.replayscm.noise.posterior import DECIDED, Posterior

# --- SCMs drawn from the posterior of an extended item, for estimates that depend on the evidence and not on names ----
Edge: TypeAlias = tuple[str, str]  # cause, effect


@dataclass(frozen=True)
class DrawnScms:
    """Statistics of SCMs sampled from a posterior.

    num_draws: 0 if the posterior is empty; num_meanings: number of equivalence classes (meanings) among the samples
    edges: share of the samples with each edge, averaged over edges that a symmetry of the evidence exchanges
    mass: of the posterior, if the sampler has summed it (without noise and with hidden variables)
    """

    num_draws: int
    num_meanings: int
    edges: Mapping[Edge, Fraction]
    mass: Fraction | None = None


def draw_scms(task: Task, evidence: Sequence[EvidenceWorld], num_draws: int) -> DrawnScms:
    """Sample from the posterior of a task, given this evidence, independent of names and orders.

    `BudgetSpent` if hidden columns are too many.
    """
    canonical, worlds = canonical_evidence(task, evidence)
    canonical_class = episode.task_class(canonical.task)
    posterior = Posterior(canonical_class).condition(*worlds)
    sampler, rng = hidden_mass.posterior_sampler(posterior), Random("why")
    try:
        scms = [sampler.draw(rng) for _ in range(num_draws)]
    except ValueError:  # the posterior is empty
        return DrawnScms(0, 0, {}, Fraction(0))
    counts = Counter((cause, effect) for scm in scms for effect, local in scm.items() for cause in local.parents)
    shares = _mean_shares({edge: Fraction(count, num_draws) for edge, count in counts.items()}, canonical.symmetries)
    names, hidden = canonical.names, tuple(canonical_class.hidden_parents)
    return DrawnScms(
        num_draws,
        len({hidden_mass.meaning(scm, hidden) for scm in scms}),
        {(names[cause], names[effect]): share for (cause, effect), share in shares.items()},
        sampler.mass if isinstance(sampler, hidden_mass.GroupedSampler) else None,
    )


def canonical_evidence(task: Task, evidence: Sequence[EvidenceWorld]) -> tuple[CanonicalTask, list[EvidenceWorld]]:
    """Return the task with this evidence as its training worlds, in canonical form, and the evidence in that form."""
    scm_class = episode.task_class(task)
    worlds = tuple(episode.evidence_panel_world(f"world_{k}", scm_class, world) for k, world in enumerate(evidence))
    panel = Panel(natural(scm_class.observed), worlds)
    canonical = canonical_task(replace(task, training=panel, shares_units=False))
    return canonical, episode.worlds_evidence(episode.task_class(canonical.task), canonical.task.training.worlds)


def _mean_shares(shares: Mapping[Edge, Fraction], symmetries: Sequence[Mapping[str, str]]) -> dict[Edge, Fraction]:
    """Return for each edge the mean share over its orbit under the symmetries, whose edges have equal posteriors."""
    means: dict[Edge, Fraction] = {}
    for edge in shares:
        if edge in means:
            continue
        orbit = [edge]
        for cause, effect in orbit:  # grows during iteration
            images = [(image[cause], image[effect]) for image in symmetries]
            orbit += [image for image in dict.fromkeys(images) if image not in orbit]
        means |= dict.fromkeys(
            orbit, sum((shares.get(image, Fraction(0)) for image in orbit), Fraction(0)) / len(orbit)
        )
    return means


# --- Worlds to request next, of an item with noise, hidden variables or an episode, and their expected information ----
MAX_LISTED = 500  # SCMs: 192 of 10 variables, under all 1,161 candidates, take 0.3 s of processor time
MAX_EXPERIMENTS = 12  # worlds that a page lists, the best first


class EstimatedWorld(msgspec.Struct, frozen=True, kw_only=True):
    """The next world that the greedy policy chooses, with an estimate of its value.

    action: as an episode accepts it; share: expected share of the SCMs that remain, None under noise
    bits: expected information gain on the SCM, in bits; None without noise
    """

    in_words: str
    action: dict[str, Any]
    share: float | None = None
    bits: float | None = None


@dataclass(frozen=True)
class NextWorlds:
    """Worlds to request next: experiments with all their outcomes, exact, or one estimated world, or neither.

    actions: of the experiments, in their order
    """

    experiments: tuple[Experiment, ...] = ()
    actions: tuple[dict[str, Any], ...] = ()
    estimate: EstimatedWorld | None = None


def next_worlds(task: Task, evidence: Sequence[EvidenceWorld]) -> NextWorlds:
    """Return the best worlds to request after this evidence; none if no candidate separates SCMs or out of budget.

    A passive item is treated as an episode with one target and as many contexts as its largest world has rows.
    """
    extension = task.extension
    assert extension is not None
    if extension.allowance is None:
        rows = max((len(world.rows) for world in evidence), default=1)
        extension = replace(extension, allowance=Allowance(1, rows, 1, contexts=Contexts.CHOSEN))
    assert extension.allowance is not None
    canonical, worlds = canonical_evidence(replace(task, extension=extension), evidence)
    scm_class = episode.task_class(canonical.task)
    posterior = Posterior(scm_class).condition(*worlds)
    chooser = WorldChooser(canonical.task, scm_class, "why")
    names = _Names(canonical, scm_class, task, extension.allowance)
    contexts = names.in_task_order(chooser.contexts(Random("why"))[0])
    try:
        is_listed = scm_class.noise.is_noiseless and extension.allowance.contexts is not Contexts.SAMPLED
        if is_listed and hidden_mass.count_members(posterior) <= MAX_LISTED:
            return _list_experiments(posterior, chooser.candidates, contexts, names)
        choice = chooser.choose(worlds)
    except BudgetSpent:
        return NextWorlds()
    if choice is None:
        return NextWorlds()
    do = chooser.candidates[choice.index]  # constants that the world sets
    value: dict[str, Any] = {"share": choice.value} if scm_class.noise.is_noiseless else {"bits": choice.value}
    estimate = EstimatedWorld(in_words=names.in_words(do, contexts), action=names.action(do, contexts), **value)
    return NextWorlds(estimate=estimate)


@dataclass(frozen=True)
class _Names:
    """Translation of worlds of the canonical task to the names and orders of the task."""

    canonical: CanonicalTask
    scm_class: MechanismClass
    task: Task
    allowance: Allowance

    def constants(self, do: Mapping[str, int]) -> dict[str, int]:
        restored = {self.canonical.names[variable]: bit for variable, bit in do.items()}
        return {variable: restored[variable] for variable in natural(restored)}

    @cached_property
    def root_bits(self) -> list[int]:
        """Position, in a canonical context, of each root of the task."""
        assert self.task.extension is not None
        names = self.canonical.canonical_names
        return [self.scm_class.roots.index(names[v]) for v in self.task.extension.roots]

    @cached_property
    def observed_bits(self) -> list[int]:
        """Position, in a canonical row, of each observed variable of the task."""
        assert self.task.extension is not None
        names = self.canonical.canonical_names
        return [self.scm_class.observed.index(names[v]) for v in self.task.extension.variables]

    def contexts(self, contexts: Sequence[int]) -> list[str]:
        """Return contexts as texts, a character per root in the order of the task."""
        return ["".join(str(context >> bit & 1) for bit in self.root_bits) for context in contexts]

    def in_task_order(self, contexts: Sequence[int]) -> list[int]:
        """Return contexts in the order in which an episode of the task shows them: the first root changes fastest."""
        return [
            context for _, context in sorted(zip((c[::-1] for c in self.contexts(contexts)), contexts, strict=True))
        ]

    def action(self, do: Mapping[str, int], contexts: Sequence[int]) -> dict[str, Any]:
        action: dict[str, Any] = {"do": self.constants(do)}
        if self.allowance.contexts is Contexts.CHOSEN:
            action["contexts"] = self.contexts(contexts)
        return action

    def in_words(self, do: Mapping[str, int], contexts: Sequence[int]) -> str:
        assignments = ", ".join(f"{variable} = {bit}" for variable, bit in self.constants(do).items())
        world = f"do({assignments})" if assignments else "No intervention"
        if self.allowance.contexts is not Contexts.CHOSEN or not self.scm_class.roots:
            return world
        assert self.task.extension is not None
        return f"{world}, {' '.join(self.task.extension.roots)} = {', '.join(self.contexts(contexts))}"

    def reading(self, words: Sequence[int]) -> str:
        """Return the rows of a reading, over the observed variables in the order of the task."""
        return " ".join("".join(str(word >> bit & 1) for bit in self.observed_bits) for word in words)


def _list_experiments(
    posterior: Posterior, candidates: Sequence[Mapping[str, int]], contexts: Sequence[int], names: _Names
) -> NextWorlds:
    """Return the candidates that split the listed SCMs, best first: fewest meanings left in the worst case."""
    scm_class = posterior.scm_class
    scms = hidden_mass.list_members(posterior, MAX_LISTED)
    if len(scms) < 2:
        return NextWorlds()
    hidden = tuple(scm_class.hidden_parents)
    meanings = [hidden_mass.meaning(scm, hidden) for scm in scms]
    members, rated = MemberArrays(scm_class, scms), []
    for index, do in enumerate(candidates):
        rows = request_rows(scm_class, do, contexts)
        words, targets = (np.array(column, np.uint64) for column in zip(*rows, strict=True))
        by_reading: dict[tuple[int, ...], list[int]] = {}
        for member, reading in enumerate(members.readings(words, targets).tolist()):
            by_reading.setdefault(tuple(reading), []).append(member)
        if len(by_reading) > 1:
            outcomes = [
                Outcome(names.reading(reading), str(len(group)), len({meanings[member] for member in group}))
                for reading, group in by_reading.items()
            ]
            rated.append((experiment(names.in_words(do, contexts), outcomes), index))
    rated.sort(key=lambda entry: (*entry[0].rank, entry[1]))
    best = rated[:MAX_EXPERIMENTS]
    return NextWorlds(
        tuple(entry for entry, _ in best), tuple(names.action(candidates[index], contexts) for _, index in best)
    )


# --- Why an extended item is open: posterior shares of edges and of the most probable SCM, exact, instead of counts
MAX_SUMMED = 5_000  # combinations of hidden columns, times 2**endogenous: about two seconds
NUM_DRAWS = 100  # samples if the sum is larger: a standard error of at most 5 %; 10 to 20 ms each
MAX_ENDOGENOUS = 12  # variables for which the most probable SCM is sought: 3**12 states


class EdgeShare(msgspec.Struct, frozen=True):
    """Posterior probability that a variable depends on another; `fraction`: exact, "" if it is estimated."""

    cause: str
    effect: str
    fraction: str
    share: float


class RateShare(msgspec.Struct, frozen=True):
    """Posterior probability of a rate of noise."""

    rate: str
    share: float


class EvidenceLine(msgspec.Struct, frozen=True):
    """A world of the evidence: what is set, and its rows over the observed variables."""

    set_to: dict[str, int]
    rows: tuple[str, ...]


class ExtendedWhy(Why, frozen=True, kw_only=True):
    """The reason for an item with noise, hidden variables or an episode.

    edges: those of positive posterior, exact if num_draws is 0, else estimated from so many sampled SCMs
    top_share, num_top: posterior of each most probable SCM, and their number; None if not computed
    rates: posterior of shared noise; true_edges: of the gold SCM, None unless it is revealed
    experiments: worlds to request next, best first, if few SCMs fit; actions: as an episode accepts them
    next_world: the greedy choice with its estimate, if many fit; worlds_left: number that an episode still allows
    """

    variables: tuple[str, ...]
    hidden: tuple[str, ...]
    edges: tuple[EdgeShare, ...]
    evidence: tuple[EvidenceLine, ...]
    num_draws: int = 0
    rates: tuple[RateShare, ...] = ()
    top_share: float | None = None
    num_top: str | None = None
    true_edges: tuple[tuple[str, str], ...] | None = None
    experiments: tuple[Experiment, ...] = ()
    actions: tuple[dict[str, Any], ...] = ()
    next_world: EstimatedWorld | None = None
    worlds_left: int | None = None


def explain_extended(problem: Problem, steps: Sequence[Step[Any]] = (), *, reveal_sealed: bool = False) -> ExtendedWhy:
    """Return the reason, given the passive worlds, or those that an episode has shown after these steps.

    The sealed gold is read only with `reveal_sealed`, except for the first worlds of an episode, which all solvers see.
    """
    scm_class = episode.task_class(problem.task)
    extension = problem.task.extension
    assert extension is not None
    if extension.is_episode:
        start = tuple(episode.ScmEpisode(problem).steps)
        has_start = tuple(steps[: len(start)]) == start
        evidence = episode.steps_evidence(steps if has_start else (*start, *steps))
    else:
        evidence = episode.worlds_evidence(scm_class, problem.task.training.worlds)
    posterior = Posterior(scm_class).condition(*evidence)
    lines = tuple(EvidenceLine(_in_order(world.constants), tuple(world.rows)) for world in evidence)
    why = explain_posterior(problem.id, posterior, lines, partial(draw_scms, problem.task, evidence, NUM_DRAWS))
    why = _with_next_worlds(why, problem.task, evidence)
    gold = problem.sealed.gold
    if not reveal_sealed or gold is None:
        return why
    edges = tuple((cause, effect) for effect, local in sorted(gold.local_functions.items()) for cause in local.parents)
    return msgspec.structs.replace(why, true_edges=edges, sealed=(Fact(f"{len(edges)} true edges", "gold"),))


def _with_next_worlds(why: ExtendedWhy, task: Task, evidence: Sequence[EvidenceWorld]) -> ExtendedWhy:
    """Add the next worlds if the item is open and, in an episode, a world is still allowed."""
    assert task.extension is not None
    allowance = task.extension.allowance
    worlds_left = None if allowance is None else max(0, allowance.worlds + 1 - len(evidence))  # the start is free
    why = msgspec.structs.replace(why, worlds_left=worlds_left)
    if why.state in ("decided", "empty") or worlds_left == 0:
        return why
    following = next_worlds(task, evidence)
    return msgspec.structs.replace(
        why, experiments=following.experiments, actions=following.actions, next_world=following.estimate
    )


def _in_order(constants: Mapping[str, int]) -> dict[str, int]:
    return {variable: constants[variable] for variable in natural(constants)}


def explain_posterior(
    item: str, posterior: Posterior, lines: tuple[EvidenceLine, ...], draw: Callable[[], DrawnScms]
) -> ExtendedWhy:
    """Return the reason, given a posterior; `item`: id; `lines`: the evidence; `draw`: samples SCMs for estimates."""
    scm_class = posterior.scm_class
    is_noisy = not scm_class.noise.is_noiseless
    num_endogenous = len(scm_class.variables) - len(scm_class.roots)
    is_summed = _num_columns(posterior) << num_endogenous <= MAX_SUMMED
    draw = cache(draw)
    draws = None if is_summed else draw()
    num_members = _count_members(posterior, draws)
    has_mass = (
        hidden_mass.exact_mass(posterior) > 0 if draws is None else bool(draws.num_draws)
    )  # the sampler sums the mass, too
    shares = (posterior.edges if draws is None else draws.edges) if has_mass else {}
    top = _most_probable(posterior) if has_mass and is_summed else None
    open_edges = sorted(edge for edge, share in shares.items() if share < 1)
    num_draws = 0 if draws is None else draws.num_draws
    state = _state(posterior, num_members, top, draw, is_summed=is_summed, has_mass=has_mass)
    rates = _rates(posterior) if has_mass and is_noisy and is_summed else ()
    return ExtendedWhy(
        benchmark="replayscm",
        item=item,
        title=f"Why is \u201c{item}\u201d {'decided' if state == 'decided' else 'open'}?",
        state=state,
        reason=_reason(state, num_members, top, shares, is_noisy=is_noisy),
        facts=_facts(state, num_members, top, scm_class, len(open_edges), num_draws),
        open=tuple(f"{cause} to {effect}" for cause, effect in open_edges),
        decided=tuple(
            f"{cause} to {effect}" for (cause, effect), share in sorted(shares.items()) if share == 1 and is_summed
        ),
        count=Count(lower=str(num_members), upper=str(num_members)),
        class_in_words=scm_class.describe(),
        variables=scm_class.variables,
        hidden=tuple(scm_class.hidden_parents),
        edges=tuple(
            EdgeShare(c, e, str(share) if is_summed else "", float(share)) for (c, e), share in sorted(shares.items())
        ),
        evidence=lines,
        num_draws=num_draws,
        rates=rates,
        top_share=None if top is None else float(top.share),
        num_top=None if top is None else str(top.number),
    )


def _num_columns(posterior: Posterior) -> int:
    """Count the combinations of columns that the hidden variables can have, without listing them."""
    scm_class, words = posterior.scm_class, posterior.words
    counts = []
    for name in scm_class.hidden_parents:
        num_patterns = (len({word & parents for word in words}) for parents in hidden_parent_sets(scm_class, name))
        counts.append(sum(1 << max(0, num - 1) for num in num_patterns))
    return prod(counts)


def _count_members(posterior: Posterior, draws: DrawnScms | None) -> int:
    """Count the SCMs of positive posterior; without noise and with a uniform prior, their number is the mass."""
    scm_class = posterior.scm_class
    is_mass = scm_class.noise.is_noiseless and scm_class.prior is Prior.UNIFORM
    if is_mass and draws is not None and draws.mass is not None:
        return int(draws.mass)
    return hidden_mass.count_members(posterior)


def _most_probable(posterior: Posterior) -> MostProbable | None:
    """Return the maximum of the posterior; None if there are too many variables or hidden columns."""
    if len(posterior.scm_class.variables) - len(posterior.scm_class.roots) > MAX_ENDOGENOUS:
        return None
    return most_probable(posterior)


def _state(
    posterior: Posterior,
    num_members: int,
    top: MostProbable | None,
    draw: Callable[[], DrawnScms],
    *,
    is_summed: bool,
    has_mass: bool,
) -> State:
    """Return "decided" for one meaning or, with noise, for a unique most probable SCM of at least DECIDED.

    Two sampled SCMs of different meanings prove that an item without noise is open.
    """
    scm_class = posterior.scm_class
    if not has_mass:
        return "empty"
    if not scm_class.noise.is_noiseless:
        if top is None:
            return "uncounted"
        return "decided" if top.number == 1 and top.share >= DECIDED else "open"
    if num_members == 1 or not scm_class.hidden_parents:
        return "decided" if num_members == 1 else "open"
    if draw().num_meanings > 1:
        return "open"
    try:
        return "decided" if is_summed and hidden_mass.count_meanings(posterior) == 1 else "uncounted"
    except BudgetSpent:
        return "uncounted"


def _rates(posterior: Posterior) -> tuple[RateShare, ...]:
    grid = posterior.scm_class.noise.grid
    if len(grid) < 2:
        return ()
    shares = posterior.noise_posterior
    if len(shares) != len(grid):
        return ()
    return tuple(RateShare(str(rate), float(share)) for (rate, _), share in zip(grid, shares, strict=True))


def _reason(
    state: State,
    num_members: int,
    top: MostProbable | None,
    shares: Mapping[tuple[str, str], Fraction],
    *,
    is_noisy: bool,
) -> tuple[Span, ...]:
    if state == "empty":
        return spans("No SCM of the class gives these rows.")
    nearest = min(shares.items(), key=lambda entry: (abs(entry[1] - Fraction(1, 2)), entry[0]), default=None)
    edge: tuple[Span, ...] = ()
    if nearest is not None and nearest[1] < 1 and state != "decided":
        (cause, effect), share = nearest
        edge = spans(" Least certain is whether ", (f"{effect} depends on {cause}",), f": {percent(share)}.")
    if is_noisy and top is not None:
        verb = "has" if top.number == 1 else f"is one of {number_text(top.number)}, each with"
        return (
            *spans(f"Readings are noisy: the most probable SCM {verb} a posterior of ", (percent(top.share),), "."),
            *edge,
        )
    if is_noisy:
        return (*spans(f"Readings are noisy: {number_text(num_members)} SCMs have a positive posterior."), *edge)
    if state == "decided":
        return spans("One meaning fits." if num_members > 1 else "One SCM fits.")
    return (*spans(f"{number_text(num_members)} SCMs fit."), *edge)


def _facts(
    state: State, num_members: int, top: MostProbable | None, scm_class: MechanismClass, num_open: int, num_draws: int
) -> tuple[Fact, ...]:
    tone = "good" if state == "decided" else "bad" if state == "empty" else "warn"
    text = f"{number_text(num_members)} SCM{' fits' if num_members == 1 else 's fit'}"
    listed_facts = [Fact(text, tone)]  # type: ignore[arg-type]
    if top is not None and not scm_class.noise.is_noiseless:
        listed_facts.append(Fact(f"most probable: {percent(top.share)}", tone))  # type: ignore[arg-type]
    if num_open:
        listed_facts.append(Fact(f"{num_open} edges open", "warn"))
    if scm_class.hidden_parents:
        listed_facts.append(Fact(f"hidden: {', '.join(scm_class.hidden_parents)}"))
    if num_draws:
        listed_facts.append(Fact(f"shares estimated from {num_draws} draws"))
    return (*listed_facts, Fact(f"at most {scm_class.max_parents} parents"))
