"""Findings about a blicket item before it is played, its soundness and its difficulty.

Claims that come with a certificate are checked by audits.blickets.verify, which shares no code with this module
or with the solvers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, permutations
from math import factorial
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from calibrant.audits.blickets.verify import evidence_of, order_findings
from calibrant.audits.claims import Certificate, ClaimStatus, Finding, ItemIdentity, Soundness, certify
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.item import (
    MAX_OBJECTS,
    BlicketItem,
    Count,
    Exposure,
    Form,
    Mechanism,
    Rule,
    Sealed,
    SwitchBy,
    contradiction,
    set_of,
)
from calibrant.dsl.blickets.reference import is_active
from calibrant.dsl.blickets.score import Grade, Split, grade
from calibrant.dsl.episode import Action, Step
from calibrant.solvers.blickets.canonical import rules_structure
from calibrant.solvers.blickets.conditions import NoiseSpace, OrderSpace, SwitchSpace
from calibrant.solvers.blickets.exact import exact_learner
from calibrant.solvers.blickets.learner import Static, certifiable, conclude_episode
from calibrant.solvers.blickets.space import StaticSpace
from calibrant.solvers.canonical import canonical_key
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget

# --- Findings about a blicket item before it is played ----------------------------------------------------------------
ONE_RULE = "one rule, conjunctive or disjunctive over a non-empty set of the objects"
NOISY_RULE = "one rule that reads ACTIVE with a probability below 1 when satisfied and never otherwise"
SWITCHES = "two rules, the second in force after some number of activations"


def item_findings(item: BlicketItem) -> Iterator[Finding]:
    """Yield all findings of this module about one item."""
    yield from either_word(item)
    yield from order_never_asked(item)
    yield from order_findings(item)
    yield from never_decided_under_noise(item)
    yield from never_decided_under_a_switch(item)


def either_word(item: BlicketItem) -> Iterator[Finding]:
    """Yield a finding for each rule of one blicket: both words are the same function, so no reading shows its type.

    Kind `vacuous`; `unfair` if only one of the words is accepted.
    """
    for position, mechanism in enumerate(item.sealed.mechanisms, 1):
        if mechanism.rule.blickets.bit_count() != 1:
            continue
        strict = item.sealed.strict_singleton
        graded = f"only '{mechanism.rule.form}' is accepted" if strict else "both words are accepted"
        yield Finding(
            "unfair" if strict else "vacuous",
            ClaimStatus.PROVED,
            item.id,
            f"rule {position} has one blicket: no reading tells its type, and {graded}",
            {"rule": position},
            _certificate("either-word", ONE_RULE, item, {"rule": position}),
        )


def order_never_asked(item: BlicketItem) -> Iterator[Finding]:
    """Yield a finding for each rule with an order of placement: the order is no part of the answer."""
    for mechanism in item.sealed.mechanisms:
        if mechanism.order is not None and len(mechanism.order) > 1:
            orders = factorial(len(mechanism.order))
            claim = (
                f"all {orders} orders of the same blickets have the same graded answer: the order is never asked for"
            )
            yield Finding("vacuous", ClaimStatus.PROVED, item.id, claim, {"orders": orders})


def never_decided_under_noise(item: BlicketItem) -> Iterator[Finding]:
    """Yield a finding on whether another rule explains every possible reading of an unreliable detector."""
    sealed = item.sealed
    mechanism = sealed.mechanisms[0]
    if sealed.p == 1 or sealed.switches or mechanism.order is not None or item.task.graded:
        return  # a graded reading counts blickets, so it tells the wider rule from this one
    rival = _wider(mechanism.rule, item.task.n)
    if rival is None:
        yield Finding(
            "never-suffices", ClaimStatus.REFUTED, item.id, "no other rule is satisfied wherever this one is", {}
        )
        return
    stated = rival.as_json(item.task.objects)
    yield Finding(
        "never-suffices",
        ClaimStatus.PROVED,
        item.id,
        f"whatever is read, {rival.in_words(item.task.objects)} explains it too; k readings that only it would "
        f"activate leave it odds of {1 - sealed.p:.3g}^k",
        {"p": sealed.p, "other": rival.in_words(item.task.objects)},
        _certificate("always-explained", NOISY_RULE, item, {"other": stated}),
    )


def _wider(rule: Rule, n: int) -> Rule | None:
    """Return another rule that is satisfied wherever this one is; None if there is none."""
    everything = (1 << n) - 1
    if rule.form is Form.CONJUNCTIVE and rule.blickets.bit_count() > 1:
        return Rule(Form.DISJUNCTIVE, rule.blickets & -rule.blickets)
    outside = everything & ~rule.blickets
    return Rule(Form.DISJUNCTIVE, rule.blickets | (outside & -outside)) if outside else None


def never_decided_under_a_switch(item: BlicketItem) -> Iterator[Finding]:
    """Yield a finding on whether INACTIVE readings can rule out a switch at the last activation.

    They cannot if the second rule is satisfied only where the first is.
    """
    sealed = item.sealed
    if not sealed.switches or sealed.switch_by is not SwitchBy.ACTIVATIONS or sealed.mechanisms[0].order is not None:
        return
    rule = sealed.mechanisms[0].rule
    rival = _narrower(rule, item.task.n)
    if rival is None:
        claim = "no other rule is satisfied only where the first is"
        yield Finding("never-suffices", ClaimStatus.REFUTED, item.id, claim, {})
        return
    silent = "any INACTIVE reading" if rule.form is Form.DISJUNCTIVE else "the silent certificate"
    stated = rival.as_json(item.task.objects)
    yield Finding(
        "never-suffices",
        ClaimStatus.PROVED,
        item.id,
        f"a switch from {rule.in_words(item.task.objects)} to {rival.in_words(item.task.objects)} at the last "
        f"activation survives {silent}",
        {"first": rule.in_words(item.task.objects), "other": rival.in_words(item.task.objects)},
        _certificate("silently-switched", SWITCHES, item, {"other": stated}),
    )


def _narrower(rule: Rule, n: int) -> Rule | None:
    """Return another rule that is satisfied only where this one is; None if there is none."""
    if rule.form is Form.DISJUNCTIVE and rule.blickets.bit_count() > 1:
        return Rule(Form.CONJUNCTIVE, rule.blickets)
    outside = (1 << n) - 1 & ~rule.blickets
    return Rule(Form.CONJUNCTIVE, rule.blickets | (outside & -outside)) if outside else None


def _certificate(claim: str, in_words: str, item: BlicketItem, data: dict[str, object]) -> Certificate:
    return certify(claim, in_words, evidence_of(item), data)


# --- Strategies that the score rewards: an answer before the switch, and a convention of counting ---------------------
TRANSCRIPT = "this sequence of moves"


def quiet(episode: BlicketEpisode) -> None:
    """Try single objects and pairs until the first activation, and submit the objects that activated.

    If a pair activates and neither of its objects did, they are the blickets of a conjunctive rule. So one activation
    is enough for the kind of rule that the paper switches from. Without an activation nothing is submitted.
    """
    objects = episode.task.objects
    for first, second in combinations(range(len(objects)), 2):
        for step in _toggled_to(episode, (first, second)):
            if is_active(step.reading) or episode.left == 0:
                _submit(episode, step)
                return


def _toggled_to(episode: BlicketEpisode, pair: tuple[int, int]) -> Iterator[Step[str]]:
    objects = episode.task.objects
    for index in [index for index in episode.placed if index not in pair]:
        yield episode.act({"remove": objects[index]})
    for index in pair:
        if index not in episode.placed:
            yield episode.act({"place": objects[index]})


def _submit(episode: BlicketEpisode, last: Step[str]) -> None:
    if is_active(last.reading):
        form = Form.CONJUNCTIVE if len(episode.placed) > 1 else Form.DISJUNCTIVE
        episode.act({"check": Rule(form, set_of(episode.placed)).as_json(episode.task.objects)})


def gameable(item: BlicketItem) -> Iterator[Finding]:
    """Yield a finding on whether one activation and an early answer get full marks on an item that switches.

    Proved by the moves of `quiet`, which a third party can replay; open if these get less.
    """
    if not item.sealed.switches:
        return
    episode = BlicketEpisode(item)
    quiet(episode)
    result = grade(item, episode.steps)
    if not result.correct or result.split is not Split.PRE:
        yield Finding(
            "gameable",
            ClaimStatus.OPEN,
            item.id,
            "a single activation did not lead to full marks",
            _grade_statistics(result),
        )
        return
    claim = (
        f"full marks after {result.activations} activation(s), {result.steps} moves and no reading under a later rule "
        f"(class {result.exposed})"
    )
    opening = 0 if item.sealed.start_on is None else 1
    data = {"actions": [dict(step.action) for step in episode.steps[opening:]], "activations": result.activations}
    certificate = certify("full-marks-before-the-switch", TRANSCRIPT, evidence_of(item), data)
    yield Finding("gameable", ClaimStatus.PROVED, item.id, claim, _grade_statistics(result), certificate)


def _grade_statistics(result: Grade) -> dict[str, int | float | str]:
    return {"correct": int(bool(result.correct)), "steps": result.steps, "activations": result.activations}


def counting_decides(item: BlicketItem) -> Iterator[Finding]:
    """Yield a finding on whether the convention of counting activations decides the verdict on the static learner."""
    if not item.sealed.switches:
        return
    played = {count: _static_play(replace(item, task=replace(item.task, count=count))) for count in Count}
    verdicts = {count: bool(result.correct) for count, (result, _) in played.items()}
    outcomes = ", ".join(f"{count}: {'correct' if verdicts[count] else 'wrong'}" for count in Count)
    data: dict[str, Any] = {str(count): [dict(a) for a in actions] for count, (_, actions) in played.items()}
    differs = len(set(verdicts.values())) > 1
    yield Finding(
        "counting",
        ClaimStatus.PROVED if differs else ClaimStatus.REFUTED,
        item.id,
        f"the learner that expects one rule is judged by the convention of counting ({outcomes})"
        if differs
        else f"both conventions of counting give the static learner the same verdict ({outcomes})",
        {str(count): int(verdicts[count]) for count in Count},
        certify("counting-decides", TRANSCRIPT, evidence_of(item), data) if differs else None,
    )


def _static_play(item: BlicketItem) -> tuple[Grade, Sequence[Action]]:
    episode = BlicketEpisode(item)
    conclude_episode(episode, Static)
    opening = 0 if item.sealed.start_on is None else 1
    return grade(item, episode.steps), [step.action for step in episode.steps[opening:]]


# --- Difficulty of an item: moves that an exact learner needs, and hypotheses before any reading ----------------------
MAX_PERMUTED = 5  # most objects whose roles are permuted: 120 episodes, 720 for six objects


@dataclass(frozen=True, slots=True)
class Difficulty:
    """Labels of an item.

    members: number of hypotheses of each family before any reading
    steps: moves of the exact learner to a decided and correct answer; OutOfBudget if its moves ran out or, with
        noise, its decided answer was wrong; Impossible if no exact learner has the mechanism in its class
    certifiable: whether INACTIVE readings alone can exclude every other first rule (a silent certificate)
    winnable: share of the permutations of objects (which object has which role in the rules) in which the exact learner
        comes to a decided and correct answer; Impossible as with steps, and for more than MAX_PERMUTED objects
    """

    members: Mapping[str, int]
    steps: Outcome[int]
    certifiable: bool
    winnable: Outcome[float]

    def as_labels(self) -> dict[str, str]:
        """Return the labels of an item, which are texts; outcomes without a value have no label."""
        texts = {f"members_{family}": str(count) for family, count in self.members.items()}
        for name, outcome in (("steps", self.steps), ("winnable", self.winnable)):
            if isinstance(outcome, Found):
                texts[name] = f"{outcome.value:.4g}"
        return {**texts, "certifiable": "yes" if self.certifiable else "no"}


def difficulty(item: BlicketItem) -> Difficulty:
    """Return the labels of an item."""
    n = item.task.n
    members = {
        "static": StaticSpace.full(n).count,
        "switch": SwitchSpace.full(n, item.task.count).count,
        "order": OrderSpace.full(n, item.task.order_reading).count,
        "noise": NoiseSpace.full(n).count,
    }
    return Difficulty(members, steps_needed(item), certifiable(item.sealed.mechanisms[0].rule), winnable_share(item))


def steps_needed(item: BlicketItem) -> Outcome[int]:
    """Return the moves of the exact learner, as `Difficulty` defines them."""
    learner = exact_learner(item)
    if not isinstance(learner, Found):
        return learner
    episode = BlicketEpisode(item)
    learned = conclude_episode(episode, learner.value)
    if not isinstance(learned.outcome, Found):
        return learned.outcome
    moves = item.task.budget - episode.left
    if not grade(item, episode.steps).correct:
        return OutOfBudget(f"the answer after {moves} moves was wrong")
    return Found(moves)


def winnable_share(item: BlicketItem) -> Outcome[float]:
    """Return the share described in `Difficulty`, cached for items that differ in names and roles only."""
    if item.task.n > MAX_PERMUTED:
        return Impossible(f"roles are permuted for at most {MAX_PERMUTED} objects")
    return _winnable_share(replace(item, id="", labels=_NO_LABELS, sealed=_normalise_roles(item)))


def _normalise_roles(item: BlicketItem) -> Sealed:
    """Return a canonical form of the mechanism, equal for items that differ in the roles of objects only."""
    return min(
        (_permute_roles(item.sealed, roles) for roles in permutations(range(item.task.n))), key=msgspec.json.encode
    )


def _permute_roles(sealed: Sealed, roles: tuple[int, ...]) -> Sealed:
    def rule(old: Rule) -> Rule:
        return Rule(old.form, set_of(roles[i] for i in range(len(roles)) if old.blickets >> i & 1))

    def order(old: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return None if old is None else tuple(roles[i] for i in old)

    mechanisms = tuple(Mechanism(rule(old.rule), order(old.order)) for old in sealed.mechanisms)
    return replace(sealed, mechanisms=mechanisms, start_on=order(sealed.start_on))


_NO_LABELS: Mapping[str, str] = {}
_shares: dict[bytes, Outcome[float]] = {}


def _winnable_share(item: BlicketItem) -> Outcome[float]:
    key = msgspec.json.encode(item)
    if key not in _shares:
        _shares[key] = _play_all_roles(item)
    return _shares[key]


def _play_all_roles(item: BlicketItem) -> Outcome[float]:
    won, played = 0, 0
    # each mechanism once, though several permutations give it; a dict keeps their order, a set would not
    for sealed in dict.fromkeys(_permute_roles(item.sealed, roles) for roles in permutations(range(item.task.n))):
        steps = steps_needed(replace(item, sealed=sealed))
        if isinstance(steps, Impossible):
            return steps
        won += isinstance(steps, Found)
        played += 1
    return Found(won / played)


# --- Soundness of a blicket item: its record is true of it, and it can be decided -------------------------------------
MAX_PLAYED_STATES = 1 << 22  # states times moves of the digest: 0.1 s
# random odd multipliers of the digest: one for each object, then for a refused move, the answer and the reading
_FACTORS = np.random.default_rng(0).integers(1, 1 << 63, MAX_OBJECTS + 3, np.uint64) | np.uint64(1)
EASY_LABELS = frozenset({"steps", "winnable", "certifiable"})


def labels_hold(item: BlicketItem) -> str | None:
    """Return which labels of difficulty differ from recomputed ones; None without such labels."""
    stated = {name for name in item.labels if name in EASY_LABELS or name.startswith("members_")}
    if not stated:
        return None
    recomputed = difficulty(item).as_labels()
    wrong = [f"{name} {item.labels[name]}, found {recomputed.get(name, 'none')}" for name in sorted(stated)]
    return "; ".join(
        w for w, name in zip(wrong, sorted(stated), strict=True) if recomputed.get(name) != item.labels[name]
    )


def condition_holds(item: BlicketItem) -> str:
    """Return why the stated condition is not that of the item's mechanism; "" if it is."""
    return contradiction(item)


def switches_come(item: BlicketItem) -> str | None:
    """Return why no sequence of moves reaches the last switch; "" if one does, None for items without a switch."""
    sealed = item.sealed
    if not sealed.switches:
        return None
    last, unit = sealed.switches[-1], "moves" if sealed.switch_by is SwitchBy.STEPS else "activations"
    return f"after {last} {unit}, of {item.task.budget} moves" if last >= item.task.budget else ""


def explain_undecided(item: BlicketItem) -> str | None:
    """Return why the exact learner of the item's condition does not come to a right answer, "" if it does.

    None if there is no exact learner for the condition.
    """
    outcome = steps_needed(item)
    match outcome:
        case OutOfBudget():
            return outcome.reached
        case Impossible():
            return None
        case _:
            return ""


def duplicate_key(item: BlicketItem) -> bytes:
    """Encode the task, all readings that actions within the budget can give, and the right answer after each.

    Rules that no action reaches or separates have equal keys. With noise, with an order of placement and beyond
    `MAX_PLAYED_STATES` a key is finer: it has the rules and switches within the budget, and the seed of the noise.
    """
    task, sealed = item.task, _reachable_rules(item.sealed, item.task.budget)
    if sealed.p == 1 and all(len(mechanism.order or ()) < 2 for mechanism in sealed.mechanisms):
        digest = _outcomes_digest(sealed, task.n, task.budget, edges=task.count is Count.EDGE, graded=task.graded)
        if digest is not None:
            return msgspec.json.encode((task, sealed.start_on, digest))
    return msgspec.json.encode((task, sealed))


def _reachable_rules(sealed: Sealed, budget: int) -> Sealed:
    """Return the sealed part with canonical rules, without the rules whose switch is beyond the budget."""
    end = budget + (sealed.switch_by is SwitchBy.ACTIVATIONS and sealed.start_on is not None)
    switches = tuple(point for point in sealed.switches if point <= end)
    rules = [old.rule if sealed.strict_singleton else old.rule.canonical for old in sealed.mechanisms]
    mechanisms = tuple(replace(old, rule=rule) for old, rule in zip(sealed.mechanisms, rules, strict=True))
    exposure = sealed.exposure
    if exposure.after_switch and len(switches) < len(sealed.switches):
        exposure = Exposure(budget)  # no submission is accepted before the budget is spent
    sealed = replace(sealed, mechanisms=mechanisms[: len(switches) + 1], switches=switches, exposure=exposure)
    return sealed if sealed.p < 1 else replace(sealed, noise_seed=0, draws=())


@lru_cache(maxsize=4096)
def _outcomes_digest(sealed: Sealed, num_objects: int, budget: int, *, edges: bool, graded: bool) -> int | None:
    """Digest the readings of every sequence of moves, and the right answers; None beyond `MAX_PLAYED_STATES`.

    Backwards from the last move, each state gets a hash of its answer and, for every move, its reading and the next
    state. A state is the number of activations counted, whether the last reading was ACTIVE, and which of the rules'
    objects are present.
    """
    rules, switches = [mechanism.rule for mechanism in sealed.mechanisms], sealed.switches
    objects = [i for i in range(num_objects) if any(rule.blickets >> i & 1 for rule in rules)]
    by_steps = sealed.switch_by is SwitchBy.STEPS
    max_count = 0 if by_steps or not switches else switches[-1] + 1
    counts, sets = range(max_count + 1), range(1 << len(objects))
    if len(counts) * len(sets) * (1 + edges) * budget > MAX_PLAYED_STATES:
        return None
    present = [sum(1 << objects[i] for i in range(len(objects)) if local >> i & 1) for local in sets]
    readings = np.array(
        [[rule.active(s) * (1 + graded * (rule.blickets & s).bit_count()) for s in present] for rule in rules]
    )
    answers = [2 * rule.blickets + (rule.form is Form.CONJUNCTIVE) for rule in rules]
    toggled = np.array(sets) ^ (1 << np.arange(len(objects)))[:, None]
    factors = _FACTORS[objects][:, None]
    other_factors = _FACTORS[[i for i in range(num_objects) if i not in objects]].sum(dtype=np.uint64)
    was_active, local = np.arange(1 + edges)[:, None], np.array(sets)

    def advance(moves: int) -> tuple[Any, ...]:
        """Return, given the number of moves before, the reading of a move and the indices of the next state."""
        phases = [sealed.phase(count, moves) for count in counts]
        reading = readings[phases][:, None, :]
        counted = np.minimum(np.array(counts)[:, None, None] + ((reading > 0) & (was_active == 0)), max_count)
        return reading.astype(np.uint64) * _FACTORS[-1], (counted, (reading > 0) * int(edges), local)

    step = advance(0)
    states = np.zeros((len(counts), 1 + edges, len(sets)), np.uint64)
    for moves in range(budget, -1, -1):
        answer_codes = []
        for count in counts:
            is_shown = not sealed.exposure.after_switch or not switches or (moves if by_steps else count) > switches[-1]
            accepted = moves == budget or (moves >= sealed.exposure.moves and is_shown)
            answer_codes.append(2 * answers[sealed.phase(count, moves)] + accepted)
        following = states
        states = np.array(answer_codes, np.uint64)[:, None, None] * _FACTORS[-2] + np.zeros_like(following)
        if moves < budget:
            reading, target = advance(moves) if by_steps else step
            arrived = _mix(following[target] ^ reading)
            states = (
                states + following * _FACTORS[-3] + arrived * other_factors + (arrived[:, :, toggled] * factors).sum(2)
            )
        states = _mix(states)
    if sealed.start_on is None:
        return int(states[0, 0, 0])
    start = present.index(set_of(sealed.start_on) & set_of(objects))
    reading, target = advance(0)
    return int(_mix(states[target] ^ reading)[0, 0, start])


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Mix the bits of words by the finaliser of splitmix64."""
    values = (values ^ values >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ values >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return values ^ values >> np.uint64(31)


@lru_cache(maxsize=4096)  # small strata have few rules: 40 in 5,000 items of easy-3 and hard-3
def _rule_keys(mechanisms: tuple[Mechanism, ...], num_objects: int) -> tuple[bytes, bytes]:
    """Return a key of the rules and one of their graph, each equal up to renaming of objects."""
    structures = (rules_structure(mechanisms, num_objects, with_functions=functions) for functions in (True, False))
    model, graph = map(canonical_key, structures)
    return model, graph


IDENTITY = ItemIdentity(
    "rules",
    duplicate_key,
    lambda item: _rule_keys(item.sealed.mechanisms, item.task.n)[:1],
    lambda item: _rule_keys(item.sealed.mechanisms, item.task.n)[1],
)


SOUNDNESS = Soundness(
    {
        "the condition is that of the mechanism": condition_holds,
        "stated labels are those of the item": labels_hold,
        "the last switch is within the budget": switches_come,
    },
    explain_undecided,
    IDENTITY,
)
