"""The generator's pools beside those of the published generator, stratum by stratum, and drifts that are noticed.

Tolerances: a figure of a stratum may differ by 4 standard errors of the difference of two means (15 generated
instances, 30 in a soak, against 10 or 12 of the shared pools), a figure over all strata by 4 of its own, a third
as much. A difference exceeds 4 by chance six times in 10,000 (23 degrees of freedom; in a soak three times, 38), one of
the 216 looked at once in 8 or 16 sets; instances have fixed seeds.
Figures of local patterns get a margin of 0.02 on top: the published stage for them counts three patterns of eight
(audits.replayscm.coverage), so its worlds show fewer. Compared are instances without worlds of targeted
disambiguation, which the shared pools do not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import sqrt
from statistics import fmean, variance

import pytest

from calibrant.audits.replayscm.generation.generate import generate
from calibrant.audits.replayscm.generation.plans import plan_for
from calibrant.dsl.replayscm.generation.strata import STRATA, Stratum, stratum
from calibrant.dsl.replayscm.item import Problem
from tests.support.effort import effort
from tests.support.replayscm.generator_profile import Distance, distances, figures, fixed
from tests.support.replayscm.pools import dev_problems
from tests.support.shared import shared_json

NUM_GENERATED = effort(15, 30)
NUM_DRIFTED = effort(10, 20)
ERRORS = 4
MARGINS = dict.fromkeys(
    ("local patterns seen", "patterns of a gold parent set seen", "patterns of a window seen"), 0.02
)
NAMES = [s.name for s in STRATA]
Figures = dict[str, float]


def published(name: str) -> tuple[Problem, ...]:
    return tuple(p for pool in ("hidden_order", "t1_hidden_order") for p in dev_problems(pool) if p.stratum == name)


@cache
def drawn(known: Stratum, number: int) -> tuple[Problem, ...]:
    return tuple(generate(known, seed, max_added=0, plan=plan_for(known)).problem for seed in range(number))


@cache
def generated_figures(name: str) -> list[Figures]:
    known = stratum(name)
    return [figures(problem, shortcut_floor=known.shortcut_floor) for problem in drawn(known, NUM_GENERATED)]


@cache
def published_figures(name: str) -> list[Figures]:
    return [figures(problem, shortcut_floor=stratum(name).shortcut_floor) for problem in published(name)]


def beyond(found: Sequence[Distance]) -> dict[str, tuple[float, float, float]]:
    """Return the figures that are out of tolerance, with both means and the difference in standard errors."""
    return {
        d.figure: (d.ours, d.theirs, d.errors)
        for d in found
        if abs(d.ours - d.theirs) > ERRORS * d.spread + MARGINS.get(d.figure, 0)
    }


def over_all(by_stratum: Sequence[Sequence[Distance]]) -> list[Distance]:
    """Means over strata with the standard error of their difference."""
    return [
        Distance(
            same[0].figure,
            fmean(d.ours for d in same),
            fmean(d.theirs for d in same),
            sqrt(sum(d.spread**2 for d in same)) / len(same),
        )
        for same in zip(*by_stratum, strict=True)
    ]


def against_mean(figure: str, ours: Sequence[float], mean: float, number: int) -> Distance:
    """Against a published mean of so many instances, which are taken to vary as much as ours."""
    return Distance(figure, fmean(ours), mean, sqrt(variance(ours) * (1 / len(ours) + 1 / number)))


@pytest.mark.parametrize("name", NAMES)
def test_what_the_configuration_fixes_is_equal(name: str) -> None:
    expected = fixed(published(name)[0])
    assert expected["training worlds"] == 8
    for problem in (*published(name), *drawn(stratum(name), NUM_GENERATED)):
        assert fixed(problem) == expected


@pytest.mark.parametrize("name", NAMES)
def test_a_stratum_resembles_the_shared_pool(name: str) -> None:
    assert beyond(distances(generated_figures(name), published_figures(name))) == {}


def test_all_strata_together_resemble_the_shared_pools() -> None:
    found = over_all([distances(generated_figures(name), published_figures(name)) for name in NAMES])
    assert len(found) == 24
    assert beyond(found) == {}


@pytest.mark.parametrize("name", NAMES)
def test_a_stratum_resembles_the_larger_samples_of_the_statistics_file(name: str) -> None:
    """generator_stats.json sums up 22 to 49 instances of each stratum; the shared pools hold 10 or 12 of them."""
    known = shared_json("generator_stats.json")[name]
    number, rows = known["problems"], generated_figures(name)
    modes = known["trainWorldModes"]
    parents = sum(int(count) * times for count, times in known["parentCounts"].items()) / known["mechanisms"]
    size = sum(int(size) * times for size, times in known["goldAstHistogram"].items()) / known["mechanisms"]
    expected = {
        "training share hard_assigned": modes["hard_assigned"] / (modes["hard_assigned"] + modes["hard_constant"]),
        "parents": parents,
        "formula size": size,
        "share of exclusive or of two": known["xor2Share"],
        "patterns of a gold parent set seen": known["meanGoldParentPatternCoverageTrain"],
        "patterns of a window seen": known["meanWindowPatternCoverageTrain"],
        "variables nested like roots": known["nestingTest"]["meanVariablesPassing"],
    }
    found = [against_mean(figure, [row[figure] for row in rows], mean, number) for figure, mean in expected.items()]
    assert beyond(found) == {}


# drifts

STRICT, BRIDGE = stratum("vhs_n9_dense_strict"), stratum("hs_n8_bridge")
DRIFTS = {
    "modes": (replace(STRICT, assigned_probability=0.5), "held-out share hard_assigned"),
    "few targets": (replace(STRICT, target_probabilities=(0.4, 0.4, 0.2)), "held-out targets"),
    "sizes": (replace(STRICT, sizes=(6, 11)), "share of exclusive or of two"),
    "window": (replace(STRICT, max_parents=3), "parents"),
    "rows": (replace(STRICT, num_units=33), "patterns of a window seen"),
    "shortcuts": (replace(BRIDGE, max_survivors=5, shortcut_floor=6), "variables with a shortcut"),
    "variables": (replace(BRIDGE, num_variables=6), "consistent SCMs of at most 5 parents, log10"),
}


@pytest.mark.soak
@pytest.mark.parametrize("drift", list(DRIFTS)[:: effort(3, 1)])
def test_a_drift_of_one_stratum_is_noticed(drift: str) -> None:
    """One of each kind: of interventions, of windows, of sizes of problems; all seven in a soak."""
    wrong, figure = DRIFTS[drift]
    rows = [figures(problem) for problem in drawn(wrong, NUM_DRIFTED)]
    assert figure in beyond(distances(rows, published_figures(wrong.name)))


@pytest.mark.parametrize("field", ["num_variables", "num_units", "max_parents"])
def test_a_drift_of_what_is_fixed_is_noticed_in_one_instance(field: str) -> None:
    wrong = replace(STRICT, **{field: getattr(STRICT, field) - 1})
    assert fixed(drawn(wrong, 1)[0]) != fixed(published(STRICT.name)[0])


def test_a_small_drift_of_all_strata_is_noticed() -> None:
    """Twelve points fewer hard_assigned worlds: within the tolerance of nearly every stratum, not of all together."""
    by_stratum, noticed = [], 0
    figure = "held-out share hard_assigned"
    for name in NAMES:
        rows = [{figure: row[figure] - 0.12} for row in generated_figures(name)]
        by_stratum.append(distances(rows, [{figure: row[figure]} for row in published_figures(name)]))
        noticed += bool(beyond(by_stratum[-1]))
    assert noticed <= 1
    assert figure in beyond(over_all(by_stratum))


def test_figures_that_are_counted_by_hand() -> None:
    """Of one shared instance, counted from its worlds with plain loops."""
    problem = published("vhs_n8_dense")[0]
    gold, found = problem.sealed.gold, figures(problem)
    assert gold is not None
    training = [world.intervention for world in problem.task.training.worlds[1:]]
    assert found["training share hard_assigned"] == sum(i.mode == "hard_assigned" for i in training) / 7
    assert found["training share with four targets"] == sum(len(i.targets) == 4 for i in training) / 7
    scored = [1 + sum(v not in i.targets for i in training) for v in gold.endogenous]
    assert found["scored training worlds"] == sum(scored) / 5
    assert found["least scored training worlds"] == min(scored)
    assert found["formula size"] == gold.size / 5
    for figure, parents in (("patterns of a gold parent set seen", True), ("patterns of a window seen", False)):
        shares = []
        for variable, formula in gold.mechanisms.items():
            slot = problem.sealed.latent_order.index(variable)
            causes = formula.variables if parents else problem.sealed.latent_order[max(0, slot - 5) : slot]
            worlds = [w for w in problem.task.training.worlds if variable not in w.intervention.targets]
            patterns = {tuple(row[u] for u in causes) for world in worlds for row in world.rows()}
            shares.append(len(patterns) / 2 ** len(causes))
        assert found[figure] == pytest.approx(sum(shares) / 5)
