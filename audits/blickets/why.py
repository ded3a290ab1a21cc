"""Why the readings of a detector leave more than one rule, and which toggle tells the rules apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import msgspec

from calibrant.audits.why import (
    AnswerShare,
    Count,
    Experiment,
    Fact,
    Outcome,
    Span,
    State,
    Why,
    experiment,
    listed,
    number_text,
    spans,
)
from calibrant.dsl.blickets.item import BlicketItem, Condition
from calibrant.dsl.blickets.readings import steps_with_state
from calibrant.dsl.blickets.rule import Rule, names_of
from calibrant.dsl.episode import Step
from calibrant.solvers.blickets.families import DetectorSpace, after_step, space_of_condition
from calibrant.solvers.blickets.static import StaticSpace

MAX_ANSWERS = 200  # answers that are listed


class DetectorMove(msgspec.Struct, frozen=True):
    """A move: what was done, objects on the detector after it, reading, hypotheses and answers left."""

    in_words: str
    placed: tuple[str, ...]
    reading: str
    remaining: str
    answers: int


class DetectorWhy(Why, frozen=True, kw_only=True):
    """The reason for a detector after some moves; experiments: every toggle from here, best first.

    pair: two rules that fit, of a class of one rule; witness: objects with which they differ, least of them
    """

    objects: tuple[str, ...]
    moves: tuple[DetectorMove, ...]
    answers: tuple[AnswerShare, ...]
    experiments: tuple[Experiment, ...]
    pair: tuple[str, str] | None = None
    witness: tuple[str, ...] | None = None


def explain(item: BlicketItem, steps: Sequence[Step[str]]) -> DetectorWhy:
    """Return the reason after these moves, from what a solver may read alone.

    The class is what the task states: the detectors of its condition if it is informed, else one rule. So nothing here
    tells the condition of an item that keeps it sealed; readings of a switch or of noise may leave the class empty.
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
    state: State = "empty" if not verdicts else "decided" if len(verdicts) == 1 else "open"
    pair = _pair(space, verdicts[0][0], verdicts[1][0]) if state == "open" else None
    rules = [rule for rule, _ in verdicts]
    decided = tuple(name for i, name in enumerate(task.objects) if len({rule.blickets >> i & 1 for rule in rules}) == 1)
    experiments = _experiments(space, placed, task.objects) if state == "open" else ()
    count = Count(lower=str(space.count), upper=str(space.count), total=str(full))
    words = [rule.in_words(task.objects) for rule in rules]
    witness = None if pair is None else names_of(pair, task.objects)
    return DetectorWhy(
        benchmark="blickets",
        item=item.id,
        title=f"Why is \u201c{item.id}\u201d {'still open' if state == 'open' else 'decided'}?",
        state=state,
        reason=_reason(state, space, words, witness, len(moves)),
        facts=_facts(space, full, words, decided, task.objects, experiments),
        open=tuple(name for name in task.objects if name not in decided),
        decided=decided,
        count=count,
        class_in_words=space.in_words,
        objects=task.objects,
        moves=tuple(moves),
        answers=tuple(AnswerShare(text, str(n)) for text, (_, n) in zip(words, verdicts, strict=True))[:MAX_ANSWERS],
        experiments=experiments,
        pair=(words[0], words[1]) if state == "open" else None,
        witness=witness,
    )


def _pair(space: DetectorSpace, first: Rule, second: Rule) -> int | None:
    """Return the smallest set of objects on which two rules differ, in a class of one rule."""
    if not isinstance(space, StaticSpace):
        return None
    size = (first.blickets | second.blickets).bit_length()
    for number in range(size + 1):
        for chosen in combinations(range(size), number):
            present = sum(1 << i for i in chosen)
            if first.active(present) != second.active(present):
                return present
    return None


def _experiments(space: DetectorSpace, placed: tuple[int, ...], objects: Sequence[str]) -> tuple[Experiment, ...]:
    """Every toggle with its readings, best first; none where readings are not certain under a hypothesis."""
    experiments = []
    for i, name in enumerate(objects):
        after = tuple(k for k in placed if k != i) if i in placed else (*placed, i)
        numbers = space.outcomes(after)
        if sum(numbers.values()) != space.count:
            return ()
        outcomes = [
            Outcome(reading, str(number), len(space.after(after, reading).verdicts()))
            for reading, number in numbers.items()
        ]
        experiments.append(experiment(f"{'remove' if i in placed else 'place'} {name}", outcomes))
    return tuple(sorted(experiments, key=lambda entry: entry.rank))


def _reason(
    state: State, space: DetectorSpace, words: Sequence[str], witness: tuple[str, ...] | None, num_moves: int
) -> tuple[Span, ...]:
    if state == "empty":
        return spans("No hypothesis of the class that the task states gives these readings.")
    if state == "decided":
        return spans("The readings leave one rule: ", (words[0],), ".")
    if not num_moves:
        return spans(f"Nothing was placed yet: {number_text(space.count)} hypotheses fit, with {len(words)} answers.")
    if witness is not None:
        alone = listed(list(witness)) + (" alone" if len(witness) == 1 else " and nothing else")
        fit = "Two rules fit" if len(words) == 2 else f"{number_text(space.count)} rules fit"
        return spans(
            "The detector was never read with ", (alone,), f" on it: {fit}, {words[0]} or {words[1]} among them."
        )
    return spans(
        f"{number_text(space.count)} hypotheses give these readings, with ", (f"{len(words)} answers",), " among them."
    )


def _facts(
    space: DetectorSpace,
    full: int,
    words: Sequence[str],
    decided: Sequence[str],
    objects: Sequence[str],
    experiments: Sequence[Experiment],
) -> tuple[Fact, ...]:
    tone = "good" if len(words) == 1 else "warn" if words else "bad"
    facts = [Fact(f"{number_text(space.count)} of {number_text(full)} hypotheses fit", tone)]  # type: ignore[arg-type]
    facts.append(Fact(f"{len(words)} answer{'s' * (len(words) != 1)}"))
    if 0 < len(decided) < len(objects):
        facts.append(Fact(f"the same in all: {listed(list(decided))}"))
    facts.append(Fact(space.in_words))
    if experiments:
        facts.append(Fact("1 move decides" if experiments[0].decides else "no single move is sure to decide"))
    return tuple(facts)
