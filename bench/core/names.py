"""The benchmarks: name -> title, in the order of tables."""

from __future__ import annotations

TITLES = {
    "replayscm": "ReplaySCM",
    "blickets": "Extended blickets",
    "causalab": "CausaLab",
    "causim": "CauSim",
    "logic": "Logic models",
}
FIRST = next(iter(TITLES))
