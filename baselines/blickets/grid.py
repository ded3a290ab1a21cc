"""A grid of simple agents: how they explore, what they do about a contradiction, and when they stop.

3 x 3 x 3 combinations of plain habits, not imitations of prompts: they show which habit makes which figure of a table.
Source of the habits: arXiv 2604.20039, sections 3 and 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from random import Random

from calibrant.baselines.blickets.dialogue import Dialogue, Policy
from calibrant.baselines.blickets.habits import Explore, Revise, Stop
from calibrant.baselines.blickets.mind import Mind
from calibrant.baselines.blickets.replies import Reply
from calibrant.dsl.action import Action
from calibrant.dsl.blickets.item import Task
from calibrant.dsl.episode import Episode

CONFIRMATIONS = 2


@dataclass(frozen=True, slots=True)
class GridAgent:
    """One agent of the grid.

    confirmations: for `Stop.CONFIRM`, 1 or more
    """

    explore: Explore
    revise: Revise
    stop: Stop
    confirmations: int = CONFIRMATIONS

    @property
    def name(self) -> str:
        stop = f"confirm-{self.confirmations}" if self.stop is Stop.CONFIRM else str(self.stop)
        return f"{self.explore}/{self.revise}/{stop}"

    def play(self, episode: Episode[Task, str], rng: Random) -> None:
        """Act in an episode until it is closed: an answer was accepted. When the budget is spent, the best there is."""
        mind = self._mind(episode.task, rng)
        while not episode.closed:
            episode.act(_next_action(mind, episode))

    def policy(self, task: Task, rng: Random) -> Policy:
        """Return the agent as a policy for one dialogue; with a context graph it moves to the state that it acts in."""
        mind = self._mind(task, rng)

        def reply(dialogue: Dialogue) -> Reply:
            action = _next_action(mind, dialogue.episode)
            return Reply(mind.thought(), action, mind.transition(dialogue.context))

        return reply

    def _mind(self, task: Task, rng: Random) -> Mind:
        return Mind(task, self.explore, self.revise, self.stop, self.confirmations, rng)


def _next_action(mind: Mind, episode: Episode[Task, str]) -> Action:
    for step in episode.steps[mind.num_steps :]:
        mind.note(step)
    return mind.action(left=episode.left)


GRID = tuple(GridAgent(explore, revise, stop) for explore, revise, stop in product(Explore, Revise, Stop))

PRESETS = {  # what stands beside the paper's rows
    "base": GridAgent(Explore.RANDOM, Revise.NONE, Stop.CONFIRM, 1),
    "cg": GridAgent(Explore.SCRIPT, Revise.SUFFIX, Stop.CONFIRM),
    "cg+db": GridAgent(Explore.SCRIPT, Revise.DB, Stop.CONFIRM),
}
