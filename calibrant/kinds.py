"""The unions over benchmarks that the public names take and give."""

from __future__ import annotations

from typing import TypeAlias

from dsl.replayscm.problem import Problem
from dsl.replayscm.score import Score

Item: TypeAlias = Problem
"""An item of any benchmark: `id`, `benchmark`, `setting`, `stratum`, `task` (all a solver may read), `sealed`."""

Verdict: TypeAlias = Score
"""What an answer scores on any benchmark: `valid`, `correct`, `failure` (why not, in a line), `to_dict()`."""
