"""Plans: the items and pages of questions of a participant, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from calibrant.bench.play.pool import ItemKey, PlayPool

Feedback: TypeAlias = Literal["none", "cells"]
START = ItemKey("", "start")
AID = "aid"  # in conditions, and in the opening of an item
MEMBERS = "members"  # the one aid that is no file
QUESTIONS = "questions:"  # before the name of a page of questions, in journals


@dataclass(frozen=True)
class ItemStop:
    """An item to play."""

    key: ItemKey


@dataclass(frozen=True)
class QuestionsStop:
    """A page of questions. name: unique in the plan; questions: as `study.toml` has them, checked."""

    name: str
    title: str
    questions: Sequence[Mapping[str, Any]]

    @property
    def key(self) -> ItemKey:
        """The key under which its answers are in the journal."""
        return ItemKey("", f"{QUESTIONS}{self.name}")


Stop: TypeAlias = ItemStop | QuestionsStop


@dataclass(frozen=True)
class Terms:
    """Terms that hold for all participants.

    title: of the study, or the pool; consent: text that has to be agreed to; empty asks for none
    feedback: cells shows which cells formulas fit while they are typed; reveal: the verdict is shown when an item ends
    aid: what is shown after each reading; the path is a file, or the name of an aid
    minutes: that it takes, as the study states them; 0 where it states none
    """

    title: str
    consent: str = ""
    feedback: Feedback = "none"
    reveal: bool = True
    aid: Path | None = None
    minutes: int = 0


@dataclass(frozen=True)
class Practice:
    """Items to try before the start: nothing of them is recorded, and each verdict is shown. pools: those of the stops.

    The pools are not those of the study: both may be read at the same time.
    """

    pools: Sequence[PlayPool]
    stops: Sequence[Stop]


def aid_config(aid: Path | None) -> dict[str, str]:
    """Return the part of the conditions in records that names the aid; empty without one."""
    return {} if aid is None else {AID: aid.name}


def pool_plan(pool: PlayPool, instance: str | None) -> tuple[Stop, ...]:
    """Return the plan of one pool: one item, or all in their order."""
    if instance is not None:
        return (ItemStop(pool.key(instance)),)
    return tuple(ItemStop(ItemKey(pool.digest, name)) for name in pool.indices)
