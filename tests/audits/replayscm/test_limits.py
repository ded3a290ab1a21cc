"""What bounds an audit's work: at each limit nothing is missing, just under it the findings say what is."""

from __future__ import annotations

import pytest

from calibrant.audits.replayscm import ambiguity, ceiling, items
from calibrant.audits.replayscm.findings import Findings
from calibrant.audits.replayscm.items import AuditOptions, audit_instance
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.replayscm.gold_problems import SETTINGS, Shape, gold_problem

CLASS = 4  # parents; of these problems all variables
KNOWN, HIDDEN = SETTINGS[2:]


def open_problem(setting: str = KNOWN) -> Problem:
    """Of two roots and three others, with ceilings that take several counts."""
    return gold_problem(9, setting, Shape(roots=2, endogenous=3, units=3, training=2))


def audited(problem: Problem) -> Findings:
    return audit_instance(problem, AuditOptions(CLASS, (CLASS,)))


def weighed(problem: Problem, max_size: int | None = None) -> int:
    """Parent sets with a member, of all variables."""
    space = VersionSpace(problem.task, ModelClass(CLASS, max_size))
    return sum(len(space.local(v).masks) for v in space.index.values())


@pytest.mark.parametrize("under", [0, 1])
def test_classes_of_many_parent_sets(under: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four candidates a variable, so 16 sets of each of the three with parents, and of the roots none but their own."""
    problem = open_problem()
    whole = audited(problem)
    number = sum(2 ** len(problem.task.disclosure.admissible_parents(v)) for v in problem.task.variables)
    for module in (ambiguity, items):
        monkeypatch.setattr(module, "MAX_SETS", number - under)
    found = audited(problem)
    wide = [one for one in whole.capped if one.max_parents == 6]
    assert wide
    assert found.capped == [one for one in whole.capped if not under or one not in wide]
    lines = [f"{number:,} parent sets; at most {number - 1:,} are gone through"] if under else []
    assert [found.left_out.get(f"k <= 6, size <= {one.max_size}") for one in wide if under] == lines * len(wide)
    assert set(found.left_out) - set(whole.left_out) == {f"k <= 6, size <= {one.max_size}" for one in wide if under}


@pytest.mark.parametrize("under", [0, 1])
@pytest.mark.parametrize(("setting", "truths"), [(KNOWN, items.SPLIT_DRAWS), (HIDDEN, 1)])
def test_worlds_that_are_compared(setting: str, truths: int, under: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = open_problem(setting)
    worlds = 3 * 5 + items.SPLIT_CANDIDATES
    work = worlds * truths * weighed(problem) * 5
    monkeypatch.setattr(items, "SPLIT_WORK", work - under)
    found = audited(problem)
    assert found.split
    assert found.split.candidates == worlds - under
    line = found.left_out.get("split by other worlds")
    assert (line is None) == (not under)
    if line is not None:
        assert line.startswith(f"{worlds - 1} of {worlds} worlds compared: ")
        assert line.endswith(f"is at most {work - 1:,}")


@pytest.mark.parametrize(("place", "part", "cost"), [(0, "ceiling", 1), (1, "ceiling by size", items.SIZED_SETS)])
def test_counts_of_a_ceiling(place: int, part: str, cost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = open_problem()
    whole = audited(problem)
    full = whole.ceilings[place]
    assert full.exact
    assert 1 < full.counts < items.CEILING_COUNTS
    each = weighed(problem, 15 if place else None) * cost
    for counts in (full.counts, full.counts - 2):  # the last count of a proof can be what was left of the weights
        monkeypatch.setattr(items, "CEILING_SETS", counts * each)
        found = audited(problem)
        enough, narrower = counts == full.counts, found.left_out.get(f"{part}, narrower")
        assert (found.ceilings[place].exact, narrower is None) == (enough, enough)
        assert found.ceilings[place].lower <= full.lower <= found.ceilings[place].upper
        assert enough or str(narrower) == (
            f"{counts} of {items.CEILING_COUNTS} exact counts made: at most {counts * each:,} parent sets are weighed"
        )


@pytest.mark.parametrize(("place", "part"), [(0, "ceiling"), (1, "ceiling by size")])
def test_most_counts_of_a_ceiling(place: int, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = open_problem()
    full = audited(problem).ceilings[place]
    for counts in (full.counts, full.counts - 2):
        monkeypatch.setattr(items, "CEILING_COUNTS", counts)
        found = audited(problem)
        enough = counts == full.counts
        assert found.ceilings[place].exact == enough
        assert found.ceilings[place].lower <= full.lower <= found.ceilings[place].upper
        said = None if enough else f"at most {counts} exact counts are made"
        assert found.left_out.get(f"{part}, narrower") == said


def test_counts_of_a_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """One count less than it takes leaves an interval; of seven members."""
    problem = gold_problem(0, KNOWN, Shape(roots=1, endogenous=2, units=3, training=2))
    whole, exact = audited(problem).split, []
    assert whole
    for most in range(1, items.SPLIT_COUNTS + 1):
        monkeypatch.setattr(items, "SPLIT_COUNTS", most)
        found = audited(problem)
        assert found.split
        assert found.split.removed
        assert whole.removed
        low, high = found.split.removed
        assert low <= whole.removed[0] == whole.removed[1] <= high
        exact.append(low == high)
        said = None if low == high else f"at most {most} exact counts are made"
        assert found.left_out.get("split, narrower") == said
    assert exact == sorted(exact)
    assert set(exact) == {False, True}


@pytest.mark.parametrize("setting", [KNOWN, HIDDEN])
def test_root_assignments_of_a_world(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two roots have four."""
    for most in (4, 3):
        monkeypatch.setattr(items, "MAX_CONTEXTS", most)
        found = audited(open_problem(setting))
        assert found.split
        assert len(found.split.rows) <= most
        said = "3 of 4 root assignments drawn for each world: none shows more" if most < 4 else None
        assert found.left_out.get("split by worlds of more rows") == said


def test_descents(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = open_problem()
    cost = weighed(problem) * problem.sealed.heldout.num_rows
    for most in (cost, cost - 1):
        monkeypatch.setattr(items, "CEILING_SETS", 1)
        monkeypatch.setattr(ceiling, "MAX_DESCENT", most)
        monkeypatch.setattr(items, "MAX_DESCENT", most)
        line = audited(problem).left_out["ceiling, narrower"]
        said = f"no heavier class looked for by descent: {cost:,} parent sets times held-out rows, at most {most:,}"
        assert line.split("; ")[1:] == ([said] if most < cost else [])


def test_roots_of_survivors(monkeypatch: pytest.MonkeyPatch) -> None:
    for most in (2, 1):
        monkeypatch.setattr(items, "MAX_ROOTS", most)
        found = audited(open_problem())
        assert (found.survivors is not None) == (most == 2)
        said = {"survivors": "2 roots: experiments are simulated for at most 1"} if most == 1 else {}
        assert {part: why for part, why in found.left_out.items() if part == "survivors"} == said
