"""Why the readings of a detector leave more than one rule: the data of a page, and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import msgspec

from calibrant.audits import why
from calibrant.dsl.blickets.episode import BlicketEpisode, steps_with_state
from calibrant.dsl.blickets.item import BlicketItem, Condition, Mechanism, Rule, Sealed, all_rules, names_of, set_of
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE
from calibrant.dsl.episode import Step
from calibrant.dsl.text import plural
from calibrant.solvers.blickets.exact import DetectorSpace, after_step, space_of_condition
from calibrant.solvers.blickets.learner import Static, conclude_episode
from calibrant.solvers.blickets.space import OneRule, StaticSpace
from calibrant.solvers.outcome import Found

# --- The parts of the reason for a detector ---------------------------------------------------------------------------


class DetectorMove(msgspec.Struct, frozen=True):
    """A move: what was done, objects on the detector after it, reading, hypotheses and answers left."""

    in_words: str
    placed: tuple[str, ...]
    reading: str
    remaining: str
    answers: int


class RuleChip(msgspec.Struct, frozen=True):
    """A rule of the class; `fits`: consistent with every reading; `is_true`: a rule of gold, if gold is revealed."""

    form: str
    blickets: tuple[str, ...]
    fits: bool
    is_true: bool = False


class DetectorWhy(why.Why, frozen=True, kw_only=True):
    """The reason for a detector after some moves.

    experiments: every possible next toggle, best first; budget: number of moves allowed
    rules: every rule if the class is one rule throughout, else ()
    learner_moves: least and most moves of an exact learner over all rules of such a class; None after the first move
    is_stated: whether the task states the condition; if not, `run exact` considers all conditions
    pair: two rules that fit; witness: a smallest set of objects on which they differ, None for other classes
    """

    objects: tuple[str, ...]
    moves: tuple[DetectorMove, ...]
    answers: tuple[why.AnswerShare, ...]
    experiments: tuple[why.Experiment, ...]
    budget: int
    rules: tuple[RuleChip, ...] = ()
    learner_moves: tuple[int, int] | None = None
    is_stated: bool = False
    pair: tuple[str, str] | None = None
    witness: tuple[str, ...] | None = None


# --- Reason and facts of a detector in words --------------------------------------------------------------------------


def reason(
    state: why.State, space: DetectorSpace, words: Sequence[str], witness: tuple[str, ...] | None, num_moves: int
) -> tuple[why.Span, ...]:
    if state == "empty":
        return why.spans("No hypothesis of the class that the task states gives these readings.")
    if state == "decided":
        return why.spans("The readings leave one rule: ", (words[0],), ".")
    if not num_moves:
        num_fitting = why.number_text(space.count)
        return why.spans(f"Nothing was placed yet: {num_fitting} hypotheses fit, with {plural(len(words), 'answers')}.")
    if witness is not None:
        alone = why.listed(list(witness)) + (" alone" if len(witness) == 1 else " and nothing else")
        if len(words) == 2:
            fit = f"Two rules fit, {words[0]} and {words[1]}."
        else:
            fit = f"{why.number_text(space.count)} rules fit, {words[0]} and {words[1]} among them."
        return why.spans("The detector was never read with ", (alone,), f" on it. {fit}")
    return why.spans(
        f"{why.number_text(space.count)} hypotheses give these readings, with ",
        (plural(len(words), "answers"),),
        " among them.",
    )


def facts(
    space: DetectorSpace,
    full: int,
    words: Sequence[str],
    decided: Sequence[str],
    objects: Sequence[str],
    experiments: Sequence[why.Experiment],
) -> tuple[why.Fact, ...]:
    tone = "good" if len(words) == 1 else "warn" if words else "bad"
    listed_facts = [why.Fact(f"{why.number_text(space.count)} of {why.number_text(full)} hypotheses fit", tone)]  # type: ignore[arg-type]
    listed_facts.append(why.Fact(plural(len(words), "answers")))
    if 0 < len(decided) < len(objects):
        listed_facts.append(why.Fact(f"the same in all: {why.listed(list(decided))}"))
    listed_facts.append(why.Fact(space.in_words))
    if experiments:
        listed_facts.append(
            why.Fact("1 move decides" if experiments[0].decides else "no single move is sure to decide")
        )
    return tuple(listed_facts)


# --- Why the readings of a detector leave more than one rule, and which toggle tells the rules apart ------------------
MAX_ANSWERS = 200  # answers that are listed
TITLES = {
    "open": "Why is \u201c{}\u201d still open?",
    "uncounted": "Why is \u201c{}\u201d still open?",
    "decided": "Which rule does \u201c{}\u201d follow?",
    "empty": "Why is \u201c{}\u201d contradictory?",
}
MAX_PLAYED_OBJECTS = 6  # the exact learner plays every rule: 120 for 6 objects


def explain(item: BlicketItem, steps: Sequence[Step[str]], *, reveal_sealed: bool = False) -> DetectorWhy:
    """Return the reason after these moves; the sealed part is read only with `reveal_sealed`.

    The class is that of the condition that the task states, else one rule throughout. So the reason never reveals a
    sealed condition, and the readings of a switching or noisy detector may leave the class empty.
    """
    task = item.task
    space = space_of_condition(task, task.condition or Condition.CONJUNCTIVE)
    full, moves = space.count, []
    placed: tuple[int, ...] = ()
    for placed, step in steps_with_state(task, steps):
        space = after_step(space, placed, step)
        names = tuple(task.objects[i] for i in placed)
        done = " ".join(map(str, next(iter(step.action.items()), ("", ""))))
        moves.append(DetectorMove(done, names, step.reading or "", str(space.count), len(space.verdicts())))
    verdicts = sorted(space.verdicts().items(), key=lambda pair: (-pair[1], str(pair[0])))
    state: why.State = "empty" if not verdicts else "decided" if len(verdicts) == 1 else "open"
    pair = _pair(space, verdicts[0][0], verdicts[1][0]) if state == "open" else None
    rules = [rule for rule, _ in verdicts]
    decided = tuple(name for i, name in enumerate(task.objects) if len({rule.blickets >> i & 1 for rule in rules}) == 1)
    truth = item.sealed if reveal_sealed else None
    true_rules = [mechanism.rule.canonical for mechanism in truth.mechanisms] if truth else []
    experiments = _experiments(space, placed, task.objects, truth) if state == "open" else ()
    count = why.Count(lower=str(space.count), upper=str(space.count), total=str(full))
    words = [rule.in_words(task.objects) for rule in rules]
    witness = None if pair is None else names_of(pair, task.objects)
    return DetectorWhy(
        benchmark="blickets",
        item=item.id,
        title=TITLES[state].format(item.id),
        state=state,
        reason=reason(state, space, words, witness, len(moves)),
        facts=facts(space, full, words, decided, task.objects, experiments),
        open=tuple(name for name in task.objects if name not in decided),
        decided=decided,
        count=count,
        class_in_words=space.in_words,
        objects=task.objects,
        moves=tuple(moves),
        answers=tuple(why.AnswerShare(text, str(n)) for text, (_, n) in zip(words, verdicts, strict=True))[
            :MAX_ANSWERS
        ],
        experiments=experiments,
        budget=task.budget,
        rules=tuple(_rules(space, task.objects, true_rules)),
        is_stated=task.condition is not None,
        learner_moves=_learner_moves(item) if not moves and isinstance(space, StaticSpace) else None,
        sealed=tuple(why.Fact(f"true rule: {rule.in_words(task.objects)}", "gold") for rule in true_rules),
        pair=(words[0], words[1]) if state == "open" else None,
        witness=witness,
    )


def _pair(space: DetectorSpace, first: Rule, second: Rule) -> int | None:
    """Return the smallest set of objects on which two rules differ, in a class of one rule."""
    if not isinstance(space, StaticSpace):
        return None
    size = (first.blickets | second.blickets).bit_length()
    for num_chosen in range(size + 1):
        for chosen in combinations(range(size), num_chosen):
            present = sum(1 << i for i in chosen)
            if first.active(present) != second.active(present):
                return present
    return None


def _rules(space: DetectorSpace, objects: Sequence[str], true_rules: Sequence[Rule]) -> Iterator[RuleChip]:
    """Yield every rule, those of one object first, if the class is one rule throughout; else nothing."""
    if not isinstance(space, OneRule):
        return
    for rule in sorted(all_rules(space.n), key=lambda r: (r.blickets.bit_count() > 1, r.form, r.blickets.bit_count())):
        yield RuleChip(str(rule.form), names_of(rule.blickets, objects), space.fits(rule), rule in true_rules)


def _learner_moves(item: BlicketItem) -> tuple[int, int] | None:
    """Return the least and the most moves of an exact learner over all rules of the class; None for many objects."""
    if item.task.n > MAX_PLAYED_OBJECTS:
        return None
    num_moves = []
    for rule in all_rules(item.task.n):
        episode = BlicketEpisode(replace(item, sealed=Sealed((Mechanism(rule),))))
        if not isinstance(conclude_episode(episode, Static).outcome, Found):
            return None
        num_moves.append(item.task.budget - episode.left)
    return min(num_moves), max(num_moves)


def _experiments(
    space: DetectorSpace, placed: tuple[int, ...], objects: Sequence[str], truth: Sealed | None
) -> tuple[why.Experiment, ...]:
    """Return every toggle with its readings, best first; none if a hypothesis does not determine the reading.

    truth: the sealed detector, if it is revealed; its next reading is known only if it never switches
    """
    experiments = []
    for i, name in enumerate(objects):
        after = tuple(k for k in placed if k != i) if i in placed else (*placed, i)
        counts = space.outcomes(after)
        if sum(counts.values()) != space.count:
            return ()
        outcomes = [
            why.Outcome(reading, str(count), len(space.after(after, reading).verdicts()))
            for reading, count in counts.items()
        ]
        remaining = None
        if truth is not None and len(truth.mechanisms) == 1 and isinstance(space, StaticSpace):
            active = truth.mechanisms[0].rule.active(set_of(after))
            remaining = str(counts.get(ACTIVE if active else INACTIVE, 0))
        experiments.append(why.experiment(f"{'remove' if i in placed else 'place'} {name}", outcomes, remaining))
    return tuple(sorted(experiments, key=lambda entry: entry.rank))
