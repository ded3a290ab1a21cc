"""The keywords of the public functions, for type checkers: names and plain types.

Ranges, meanings and defaults are declared in `bench/<benchmark>/options.py`; a test holds the two equal.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class Scoring(TypedDict, total=False):
    """Options of `score`.

    extractor: rule that reads a response: the paper's, the published one, or the lenient reader
    thoughts: what of a text is thoughts, and no answer
    """

    extractor: Literal["paper", "published", "lenient"]
    thoughts: Literal["strip", "opened", "keep"]


class Solving(TypedDict, total=False):
    """Options of `solve`.

    max_parents: how many variables a mechanism may mention; nested_roots: only root sets with nested columns
    states: a budget, None without a limit
    engine: what chooses parent sets: dynamic programming over subsets, MaxSAT, SMT, or an integer program (extra
        `large`); `auto` takes what is fastest; seconds: of the clock, for the integer program
    assume: lines that the SCM has to satisfy (docs/engines.md)
    """

    max_parents: int | None
    nested_roots: bool | None
    states: int | None
    engine: Literal["auto", "subset_dp", "sat", "smt", "integer_program"]
    seconds: float | None
    assume: str | None


class Counting(TypedDict, total=False):
    """Options of `version_space`.

    max_parents: functional parents of a mechanism; max_size: of its formula; nested_roots: as for solving
    terms: of a sum, at most
    """

    max_parents: int
    max_size: int | None
    nested_roots: bool
    terms: int | None


class CountingDetectors(TypedDict, total=False):
    """Options of `version_space` for extended blickets.

    family: `condition`: detectors of the item's condition; `told`: of the condition that its task states, if it does
    """

    family: Literal["condition", "told"]


class CountingLabs(TypedDict, total=False):
    """Options of `version_space` for CausaLab.

    bounded: bases are taken to be integers from 0 to 100, as the benchmark draws them
    """

    bounded: bool


class Talking(TypedDict, total=False):
    """Options of `text_episode` for ReplaySCM; thoughts: what of a reply is thoughts, in which no action is read."""

    thoughts: Literal["strip", "opened", "keep"]


class TalkingToDetectors(TypedDict, total=False):
    """Options of `text_episode` for extended blickets.

    prompting: the paper's prompt; actions: whether moves are listed by number
    """

    prompting: Literal["base", "cg", "cg+db"]
    actions: Literal["named", "numbered"]
    thoughts: Literal["strip", "opened", "keep"]


class TalkingToLabs(TypedDict, total=False):
    """Options of `text_episode` for CausaLab.

    schema: whether a hypothesis has to follow the paper's; verify: whether an answer that misses readings comes back
    aid: `none`, `members` or a file of released configs; carry: whether the last notebook is repeated
    """

    schema: Literal["free", "paper"]
    verify: Literal["never", "once"]
    aid: str
    carry: bool
    thoughts: Literal["strip", "opened", "keep"]


class Auditing(TypedDict, total=False):
    """Options of `audit`.

    max_parents: the class that the verdict is about; nested_roots: as for solving
    """

    max_parents: int | None
    nested_roots: bool


class Separating(TypedDict, total=False):
    """Options of `separate`.

    members: how many of the smallest are compared; max_parents: their class; targets: variables set at once
    """

    members: int
    max_parents: int
    targets: int


class HardeningOptions(TypedDict, total=False):
    """Options of `harden`.

    goal: one member remains, all that remain replay the held-out worlds, or searches discover no alternative
    max_parents: the class that is counted; searches: methods that no-discovered asks; seeds: runs of each with a seed
    """

    goal: Literal["one-member", "heldout-agreement", "no-discovered"]
    max_parents: int | None
    searches: str
    seeds: int


class Generating(TypedDict, total=False):
    """Options of `generate` for ReplaySCM.

    stratum: kind of SCM and worlds; setting: what is disclosed; max_added: worlds against local alternatives
    """

    stratum: str
    setting: Literal["ordered", "block", "hidden-order", "hidden-roots"]
    max_added: int | None


class Drawing(TypedDict, total=False):
    """Options of `generate` for the other benchmarks.

    suite: what the item is drawn from, by default the benchmark's first
    """

    suite: str | None
