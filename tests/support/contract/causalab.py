"""CausaLab under the contract.

With hidden noise the truth is a member of the class that knows the noise, whose draws are not listed as outcomes;
before anything is set there is none. Quadratic members have no listed outcomes either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from hypothesis import strategies as st

from calibrant.audits.causalab.attribution import decided_frequency, space_of
from calibrant.bench.causalab.api import FUNCTIONS
from calibrant.bench.protocols import protocols_of
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.generation import PLANS, Plan, generate_items
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY, hypothesis
from calibrant.dsl.causalab.reference import SettingMeaning
from calibrant.dsl.episode import Action, Step
from calibrant.solvers.causalab.evidence import evidence_of
from calibrant.solvers.causalab.noisy import NoisyDags
from tests.support.benchmarks.causalab import members_by_reference
from tests.support.contract.subject import Evidence, Settled, Subject

VALUES = (0, 100, 37.5, -20, 63.25, 12.34)
SMALL_PLANS = (Plan("3nodes", 3), Plan("base", 3, reading=SettingMeaning.BASE), Plan("parent", 3, freq_parent=True))


class CausaLab(Subject):
    name = "causalab"
    interactive = True
    settles = 20

    def items(self) -> Sequence[LabItem]:
        return _drawn(tuple(suite for suite in PLANS if suite not in ("6nodes", "7nodes", "6nodes_freqparent")), 3)

    def every(self) -> Sequence[LabItem]:
        return _drawn(tuple(PLANS), 1)

    def small(self) -> Sequence[LabItem]:
        return [item for plan in SMALL_PLANS for item in generate_items(plan, 4, 2)]

    def evidence(self, item: LabItem, choices: Sequence[int]) -> Evidence:
        episode = LabEpisode(item)
        for choice in choices[:4] if item.task.noise else choices:
            which, value = divmod(choice, len(VALUES))
            episode.act({"set": item.task.settable[which % len(item.task.settable)], "value": VALUES[value]})
        read = [step for step in episode.steps if step.reading is not None]
        return [((step.action["set"], float(step.action["value"])), step.reading) for step in read]

    def space(self, item: LabItem) -> Any:
        return space_of(item.task)

    def spaces(self, item: LabItem, evidence: Evidence) -> list[Any]:
        """With noise they begin at the first setting: before it there is another class, that without noise."""
        first = [_step(*one) for one in evidence[:1]] if item.task.noise else []
        found: list[Any] = [space_of(item.task, first)]
        for experiment, reading in evidence[len(first) :]:
            found.append(found[-1].after(experiment, reading))
        return found

    def size(self, space: Any) -> int:
        """Return the number of possible edges of noisy members, else that of members.

        A noisy member has a draw for each setting, so that their number may grow; their edges do not.
        """
        return len(space.possible_edges) if isinstance(space, NoisyDags) else int(space.count)

    def truth_fits(self, item: LabItem, space: Any) -> bool:
        return bool(space.fits(item.sealed.mechanism))

    def experiments(self, item: LabItem, evidence: Evidence) -> Sequence[Any]:
        if item.task.noise or item.task.family != "linear" or not item.task.allowance:
            return ()
        return [(name, value) for name in item.task.settable for value in VALUES[:2]]

    def listed(self, item: LabItem, evidence: Evidence) -> int:
        steps = [_step(*one) for one in evidence]
        return len(members_by_reference(evidence_of(item.task, steps), bounded=False))

    def settled(self) -> Iterator[Settled]:
        exact = protocols_of(self.benchmark)["exact"]()
        for item in _drawn(("3nodes", "4nodes", "5nodes", "4nodes_freqparent"), 8):
            episode = LabEpisode(item)
            answer = exact.answer(episode).answer or {}
            space = space_of(item.task, episode.steps)
            frequency = decided_frequency(space)
            if space.count == 1 and frequency is not None:
                said = hypothesis(answer.get("hypothesis"))
                score = self.benchmark.scoring.score(item, answer, ())
                best = score["correct"] and score["graph_correct"] and score["all_weight_f1"] == 1
                left = space.certain_edges, round(frequency, 2)
                yield Settled(item.id, left, (said.edges, round(answer.get("frequency", -1), 2)), best)

    def actions(self, item: LabItem) -> st.SearchStrategy[list[Action]]:
        names = st.sampled_from([*item.task.properties, FREQUENCY, "nothing"])
        numbers = st.sampled_from([*VALUES, 1e300, -1e300, True, "x", None]) | st.floats(-1e6, 1e6)
        stated = {"edges": [{"from": item.task.properties[0], "to": FREQUENCY}]}
        one: st.SearchStrategy[Action] = st.one_of(
            st.builds(lambda name, value: {"set": name, "value": value}, names, numbers),
            st.builds(lambda name, value: {"set": name, "value": value, "hypothesis": stated}, names, numbers),
            st.builds(lambda value: {"reactor": value}, numbers),
            st.sampled_from([{}, {"submit": 3}, {"submit": {"hypothesis": stated}}, {"set": {}}, {"dig": 1}]),
        )
        return st.lists(one, max_size=20)

    def untrue(self, reading: Any) -> dict[str, Any]:
        return {key: not value if isinstance(value, bool) else float(not value) for key, value in reading.items()}

    def right(self, item: LabItem, text: str) -> bool:
        return FUNCTIONS.score(item, text).correct is True


@cache
def _drawn(suites: tuple[str, ...], count: int) -> tuple[LabItem, ...]:
    return tuple(item for suite in suites for item in generate_items(PLANS[suite], 3, count))


def _step(experiment: tuple[str, float], reading: Any) -> Step[Any]:
    return Step({"set": experiment[0], "value": experiment[1]}, reading, "", 1)
