"""The public text game's question runs, attributed: what the explorer's readings decided, and what was answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from audits.attribution import Attribution, FourCounts, Kind, four_counts
from audits.finding import Finding, Standing
from dsl.blickets.reference import ACTIVE, INACTIVE
from dsl.blickets.text_game import TextRun
from solvers.blickets.static import StaticSpace


@dataclass(frozen=True, slots=True)
class PublicRuns:
    """counts: by setting, such as "4 objects, conjunctive"
    runs, truth_kept: how many, and in how many the truth gives every reading
    """

    counts: Mapping[str, FourCounts]
    runs: int
    truth_kept: int

    def findings(self) -> list[Finding]:
        """One for the truth, one for each setting."""
        kept = Standing.PROVED if self.truth_kept == self.runs else Standing.REFUTED
        found = [
            Finding(
                "consistent",
                kept,
                "all runs",
                f"the stated rule gives every reading in {self.truth_kept} of {self.runs} runs",
                {"runs": self.runs, "truth_kept": self.truth_kept},
            )
        ]
        for setting, counts in sorted(self.counts.items()):
            decided, missed = counts.earned + counts.missed, counts.missed
            claim = f"{missed} of {decided} runs whose readings decide the blickets were answered wrong"
            figures = {"earned": counts.earned, "missed": missed, "lucky": counts.lucky, "short": counts.short}
            found.append(Finding("missed", Standing.PROVED if missed else Standing.REFUTED, setting, claim, figures))
        return found


def attributed_runs(runs: Iterable[TextRun]) -> PublicRuns:
    """Counts by setting; `decided` is for the class conjunctive or disjunctive over any set.

    The question is which objects are blickets, so rules of the same set give the same answer.
    """
    kinds: dict[str, list[Kind]] = defaultdict(list)
    kept = 0
    for run in runs:
        space = _space(run)
        kept += space.fits(run.rule)
        sets = {rule.blickets for rule in space.verdicts()}
        kinds[run.setting].append(Attribution(len(sets) == 1, run.right, None, space.count, space.in_words).kind)
    total = sum(len(some) for some in kinds.values())
    return PublicRuns({setting: four_counts(some) for setting, some in kinds.items()}, total, kept)


def _space(run: TextRun) -> StaticSpace:
    space = StaticSpace.full(len(run.objects))
    for placed, active in run.readings():
        space = space.after(placed, ACTIVE if active else INACTIVE)
    return space
