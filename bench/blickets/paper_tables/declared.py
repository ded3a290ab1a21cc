"""Items that the paper's tables are about, in words; `conditions` has the predicates."""

from __future__ import annotations

_FIVE = "five objects, all of a pair needed at first"
_EASY = f"{_FIVE}; after N activations any single one is enough; 75 moves"
_HARD = f"{_FIVE}; after N = 3 activations the three others are needed"
PRINTED_BUDGETS = (75, 50)  # of Table 8

WORDS = {
    "5a": f"{_EASY}; N = 3",
    "5b": f"{_EASY}; N = 3",
    "6": f"{_HARD}; 75 moves",
    "F2": f"{_HARD}; 75 moves",
    "7": "the easy and the hard switch (N = 3, 75 moves), unreliable detectors of five objects with p = 0.7, and orders"
    " of four objects",
    "8": f"{_HARD}; 75 or 50 moves",
    "9": f"{_EASY}; N = 3 or 5; agents whose behaviours are recorded",
    "10": f"{_HARD}; 75 moves",
    "11": f"{_EASY}; N = 5",
}
