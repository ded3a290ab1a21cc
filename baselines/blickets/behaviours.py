"""Dynamic behaviours: conditions that are watched for during an episode and, once met, extend the context graph.

Source: arXiv 2604.20039, section 3.3. Which behaviours there are, when they may fire and what they add is the paper's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calibrant.baselines.blickets.context import (
    COMBINATION_TESTING,
    HYPOTHESIS_EVALUATION,
    VERIFICATION,
    Context,
    Edge,
    State,
    StateType,
)

THRESHOLD = 6.0  # of a score from 0 to 10
RUNNER_UP = 1.0  # a second behaviour fires too if its score is at most so far below the highest


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Behaviour that a scorer judges and the agent is notified of.

    key: as the paper numbers it; minimum: steps before which it is not scored; condition: what a scorer judges
    state: what it adds to the graph, with edges from `sources` and to `targets`; notice: what the agent is told
    """

    key: str
    name: str
    minimum: int
    condition: str
    state: State
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    notice: str

    def extend_context(self, context: Context) -> Context:
        """Return a context with the behaviour's state and edges.

        Edges from or to states that are not there wait for them.
        """
        name = self.state.name
        into = [Edge(source, name) for source in self.sources]
        return context.add_state(self.state, [*into, *(Edge(name, target) for target in self.targets)])


def firing(scores: Mapping[Behaviour, float]) -> tuple[Behaviour, ...]:
    """Return the behaviours that fire in one step: the highest score, and the next if it is close.

    None below THRESHOLD. Of equal scores the one listed first counts as higher.
    """
    ranked = sorted((b for b, score in scores.items() if score >= THRESHOLD), key=lambda b: -scores[b])
    return tuple(b for b in ranked[:2] if scores[ranked[0]] - scores[b] <= RUNNER_UP)


_DIMENSION_DISCOVERY = State(
    "DIMENSION_DISCOVERY",
    StateType.REFLECTION,
    "Ask what else than the set of objects could matter, since nothing has made the detector react.",
    ("Consider the order of placing, chance, and conditions that change with time.", "Plan a test for each."),
)
_ORDER_TESTING = State(
    "ORDER_TESTING",
    StateType.ACTION,
    "Find out whether the order in which objects are placed decides the reading.",
    ("Build the same set in another order.", "Keep everything else as it was."),
)
_RELIABILITY_TESTING = State(
    "RELIABILITY_TESTING",
    StateType.ACTION,
    "Find out how often one configuration makes the detector react.",
    ("Repeat the same configuration several times.", "One reading that differs does not refute a rule here."),
)
_MODERATOR_DETECTION = State(
    "MODERATOR_DETECTION",
    StateType.REFLECTION,
    "Decide whether the rule has changed, and since when.",
    ("Trust readings since the change.", "Ask which rule is in force now, not which one was."),
)

BEHAVIOURS = (
    Behaviour(
        "DB1",
        "exploration_stagnation",
        6,
        "The detector has never been active.",
        _DIMENSION_DISCOVERY,
        (HYPOTHESIS_EVALUATION.name, COMBINATION_TESTING.name),
        (COMBINATION_TESTING.name, VERIFICATION.name),
        "Nothing has made the detector react yet. Something else than the set of objects may matter.",
    ),
    Behaviour(
        "DB2",
        "order_hypothesis",
        8,
        "The same set of objects gave another result when it was placed in another order.",
        _ORDER_TESTING,
        (_DIMENSION_DISCOVERY.name, COMBINATION_TESTING.name),
        (HYPOTHESIS_EVALUATION.name, VERIFICATION.name),
        "The same objects gave different readings. The order in which they are placed may matter.",
    ),
    Behaviour(
        "DB3",
        "stochasticity_hypothesis",
        8,
        "The same configuration gave another result.",
        _RELIABILITY_TESTING,
        (_DIMENSION_DISCOVERY.name, COMBINATION_TESTING.name),
        (HYPOTHESIS_EVALUATION.name,),
        "The same configuration gave different readings. The detector may be unreliable.",
    ),
    Behaviour(
        "DB4",
        "rule_change_hypothesis",
        10,
        "A rule that worked has stopped working.",
        _MODERATOR_DETECTION,
        (_DIMENSION_DISCOVERY.name, HYPOTHESIS_EVALUATION.name),
        (COMBINATION_TESTING.name, VERIFICATION.name),
        "A rule that was confirmed has failed. The rule may have changed.",
    ),
)
