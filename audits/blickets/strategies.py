"""Strategies that the score rewards: an answer before the switch, and a convention of counting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from calibrant.audits.blickets.evidence import evidence_of
from calibrant.audits.claims import ClaimStatus, Finding, certify
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.item import BlicketItem, Count
from calibrant.dsl.blickets.reference import is_active
from calibrant.dsl.blickets.rule import Form, Rule, set_of
from calibrant.dsl.blickets.score import Grade, Split, grade
from calibrant.dsl.episode import Action, Step
from calibrant.solvers.blickets.learner import Static, conclude_episode

TRANSCRIPT = "this sequence of moves"


def quiet(episode: BlicketEpisode) -> None:
    """Try single objects and pairs until the first activation, and submit what activated.

    A pair that activates although neither of its objects did is the whole of a conjunctive rule, so one activation is
    enough for the kind of rule that the paper switches from. Without an activation nothing is submitted.
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
    """Yield whether one activation and an early answer get full marks on an item that switches.

    Proved by the moves of `quiet`, which anybody can replay; without such moves the claim stays open.
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
    """Yield whether the convention of counting activations decides the verdict on the static learner."""
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
