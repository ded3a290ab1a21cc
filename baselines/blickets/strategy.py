"""The habits that the agents of the grid combine."""

from __future__ import annotations

from enum import StrEnum


class ExplorationStrategy(StrEnum):
    """Rule for the object toggled while more than one blicket rule is consistent."""

    RANDOM = "random"  # any
    SCRIPT = "script"  # those of the next group: every single object, every pair, every triple, from an empty detector
    GREEDY = "greedy"  # towards the configuration that is expected to tell most per move


class Revise(StrEnum):
    """Reaction to a reading that no rule explains together with the earlier readings."""

    NONE = "none"  # the reading is ignored
    SUFFIX = "suffix"  # the readings before it are forgotten
    DB = "db"  # it is ignored until a dynamic behaviour fires, which says what to believe instead


class Stop(StrEnum):
    """When the answer is submitted."""

    RESOLVE = "resolve"  # one rule is left
    CONFIRM = "confirm"  # and the detector was ACTIVE so many times more
    SILENT = "silent"  # and a switch is ruled out by probes that cannot trigger one; a disjunctive rule has none
