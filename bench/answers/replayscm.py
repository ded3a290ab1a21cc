"""ReplaySCM's scores in tables; the conventions of its columns are in bench.answers.columns."""

from __future__ import annotations

from bench.answers.attribution import ATTRIBUTION_COLUMNS
from bench.answers.columns import (
    ALTERNATIVE_COLUMNS,
    FUNNEL_COLUMNS,
    REPLAY_COLUMNS,
    ROOT_COLUMNS,
    STRUCTURE_COLUMNS,
    Verdict,
)
from bench.answers.measures import Measures
from bench.answers.samples import RIGHTS, sample_of
from dsl.replayscm.pools.published_files import latent_of

MEASURES = Measures(
    benchmark="replayscm",
    views={
        "replay": (*REPLAY_COLUMNS, *ROOT_COLUMNS, *ALTERNATIVE_COLUMNS),
        "structure": STRUCTURE_COLUMNS,
        "funnel": FUNNEL_COLUMNS,
        "attribution": ATTRIBUTION_COLUMNS,
    },
    first=(
        *("n", "train_exact", "heldout_exact", "alt_scm_joint", "heldout_world", "valid", "root_exact"),
        *("alt_train_exact", "experiment_witness", "samples", "coverage", "out_of_budget"),
        *("parent_f1", "parent_map_exact", "local_match"),
    ),
    verdict=Verdict,
    sample=sample_of,
    rights=RIGHTS,
    unit=latent_of,
    settings=(
        *("Ordered", "Ord-", "Block", "Hidden-order", "Hid-", "Hidden-roots", "Hid-Roots", "Alt-"),
    ),  # the disclosure ladder
)
