"""The strata of the benchmark: configurations of its generator, as far as the sampler uses them.

Source: the eight named configurations of the published generator (version 0.3.0), and as ninth the stratum of the two
official sample records. Every record stores its configuration under `knobs`; a test compares. Paper: Tables B.1, B.2.

Further strata, of 12 to 40 variables, are not published: the rules of `vhs_n10_anchor_m10` for more variables and
worlds. The number of worlds grows so that a variable is as often a target as among ten variables: with eight worlds of
at most three targets, most mechanisms of forty variables would keep a shortcut.

A shortcut is a formula shorter than the mechanism that fits the training rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from calibrant.dsl.text import known_names

NUM_ROOTS = 3
NUM_WORLDS = 8  # training worlds, and as many held-out worlds, of the published strata
SHORTCUT_CAP = 5  # largest size of a shortcut, in formula nodes
ENVIRONMENT_LEVELS = (0.2, 0.35, 0.5, 0.65, 0.8)
BASELINE_LEVEL = 0.5  # level of every root in the first training world, which has no intervention
MAX_TARGETS = 3  # targets of an intervention (paper, Table B.1)
ASSIGNMENT_BIASES = (0.3, 0.5, 0.7)  # chance of a 1 in the cells of a hard_assigned world


@dataclass(frozen=True, slots=True)
class RequiredExposure:
    """Minimum numbers of worlds; 0 in the named configurations.

    scored_training, scored_heldout: for each endogenous variable, worlds in which it is no target
    assigned, constant: training worlds of mode hard_assigned and hard_constant
    """

    scored_training: int = 0
    scored_heldout: int = 0
    assigned: int = 0
    constant: int = 0


@dataclass(frozen=True, slots=True)
class Stratum:
    """One configuration.

    num_variables: roots and endogenous variables together
    num_units: rows of every world
    max_parents: largest number of parents; also the window, the number of last predecessors that are candidates
    sizes: smallest and largest size of a mechanism, except the fallback, which has size 3
    target_probabilities: of 1, 2 and 3 intervention targets
    assigned_probability: of mode hard_assigned; hard_constant otherwise
    max_survivors: largest number of variables that may keep a shortcut
    shortcut_floor: mechanisms whose shortcuts would be smaller than this are not checked
    num_worlds: number of training worlds, and of held-out worlds
    """

    name: str
    difficulty: str
    num_variables: int
    num_units: int
    max_parents: int
    sizes: tuple[int, int]
    target_probabilities: tuple[float, float, float]
    assigned_probability: float
    max_survivors: int = 0
    shortcut_floor: int = 3
    exposure: RequiredExposure = RequiredExposure()
    num_worlds: int = NUM_WORLDS

    def shortcut_cap(self, size: int) -> int:
        """Return the largest size of a shortcut for a mechanism of the given size; 0 if none is searched."""
        cap = min(SHORTCUT_CAP, size - 1)
        return cap if cap >= self.shortcut_floor else 0


HARD, VERY_HARD = "hard_small", "very_hard_small"

NAMED_STRATA = (
    Stratum("hs_n6_easy_calibration", HARD, 6, 10, 2, (4, 8), (0.20, 0.55, 0.25), 0.70, max_survivors=1),
    Stratum("hs_n7_anchor_plus", HARD, 7, 10, 3, (5, 10), (0.10, 0.50, 0.40), 0.75),
    Stratum("hs_n8_bridge", HARD, 8, 10, 4, (6, 11), (0.08, 0.50, 0.42), 0.75),
    Stratum("vhs_n8_dense", VERY_HARD, 8, 10, 5, (6, 12), (0.05, 0.50, 0.45), 0.75),
    Stratum("vhs_n9_anchor", VERY_HARD, 9, 10, 4, (6, 12), (0.05, 0.50, 0.45), 0.75),
    Stratum("vhs_n9_dense_strict", VERY_HARD, 9, 11, 5, (7, 13), (0.04, 0.46, 0.50), 0.80),
    Stratum("vhs_n10_anchor_m10", VERY_HARD, 10, 10, 4, (7, 13), (0.04, 0.46, 0.50), 0.80),
    Stratum("vhs_n10_extreme_near_impossible", VERY_HARD, 10, 11, 5, (8, 14), (0.03, 0.42, 0.55), 0.85),
)

T1_CLEAN_HARD = Stratum(
    "t1_clean_hard",
    VERY_HARD,
    8,
    11,
    4,
    (7, 12),
    (0.03, 0.43, 0.54),
    0.82,
    shortcut_floor=2,
    # its knobs, at least 33 scored cells and at most 5 intervened worlds of 8, amount to 3 scored worlds of 11 rows
    exposure=RequiredExposure(scored_training=3, scored_heldout=2, assigned=4, constant=1),
)

STRATA = (*NAMED_STRATA, T1_CLEAN_HARD)

LARGE = "large"
LARGE_SIZES = (12, 14, 16, 20, 30, 40)


def worlds_for(num_variables: int) -> int:
    """Return the number of worlds that intervene on each variable as often as NUM_WORLDS do on each of ten."""
    return max(NUM_WORLDS, -(-NUM_WORLDS * num_variables // 10))


def _large(num_variables: int) -> Stratum:
    anchor = next(candidate for candidate in NAMED_STRATA if candidate.name == "vhs_n10_anchor_m10")
    return replace(
        anchor,
        name=f"large_n{num_variables}",
        difficulty=LARGE,
        num_variables=num_variables,
        num_worlds=worlds_for(num_variables),
    )


LARGE_STRATA = tuple(map(_large, LARGE_SIZES))


def shortcut_floor(name: str) -> int:
    """Return the floor of the stratum of that name; the first named stratum's for unknown names."""
    return {candidate.name: candidate.shortcut_floor for candidate in STRATA}.get(name, NAMED_STRATA[0].shortcut_floor)


def stratum(name: str) -> Stratum:
    """Return the stratum of that name; `ValueError` that lists the known ones otherwise."""
    for candidate in (*STRATA, *LARGE_STRATA):
        if candidate.name == name:
            return candidate
    names_text = known_names(name, (candidate.name for candidate in (*STRATA, *LARGE_STRATA)))
    raise ValueError(f"unknown stratum '{name}'; {names_text}")
