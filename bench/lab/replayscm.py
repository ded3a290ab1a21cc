"""The command `python -m calibrant.bench.lab.replayscm`.

Every expected bit is exact, by all readings of all candidates under every SCM. An episode ends where one clean
behaviour in all candidate worlds has a posterior of at least 0.99.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import nan
from random import Random
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.audits.replayscm.extended.generate import SHAPES, ExtendedStratum, extended_strata, sample_extended
from calibrant.audits.replayscm.extended.items import calibration_bins, decide_extended, heldout_requests
from calibrant.bench.core.registry import benchmark, bundled_pool, bundled_sample
from calibrant.bench.lab.renamings import RenamedItem, permuted_names, shuffled
from calibrant.bench.protocols import Protocol, ProtocolResult, protocols_of
from calibrant.bench.replayscm.audit.extended import clairvoyant_minimum, right_blind_methods
from calibrant.bench.replayscm.episodes import text_episode
from calibrant.bench.replayscm.rows.episodes import task_evidence
from calibrant.bench.runs.workers import timed_answer
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.episode import ScmEpisode, candidate_worlds, clean_rows, noisy_rows, task_class
from calibrant.dsl.replayscm.extensions.extension import (
    NOISE_FREE,
    Allowance,
    Contexts,
    Extension,
    MechanismClass,
    Prior,
    known_rate,
)
from calibrant.dsl.replayscm.extensions.reference import Mechanisms
from calibrant.dsl.replayscm.item import Problem, TaskKind
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.world import Panel
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.replayscm.canonical import PanelOrder, rename_problem, unchanged_order
from calibrant.solvers.replayscm.experiments import candidates as experiments_candidates
from calibrant.solvers.replayscm.experiments.greedy import WorldChooser
from calibrant.solvers.replayscm.experiments.policies import POLICIES, episode_evidence, play_worlds
from calibrant.solvers.replayscm.hidden.mass import count_members, list_members
from calibrant.solvers.replayscm.noise.posterior import DECIDED, Posterior

# --- Episodes on a class that is listed whole: 4 variables, 2 of them roots, at most 2 parents; 960 SCMs --------------
NAMES = ("X1", "X2", "X3", "X4")
ROOTS = NAMES[:2]
MAX_PARENTS, MAX_TARGETS = 2, 3
MAX_WORLDS = 200  # no episode of 200 at a rate of 1/5 came near
POLICY_NAMES = ("bits", "random")

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class EnumeratedClass:
    """All SCMs, and the law of every candidate's reading.

    prior: [d]; behaviours: [d] equal iff all candidates show the same clean rows
    likelihoods: [c][d, y] probability of each reading; cells: [c] free ones
    """

    scm_class: MechanismClass
    members: Sequence[Mechanisms]
    candidates: Sequence[dict[str, int]]
    prior: F64
    behaviours: I64
    likelihoods: Sequence[F64]
    cells: Sequence[int]

    @property
    def rate(self) -> Fraction:
        return self.scm_class.noise.max_rate

    def reading(self, candidate: int, truth: int, seed: int, world: int) -> int:
        """Return the number of a noisy reading of a candidate."""
        rates = dict.fromkeys(self.scm_class.endogenous, self.rate)
        do, contexts = self.candidates[candidate], range(1 << len(ROOTS))
        rows = noisy_rows(self.scm_class, self.members[truth], do, contexts, seed=seed, world=world, rates=rates)
        free = [NAMES.index(v) for v in self.scm_class.endogenous if v not in do]
        return sum(int(bit) << i for i, bit in enumerate(row[v] for row in rows for v in free))

    def expected_bits(self, posterior: F64) -> F64:
        """Return the bits of information that each candidate is expected to give, by candidate."""
        noise = experiments_candidates.binary_entropy(float(self.rate))
        bits = []
        for likelihood, cells in zip(self.likelihoods, self.cells, strict=True):
            law = posterior @ likelihood
            positive = law[law > 0]
            bits.append(float(-(positive * np.log2(positive)).sum()) - cells * noise)
        return np.array(bits)

    def top_behaviour(self, posterior: F64) -> tuple[int, float]:
        """Return the most probable clean behaviour and its posterior."""
        shares = np.bincount(self.behaviours, posterior)
        return int(shares.argmax()), float(shares.max())


def enumerate_class(rate: Fraction) -> EnumeratedClass:
    """Return the class at a rate, with the prior that draws the number of parents first."""
    disclosure = HiddenOrder(NAMES, ROOTS)
    scm_class = MechanismClass(NAMES, ROOTS, disclosure, MAX_PARENTS, Prior.BY_PARENTS, known_rate(rate), {})
    members = list_members(Posterior(replace(scm_class, noise=NOISE_FREE)))
    prior = np.array([float(experiments_candidates.member_weight(scm_class, member)) for member in members])
    candidates = [dict(do) for do in candidate_worlds(NAMES, MAX_TARGETS)]
    contexts = range(1 << len(ROOTS))
    numbers: dict[tuple[tuple[str, ...], ...], int] = {}
    behaviours = [
        numbers.setdefault(tuple(tuple(clean_rows(scm_class, m, do, contexts)) for do in candidates), len(numbers))
        for m in members
    ]
    listed = [_reading_law(scm_class, members, do) for do in candidates]
    return EnumeratedClass(
        scm_class,
        members,
        candidates,
        prior / prior.sum(),
        np.array(behaviours),
        [likelihood for likelihood, _ in listed],
        [cells for _, cells in listed],
    )


def _reading_law(scm_class: MechanismClass, members: Sequence[Mechanisms], do: dict[str, int]) -> tuple[F64, int]:
    """Return the probability of each reading under each SCM, and the number of cells that may flip.

    Every SCM is run under every pattern of flips; the array is [members, readings].
    """
    arrays, num_contexts = experiments_candidates.MemberArrays(scm_class, members), 1 << len(ROOTS)
    free = [NAMES.index(v) for v in scm_class.endogenous if v not in do]
    targets = np.full(num_contexts, sum(1 << NAMES.index(v) for v in do), np.uint64)
    constants = sum(bit << NAMES.index(v) for v, bit in do.items())
    words = np.arange(num_contexts, dtype=np.uint64) & ~targets | np.uint64(constants)
    rate, cells = float(scm_class.noise.max_rate), len(free) * num_contexts
    likelihood = np.zeros((len(members), 1 << cells))
    for pattern in range(1 << cells):
        flips = np.zeros((len(members), num_contexts), np.uint64)
        for row in range(num_contexts):
            for i, v in enumerate(free):
                flips[:, row] |= np.uint64((pattern >> row * len(free) + i & 1) << v)
        readings = arrays.readings(words, targets, flips)
        numbers = np.zeros(len(members), np.int64)
        for row in range(num_contexts):
            for i, v in enumerate(free):
                bits = readings[:, row] >> np.uint64(v) & np.uint64(1)
                numbers |= bits.astype(np.int64) << row * len(free) + i
        wrong = pattern.bit_count()
        likelihood[np.arange(len(members)), numbers] += rate**wrong * (1 - rate) ** (cells - wrong)
    return likelihood, cells


def play_enumerated(listed: EnumeratedClass, policy_name: str, seed: int) -> tuple[int, bool]:
    """Return the worlds after the start until one behaviour is decided, and whether it is the truth's."""
    rng = Random(f"enumerated|{policy_name}|{seed}")
    truth = Random(f"enumerated|{seed}").choices(range(len(listed.members)), listed.prior.tolist())[0]
    order = rng.sample(range(len(listed.candidates)), len(listed.candidates))
    posterior, candidate, world = listed.prior, 0, 0  # the start sets nothing
    while True:
        posterior = posterior * listed.likelihoods[candidate][:, listed.reading(candidate, truth, seed, world)]
        posterior = posterior / posterior.sum()
        behaviour, share = listed.top_behaviour(posterior)
        if share >= DECIDED or world == MAX_WORLDS:
            return world, bool(share >= DECIDED and behaviour == listed.behaviours[truth])
        if policy_name == "bits":
            bits = listed.expected_bits(posterior)
            candidate = int(np.flatnonzero(bits >= bits.max() - experiments_candidates.BITS_TOLERANCE)[0])
        else:
            # without repetition, then all over again
            candidate = order[world % len(order)]
        world += 1


def enumerated_lines(number: int, rates: Sequence[str]) -> Iterator[str]:
    """Yield worlds until decided, and the share decided and right, of greedy by bits and of random at each rate."""
    yield "rate  policy  SCMs  behaviours  worlds  decided and right"
    for rate in rates:
        listed = enumerate_class(Fraction(rate))
        num_behaviours = int(listed.behaviours.max()) + 1
        for policy in POLICY_NAMES:
            played = [play_enumerated(listed, policy, seed) for seed in range(1, number + 1)]
            worlds, right = fmean(worlds for worlds, _ in played), fmean(is_right for _, is_right in played)
            yield f"{rate:4}  {policy:6}  {len(listed.members):4}  {num_behaviours:10}  {worlds:6.1f}  {right:.3f}"


# --- Worlds that policies and the clairvoyant need, on bundled items and on generated strata --------------------------
NUM_WORLDS = 60  # that policies may ask for on bundled items
EVERY = 3  # bundled items are many


def as_episode(problem: Problem) -> Problem:
    """Return a published item as an episode in the class of gold's largest number of parents."""
    gold, roots = problem.sealed.gold, problem.task.disclosure.roots
    assert gold is not None
    assert roots is not None
    parents = max(len(function.parents) for function in gold.local_functions.values())
    allowance = Allowance(NUM_WORLDS, 1 << len(roots), 3, Contexts.ALL)
    extension = Extension(problem.task.variables, tuple(roots), parents, allowance=allowance)
    training = Panel(problem.task.variables, ())
    task = replace(problem.task, kind=TaskKind.EPISODE, training=training, extension=extension)
    return replace(problem, task=task, sealed=replace(problem.sealed, seed=0))


def bundled_lines(number: int) -> Iterator[str]:
    """Yield a line for each of the first items: clairvoyant minimum, greedy, random, with what random leaves."""
    yield "n, k      clairvoyant  proved by     CPU s  greedy  CPU s  random, left"
    for problem in read_pool(bundled_pool("hidden-order")).problems[::EVERY][:number]:
        item = as_episode(problem)
        assert item.task.extension is not None
        started = time.process_time()
        minimum = clairvoyant_minimum(item)
        assert minimum is not None
        between = time.process_time()
        greedy = len(play_worlds(ScmEpisode(item), "greedy", item.id)) - 1
        done = time.process_time()
        evidence = play_worlds(ScmEpisode(item), "random", item.id)
        num_left = count_members(Posterior(task_class(item.task)).condition(*evidence))
        proof = "dual weights" if minimum.is_certified else f"HiGHS ({minimum.bound})"
        sizes = f"{len(item.task.variables)}, {item.task.extension.max_parents}"
        yield (
            f"{sizes:8}  {len(minimum.worlds):11}  {proof:12}  {between - started:5.1f}  {greedy:6}"
            f"  {done - between:5.1f}  {len(evidence) - 1}, {num_left:.3g}"
        )


def mean_lines(number: int, strata: Sequence[str]) -> Iterator[str]:
    """Yield a line for each stratum: mean worlds of greedy and random, and of the clairvoyant where it is defined."""
    yield "stratum                                   greedy  random  clairvoyant  below it"
    by_name = {stratum.name: stratum for stratum in extended_strata()}
    for name in strata if strata != ["all"] else list(by_name):
        worlds: dict[str, list[int]] = {policy: [] for policy in POLICIES}
        minima, num_below = [], 0
        for seed in range(1, number + 1):
            problem = sample_extended(by_name[name], seed)
            minimum = clairvoyant_minimum(problem)
            for policy, numbers in worlds.items():
                try:
                    evidence = play_worlds(ScmEpisode(problem), policy, problem.id)
                except BudgetSpent as spent:
                    yield f"{name:40}  {policy}, item {seed}: out of budget, {spent}"
                    continue
                numbers.append(len(evidence) - 1)
                if minimum is not None:
                    num_left = count_members(Posterior(task_class(problem.task)).condition(*evidence))
                    num_below += num_left == minimum.floor and numbers[-1] < len(minimum.worlds)
            minima += [] if minimum is None else [len(minimum.worlds)]
        means = "  ".join(f"{fmean(worlds[policy] or [nan]):6.1f}" for policy in ("greedy", "random"))
        yield f"{name:40}  {means}  {fmean(minima or [nan]):11.1f}  {num_below:8}"


# --- Worlds until a verdict is decided under noise and with hidden variables, and forecasts in use --------------------
DECIDING_POLICIES = ("greedy", "random")
ROWS = ("exact", "posterior", "noise-blind", "hidden-blind", "noisy-weights", "mbde-majority", "majority")


class DecidedEpisode(NamedTuple):
    """An episode that ended where its held-out verdict was decided, or where the policy or the allowance did.

    share: posterior of the most probable behaviour; is_true: whether that is gold's
    seconds: of processor time a choice
    """

    num_worlds: int
    is_decided: bool
    share: float
    is_true: bool
    seconds: float


def worlds_until_decided(problem: Problem, policy_name: str) -> DecidedEpisode:
    """Play until the held-out verdict is decided."""
    episode, scm_class = ScmEpisode(problem), task_class(problem.task)
    chooser = WorldChooser(problem.task, scm_class, problem.id)
    policy = POLICIES[policy_name](chooser, problem.id)
    seconds, num_choices = 0.0, 0
    while True:
        decision = decide_extended(problem, episode.steps)
        is_decided = decision is not None and decision.verdict.is_decided
        if is_decided or not episode.left:
            break
        evidence = episode_evidence(episode)
        started = time.process_time()
        do = policy.choose(evidence, Posterior(scm_class).condition(*evidence))
        seconds, num_choices = seconds + time.process_time() - started, num_choices + 1
        if do is None:
            break
        episode.act({"do": dict(do)})
    share = 0.0 if decision is None else float(decision.verdict.share)
    is_true = decision is not None and decision.is_true is True
    num_worlds = sum(step.cost for step in episode.steps)
    return DecidedEpisode(num_worlds, is_decided, share, is_true, seconds / max(1, num_choices))


def _lines(number: int, cases: Sequence[tuple[str, Callable[[int], Problem]]]) -> Iterator[str]:
    yield "case                        policy  mean  median  decided  true  top share  CPU s a choice"
    for name, draw in cases:
        for policy in DECIDING_POLICIES:
            results = [worlds_until_decided(draw(seed), policy) for seed in range(1, number + 1)]
            worlds = [result.num_worlds for result in results]
            num_decided = sum(result.is_decided for result in results)
            num_true = sum(result.is_true for result in results)
            share, seconds = fmean(result.share for result in results), fmean(result.seconds for result in results)
            yield (
                f"{name:26}  {policy:6}  {fmean(worlds):4.1f}  {median(worlds):6.1f}  {num_decided:2} of {number:2}"
                f"  {num_true:4}  {share:9.4f}  {seconds:14.3f}"
            )


def _stratum(num_variables: int, rate: Fraction, num_hidden: int) -> ExtendedStratum:
    shape = next(shape for shape in SHAPES if shape.base.num_variables == num_variables)
    return ExtendedStratum(shape, rate, num_hidden)


def deciding_lines(number: int, num_variables: int, rates: Sequence[str], num_worlds: int | None) -> Iterator[str]:
    """Yield worlds until decided of greedy and random at each rate; num_worlds: allowed, by default the stratum's.

    Under the allowance of a stratum random ends undecided, so that its mean is too small by an unknown amount.
    """
    strata = [_stratum(num_variables, Fraction(rate), 0) for rate in rates]
    cases = [(stratum.name, _drawing(stratum, num_worlds)) for stratum in strata]
    yield from _lines(number, cases)


def hidden_lines(number: int, num_variables: int) -> Iterator[str]:
    """Yield worlds until decided with one hidden variable, where greedy chooses by drawn members."""
    stratum = _stratum(num_variables, Fraction(0), 1)
    yield from _lines(number, [(stratum.name, _drawing(stratum))])


def _drawing(stratum: ExtendedStratum, num_worlds: int | None = None) -> Callable[[int], Problem]:
    def draw(seed: int) -> Problem:
        problem = sample_extended(stratum, seed)
        if num_worlds is None:
            return problem
        extension = problem.task.extension
        assert extension is not None
        assert extension.allowance is not None
        longer = replace(extension, allowance=replace(extension.allowance, worlds=num_worlds))
        return replace(problem, task=replace(problem.task, extension=longer))

    return draw


def _answer(protocol: Protocol, item: Problem) -> ProtocolResult:
    try:
        return protocol.answer(item.task)
    except BudgetSpent as spent:
        return ProtocolResult("out_of_budget", provenance={"reached": str(spent)})


def protocol_lines(number: int, num_variables: int, rates: Sequence[str], hidden: Sequence[int]) -> Iterator[str]:
    """Yield what rows get on passive items without noise and at each rate, by number of hidden variables.

    Held-out exact, and bits a cell above gold's law. Out of budget counts as not exact.
    """
    bench = benchmark("replayscm")
    yield "rate, hidden  row             held-out exact  bits a cell above the law"
    for rate, num_hidden in product([Fraction(0), *map(Fraction, rates)], hidden):
        # there is nothing to be blind to
        if not rate and not num_hidden:
            continue
        stratum = _stratum(num_variables, rate, num_hidden)
        items = [sample_extended(stratum, seed, is_episode=False) for seed in range(1, number + 1)]
        blind = [right_blind_methods(item, task_class(item.task), task_evidence(item.task)) for item in items]
        case = f"{rate!s:5} {num_hidden:6}"
        yield f"{case}  blind rows that are right: {sum(bool(rows) for rows in blind)} of {number}"
        for name in ROWS:
            protocol = protocols_of(bench)[name]()
            results = [(item, _answer(protocol, item)) for item in items]
            scores = [
                bench.scoring.score(item, result.answer or bench.scoring.no_answer(item), ())
                for item, result in results
            ]
            exact = fmean(score.get("heldoutExact") is True for score in scores)
            excess = [score["excessLogLoss"] for score in scores if score.get("excessLogLoss") is not None]
            spent = sum(result.outcome == "out_of_budget" for _, result in results)
            note = f"  out of budget: {spent}" if spent else ""
            yield f"{case}  {name:14}  {exact:14.3f}  {fmean(excess) if excess else float('nan'):.4f}{note}"


# --- Calibration of posteriors on generated items: stated against true, bin by bin ------------------------------------
MAX_ROWS = 48  # rows of the evidence: with all worlds nearly every statement would be certain
NUM_REQUESTS = 2


def statements(number: int, seed: int) -> Iterator[tuple[Fraction, bool]]:
    """Yield the posterior of the top behaviour of each item, and whether it is gold's.

    Items of the noisy strata of 6 variables without hidden ones, on the first rows of their worlds.
    """
    strata = [s for s in extended_strata() if s.rate and not s.num_hidden and s.shape.base.num_variables == 6]
    rng = Random(seed)
    for place in range(number):
        problem = sample_extended(strata[place % len(strata)], seed + place, is_episode=False)
        scm_class, gold = task_class(problem.task), problem.sealed.gold
        assert gold is not None
        num_rows = rng.randint(1, MAX_ROWS)
        evidence, rows = [], 0
        for world in task_evidence(problem.task):
            if rows < num_rows:
                evidence.append(world)
                rows += len(world.rows)
        requests = heldout_requests(problem, scm_class)[:NUM_REQUESTS]
        verdict = experiments_candidates.decide_behaviour(Posterior(scm_class).condition(*evidence), requests, rng)
        truth = tuple(clean_rows(scm_class, gold.local_functions, do, contexts) for do, contexts in requests)
        yield verdict.share, verdict.rows == truth


def calibration_lines(number: int, seed: int) -> Iterator[str]:
    """Yield a line for each bin; the last states the largest deviation in standard errors."""
    bins = calibration_bins(statements(number, seed))
    yield "bin            n   stated  true   errors"
    for bin_ in bins:
        name = f"[{bin_.lower:.2f}, {bin_.upper:.2f})"
        yield f"{name}  {bin_.number:5}  {bin_.mean_stated:.3f}  {bin_.share_true:.3f}  {bin_.deviation:+.2f}"
    yield f"largest deviation: {max(abs(bin_.deviation) for bin_ in bins):.2f} standard errors, {number} items"


# --- The text protocol in use: greedy's actions as replies, read back, with their score and the size of the messages


def text_lines(number: int) -> Iterator[str]:
    """Yield a line for each of the first bundled episodes: replies, refusals, whether scores agree, characters."""
    bench = benchmark("replayscm")
    greedy = protocols_of(bench)["greedy"]()
    yield "setting                            replies  refused  scores agree  characters of prompt, of all messages"
    for item in read_pool(bundled_sample("replayscm_episodes")).problems[:number]:
        steps = timed_answer(greedy, bench.handout(item)).steps or ()
        played = bench.scoring.score(item, {}, steps)
        episode = text_episode(item)
        opening = episode.reset()
        done, info = False, dict[str, Any]()
        for step in steps[1:]:
            action = json.dumps(dict(step.action))
            _, _, done, info = episode.reply(f"Two variables are alike so far, so I set one.\nACTION: {action}")
        is_equal = done and all(info["score"].get(key) == value for key, value in played.items() if key != "strictJson")
        sizes = [sum(len(message["content"]) for message in listed) for listed in (opening, episode.messages)]
        refusals = info["score"].get("refusals") if done else "open"
        yield f"{item.setting:33}  {len(steps) - 1:7}  {refusals!s:7}  {is_equal!s:12}  {sizes[0]:,}, {sizes[1]:,}"


MEASUREMENTS: Mapping[str, Callable[[argparse.Namespace], Iterator[str]]] = {
    "calibration": lambda options: calibration_lines(options.items, options.seed),
    "means": lambda options: mean_lines(options.items, options.strata.split(",")),
    "bundled": lambda options: bundled_lines(options.items),
    "enumerated": lambda options: enumerated_lines(options.items, options.rates.split(",")),
    "noisy": lambda options: deciding_lines(options.items, options.variables, options.rates.split(","), options.worlds),
    "hidden": lambda options: hidden_lines(options.items, options.variables),
    "protocol": lambda options: protocol_lines(
        options.items, options.variables, options.rates.split(","), [int(text) for text in options.hidden.split(",")]
    ),
    "text": lambda options: text_lines(options.items),
}
"""What is measured, by name."""


def main(arguments: list[str] | None = None) -> int:
    """Run one measurement and print its lines."""
    parser = argparse.ArgumentParser(prog="python -m calibrant.bench.lab.replayscm", description=__doc__)
    parser.add_argument("name", choices=MEASUREMENTS)
    parser.add_argument("--items", type=int, default=5, help="items of each case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--variables", type=int, default=6, choices=(6, 8, 10), help="observed variables")
    parser.add_argument("--rates", default="1/50,1/20,1/10,1/5")
    parser.add_argument("--hidden", default="0,1,2", help="numbers of hidden variables, of `protocol`")
    parser.add_argument("--worlds", type=int, help="allowance of `noisy`, by default the stratum's")
    parser.add_argument("--strata", default="hs_n6_easy_calibration")
    for line in MEASUREMENTS[parser.parse_args(arguments).name](parser.parse_args(arguments)):
        print(line, flush=True)
    return 0


# --- Problems of ReplaySCM over other names, with worlds, rows and columns in another order ---------------------------


def rename(problem: Problem, random: Random) -> RenamedItem:
    """Return a problem with other names of variables, and worlds, rows and columns in another order."""
    task = problem.task
    names = permuted_names(task.variables, random)
    if task.extension is not None:
        names |= permuted_names(tuple(task.extension.hidden), random)
    panels = [task.training, problem.sealed.heldout]
    units = tuple(dict.fromkeys(unit for panel in panels for world in panel.worlds for unit in world.units))
    new_units = permuted_names(units, random)
    training, heldout = (_panel_order(panel, new_units, random) for panel in panels)
    if task.extension is not None and task.extension.forecast_worlds:
        # the worlds to forecast are the held-out ones, in their order
        heldout = replace(unchanged_order(problem.sealed.heldout), units=new_units)
    renamed = rename_problem(problem, names, training, heldout)
    return RenamedItem(renamed, names, exchanges=_hidden_exchanges(renamed))


def _hidden_exchanges(problem: Problem) -> tuple[Mapping[str, str], ...]:
    """Return the exchange of two hidden variables of which the same is disclosed."""
    extension, disclosure = problem.task.extension, problem.task.disclosure
    if extension is None or len(extension.hidden) != 2:
        return ()
    roles = {name: (parents, disclosure.group_index(name)) for name, parents in extension.hidden.items()}
    first, second = extension.hidden
    return ({first: second, second: first},) if roles[first] == roles[second] else ()


def _panel_order(panel: Panel, units: Mapping[str, str], random: Random) -> PanelOrder:
    worlds = tuple(shuffled(range(len(panel.worlds)), random))
    rows = tuple(tuple(shuffled(range(world.num_rows), random)) for world in panel.worlds)
    return PanelOrder(worlds, rows, units)


if __name__ == "__main__":
    sys.exit(main())
