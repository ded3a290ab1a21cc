"""A grid of simple agents: how they explore, what they do about a contradiction, and when they stop.

3 x 3 x 3 combinations of plain habits, not imitations of prompts: they show which habit makes which figure of a table.
Source of the habits: arXiv 2604.20039, sections 3 and 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from random import Random

from calibrant.baselines.blickets.dialogue import Dialogue, Policy
from calibrant.baselines.blickets.policy import GridPolicy
from calibrant.baselines.blickets.replies import Reply
from calibrant.baselines.blickets.strategy import ExplorationStrategy, Revise, Stop
from calibrant.dsl.blickets.item import Task
from calibrant.dsl.episode import Action, Episode

CONFIRMATIONS = 2


@dataclass(frozen=True, slots=True)
class GridAgent:
    """One agent of the grid.

    confirmations: for `Stop.CONFIRM`, 1 or more
    """

    explore: ExplorationStrategy
    revise: Revise
    stop: Stop
    confirmations: int = CONFIRMATIONS

    @property
    def name(self) -> str:
        stop = f"confirm-{self.confirmations}" if self.stop is Stop.CONFIRM else str(self.stop)
        return f"{self.explore}/{self.revise}/{stop}"

    def play(self, episode: Episode[Task, str], rng: Random) -> None:
        """Act in an episode until it is closed: an answer was accepted. When the budget is spent, the best there is."""
        policy = self._policy(episode.task, rng)
        while not episode.closed:
            episode.act(_next_action(policy, episode))

    def policy(self, task: Task, rng: Random) -> Policy:
        """Return the agent as a policy for one dialogue; with a context graph it moves to the state that it acts in."""
        policy = self._policy(task, rng)

        def reply(dialogue: Dialogue) -> Reply:
            action = _next_action(policy, dialogue.episode)
            return Reply(policy.thought(), action, policy.transition(dialogue.context))

        return reply

    def _policy(self, task: Task, rng: Random) -> GridPolicy:
        return GridPolicy(task, self.explore, self.revise, self.stop, self.confirmations, rng)


def _next_action(policy: GridPolicy, episode: Episode[Task, str]) -> Action:
    for step in episode.steps[policy.num_steps :]:
        policy.note(step)
    return policy.action(budget_left=episode.left)


GRID = tuple(GridAgent(explore, revise, stop) for explore, revise, stop in product(ExplorationStrategy, Revise, Stop))

PRESETS = {  # what stands beside the paper's rows
    "base": GridAgent(ExplorationStrategy.RANDOM, Revise.NONE, Stop.CONFIRM, 1),
    "cg": GridAgent(ExplorationStrategy.SCRIPT, Revise.SUFFIX, Stop.CONFIRM),
    "cg+db": GridAgent(ExplorationStrategy.SCRIPT, Revise.DB, Stop.CONFIRM),
}
