"""Dialogues of CausaLab: played with a system, and read from the trajectories of runs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import exp, fsum, log
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from markupsafe import Markup

from calibrant.audits.causalab.attribution import Moment, run_space, trajectory
from calibrant.bench.answers.rates import differing_names, option_suffix
from calibrant.bench.causalab.items import ITEMS, refuse_uncounted, run_picture
from calibrant.bench.causalab.play import PLAY
from calibrant.bench.core.capabilities import PlayedReplies
from calibrant.bench.episodes import TextEpisode
from calibrant.bench.pages.charts import Scale, figure, foot_axis, side_axis, text_at
from calibrant.bench.pages.graphs import GraphPicture, graph_text, graphs_svg
from calibrant.bench.pages.page import design_page
from calibrant.bench.pages.terminal_tables import aligned
from calibrant.bench.report.sources import Transcript
from calibrant.dsl.answer_text import Thoughts, read_reply_text
from calibrant.dsl.causalab import episode
from calibrant.dsl.causalab.configs import Config, Transition, candidates, read_configs
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import EMPTY, hypothesis, state_mechanism
from calibrant.dsl.causalab.prompt import reading_text, shown_step
from calibrant.dsl.causalab.replies import MAX_RETURNS, PAST, Ledger, schema_fault
from calibrant.dsl.causalab.score import Scorer
from calibrant.dsl.episode import Action, ActionError, Step, replay_actions, replay_transcript, sole_action
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.item import Message
from calibrant.solvers.outcome import BudgetSpent

# --- Aids of a text episode: the consistent released configs (as the paper's helper lists them), or mechanisms --------
Aid: TypeAlias = Literal["none", "members"] | Path
"""`members`: number and common edges of the consistent mechanisms; a path: a released file of candidate configs."""

MEMBERS: Final = "members"
MAX_LISTED = 50


def aid_text_of_option(item: LabItem, steps: Sequence[episode.LabStep], aid: Path) -> str:
    """Return `aid_text` of a command's option, whose path may be the word `members`; `CalibrantError` for no suite."""
    return aid_text(MEMBERS if aid == Path(MEMBERS) else aid, item, steps)


def aid_text(aid: Aid, item: LabItem, steps: Sequence[episode.LabStep]) -> str:
    """Return the aid's text after these steps; empty without an aid."""
    if aid == "none":
        return ""
    return _members_text(item, steps) if aid == "members" else _candidates_text(Path(aid), item, steps)


def _members_text(item: LabItem, steps: Sequence[episode.LabStep]) -> str:
    try:
        space = run_space(item, steps)
    except BudgetSpent:
        return "Mechanisms that fit all readings: too many to count."
    certain = ", ".join(f"{parent} -> {child}" for parent, child in sorted(space.certain_edges)) or "none"
    return f"Mechanisms that fit all readings: {space.count}. Edges that all of them have: {certain}."


def _candidates_text(path: Path, item: LabItem, steps: Sequence[episode.LabStep]) -> str:
    fitting = candidates(_configs(path), item.task.properties, _transitions(item, steps))
    names = ", ".join(config.id for config in fitting[:MAX_LISTED]) or "none"
    return f"Candidates of {path.name} that fit all settings: {len(fitting)}: {names}."


@lru_cache(maxsize=8)
def _configs(path: Path) -> tuple[Config, ...]:
    configs = tuple(read_configs(path))
    if not configs:
        raise CalibrantError(f"{path.name}: no configs")
    return configs


def _transitions(item: LabItem, steps: Sequence[episode.LabStep]) -> list[Transition]:
    """Return the interventions of a run in their order, each with the values before it."""
    transitions, before = [], item.task.baseline
    for step in steps:
        if step.cost and step.reading is not None:  # free and refused steps change nothing
            name, value = str(step.action["set"]), float(step.action["value"])
            transitions.append(Transition(before, step.reading, name, value))
            before = step.reading
    return transitions


# --- CausaLab items as text environments, in the paper's format or by verbs, with the paper's options -----------------
Schema: TypeAlias = Literal["free", "paper"]
Verify: TypeAlias = Literal["never", "once"]
TURNS_PER_ACTION, EXTRA_TURNS = 2, 8  # as in bench.episodes


@dataclass(frozen=True)
class DialogueOptions:
    """Options of a text episode.

    schema: `paper` sends back a reply whose hypothesis breaks the paper's schema, at most MAX_RETURNS times in a row
    verify: `once` sends back the first reactor trial or submission whose equation contradicts readings of the run,
        while interventions remain
    aid: text after each reading; carry: whether the last notebook and hypothesis are repeated after each reply
    """

    schema: Schema = "free"
    verify: Verify = "never"
    aid: Aid = "none"
    carry: bool = False


@dataclass
class DialogueTotals:
    """Totals of a run.

    replies: number taken; unread: number whose action was not taken, malformed ones included
    malformed: number that broke the schema after MAX_RETURNS returns; returned: number sent back for their schema
    verified: whether a reply was sent back because it contradicts its readings
    ledger: what notebooks copied from the readings, right and wrong
    """

    replies: int = 0
    unread: int = 0
    malformed: int = 0
    returned: int = 0
    verified: bool = False
    ledger: Ledger = field(default_factory=Ledger)

    def as_json(self) -> dict[str, Any]:
        """Return the totals for JSON; shares are over replies, None without any."""
        shares = {
            "unread_share": self.unread / self.replies if self.replies else None,
            "malformed_share": self.malformed / self.replies if self.replies else None,
        }
        counts = {"replies": self.replies, "unread": self.unread, "malformed": self.malformed}
        return {
            **counts,
            **shares,
            "returned": self.returned,
            "verified": self.verified,
            "ledger": self.ledger.as_json(),
        }


class LabChat:
    """An episode in messages; every reply gets a response, even an unreadable one."""

    def __init__(self, item: LabItem, options: DialogueOptions | None = None, thoughts: Thoughts = "strip") -> None:
        self.episode = episode.LabEpisode(item)
        self.options = options or DialogueOptions()
        self._thoughts = thoughts
        self.totals = DialogueTotals()
        self.messages: list[Message] = ITEMS.messages(item)
        if note := aid_text(self.options.aid, item, ()):
            self.messages[-1] = {"role": "user", "content": f"{self.messages[-1]['content']}\n\n{note}"}
        self._item = item
        self._turns_left = TURNS_PER_ACTION * self.episode.left + EXTRA_TURNS
        self._returns = 0  # in a row, for the schema
        self._notebook: Mapping[str, Any] = {}

    @property
    def closed(self) -> bool:
        return self.episode.closed or self._turns_left <= 0

    def take_text(self, text: object) -> None:
        """Append a reply and its response to `messages`; a reply that is no string is unread."""
        self._turns_left -= 1
        self.totals.replies += 1
        response = self._respond(text)
        if self.options.carry and self._notebook and not self.closed:
            response += f"\n\nYour previous state:\n{json.dumps(self._notebook)}"
        self.messages.append({"role": "assistant", "content": text if isinstance(text, str) else ""})
        self.messages.append({"role": "user", "content": response})

    def _respond(self, text: object) -> str:
        try:
            if not isinstance(text, str):
                raise ActionError(f"expected text, found {short_repr(text)}")
            text = read_reply_text(text, self._thoughts)
            action = PLAY.parse_action(self._item, text)
            raw = sole_action(text)
        except ActionError as error:
            self.totals.unread += 1
            return f"Not understood: {error}."
        if returned := self._return_for_schema(action):
            return returned
        self._update_notebook(raw, action)
        if contradiction := self._return_for_readings(action):
            return contradiction
        step = self.episode.act(action)
        lines = [PLAY.describe(self.episode, step)]
        if step.cost and (note := aid_text(self.options.aid, self._item, self.episode.steps)):
            lines.append(note)
        return "\n".join(lines)

    def _return_for_schema(self, action: Action) -> str:
        """Return the response to a reply that breaks the schema, and count it; empty if none or not asked for."""
        raw = _stated_hypothesis(action)
        if self.options.schema != "paper" or raw is None:
            return ""
        fault = schema_fault(raw, self._item.task.properties)
        if not fault:
            self._returns = 0
            return ""
        if self._returns < MAX_RETURNS:
            self._returns += 1
            self.totals.returned += 1
            return f"The hypothesis was not taken: {fault}. Repeat the reply with another one."
        self._returns = 0
        self.totals.malformed += 1
        self.totals.unread += 1  # its action is not taken
        return f"Not understood: {fault}."

    def _update_notebook(self, raw: Mapping[str, Any], action: Action) -> None:
        readings = list(episode.own_readings(self._item.task, self.episode.steps))
        self.totals.ledger.add(raw, readings, self._item.task.properties)
        stated = _stated_hypothesis(action)
        if PAST in raw:
            self._notebook = {**self._notebook, PAST: raw[PAST]}
        if stated is not None:
            self._notebook = {**self._notebook, episode.HYPOTHESIS: stated}

    def _return_for_readings(self, action: Action) -> str:
        """Return the readings that a trial or a submission contradicts, once a run; empty if none or not asked for."""
        if self.options.verify != "once" or self.totals.verified or "set" in action or self.episode.left <= 0:
            return ""
        stated = _stated_hypothesis(action)
        last = stated if stated is not None else self._notebook.get(episode.HYPOTHESIS)
        missed = episode.missed_readings(hypothesis(last), self._item.task, self.episode.steps)
        if not missed:
            return ""
        self.totals.verified = True
        lines = [
            f"Before that: your equation does not give these of your readings. Settings left: {self.episode.left}.",
            *map(reading_text, missed),
        ]
        return "\n".join(lines)


def _stated_hypothesis(action: Action) -> Mapping[str, Any] | None:
    return episode.stated_raw(Step(action, None))


def text_episode(item: LabItem, options: DialogueOptions | None = None, thoughts: Thoughts = "strip") -> TextEpisode:
    """Return an item as an environment: reward 1 if the submitted frequency is within 5 of the target, else 0.

    The score has the totals of the dialogue under `dialogue`.
    """
    chats: list[LabChat] = []  # the last one opened, whose totals the score needs

    def open_chat() -> LabChat:
        chats[:] = [LabChat(item, options, thoughts)]
        return chats[0]

    def score(steps: Sequence[Step[Any]]) -> dict[str, Any]:
        return episode.run_score(item, steps).as_json() | {"dialogue": chats[0].totals.as_json()}

    return TextEpisode(open_chat, score, _reward)


def _reward(record: Mapping[str, Any]) -> float:
    return float(record["accuracy"])


# --- Recorded replies of a system, played again: in the paper's format, or by verbs -----------------------------------


class ReplyOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a dialogue that decide the effect of a reply; aids and carried notebooks have none."""

    schema: Schema = "free"
    verify: Verify = "never"


def play_replies(
    item: LabItem, replies: Sequence[Any], raw_options: Mapping[str, Any], thoughts: Thoughts = "strip"
) -> PlayedReplies:
    """Play one reply, a string or an object, a turn; `CalibrantError` for unknown options and replies after the end."""
    try:
        options = msgspec.convert(raw_options, ReplyOptions)
    except msgspec.ValidationError as error:
        choices = "known: schema free or paper, verify never or once"
        raise CalibrantError(f"dialogue: {in_one_line(str(error))}; {choices}") from None
    chat = LabChat(item, DialogueOptions(options.schema, options.verify), thoughts)
    for index, reply in enumerate(replies):
        if chat.closed:
            raise CalibrantError(f"reply {index} of {len(replies)} comes after the end of the episode")
        chat.take_text(json.dumps(reply) if isinstance(reply, Mapping) else reply)
    return PlayedReplies(chat.episode.steps, chat.totals.as_json())


# --- A run step by step, for display: actions, readings, the stated graph, the true one, and the metrics --------------
HEADINGS = ("Step", "Action", "Left", "F1", "Root F1", "Weight F1", "Fits", "Contradicted")


@dataclass(frozen=True)
class RunMoment:
    """The state after a step; the first is that before any.

    caption: the action; reading: its result in words; stated: the stated graph beside the edges that readings prove
    truth: the true graph, None where it is not shown; metrics: of the stated graph after the step
    """

    caption: str
    reading: str
    stated: GraphPicture
    truth: GraphPicture | None
    metrics: Moment

    @property
    def row(self) -> list[str]:
        """The cells under HEADINGS, without the number of the step."""
        score = self.metrics.score
        fits, contradicted = self.metrics.equation_fits, self.metrics.contradicted
        return [
            self.caption,
            f"{self.metrics.members:,}",
            *(f"{f1:.3f}" for f1 in (score.all_edge.f1, score.root.f1, score.freq_weight.f1)),
            "yes" if fits else "no",
            "yes" if contradicted else "no",
        ]


def run_moments(item: LabItem, steps: Sequence[episode.LabStep], *, reveal_sealed: bool) -> list[RunMoment]:
    """Return the moments of a run; `BudgetSpent` if the consistent mechanisms are too many to count."""
    course = trajectory(item, steps)
    start = Moment(0, run_space(item).count, Scorer(item.sealed.mechanism).score(EMPTY), False, False)
    moments = []
    for index, moment in enumerate((start, *course.moments)):
        before = steps[:index]
        last = before[-1] if before else None
        moments.append(
            RunMoment(
                "before any action" if last is None else _action_text(last.action),
                "" if last is None else " ".join(shown_step(last).split()),
                run_picture(f"stated after step {index}", item, before),
                _true_picture(item, before) if reveal_sealed else None,
                moment,
            )
        )
    return moments


def _true_picture(item: LabItem, steps: Sequence[episode.LabStep]) -> GraphPicture:
    """Return the true graph beside the edges that the same readings prove."""
    paid_actions: list[Action] = [  # without stated hypotheses: the truth takes their place
        {k: v for k, v in step.action.items() if k != episode.HYPOTHESIS} for step in steps if step.cost
    ]
    truth = {"submit": {episode.HYPOTHESIS: state_mechanism(item.sealed.mechanism)}}
    picture = run_picture(
        "the true graph", item, replay_actions(episode.LabEpisode(item), [*paid_actions, truth]).steps
    )
    return replace(picture, remark=f"beside the same readings; {picture.remark.split('; ')[1]}")


def _action_text(action: Action) -> str:
    named: dict[str, Any] = {key: value for key, value in action.items() if key != episode.HYPOTHESIS}
    if "set" in named:
        return f"set {named['set']} to {named.get('value')}"
    if "reactor" in named:
        return f"try {named['reactor']} on the reactor"
    return "submit" if "submit" in named else short_repr(named)


# --- Runs as a page with a slider over steps: graphs, lines of the metrics, what was set and read ---------------------
Episodes = Sequence[tuple[str, Sequence[episode.LabStep]]]
LINES: tuple[tuple[str, Callable[[RunMoment], float]], ...] = (
    ("F1 of all edges", lambda moment: moment.metrics.score.all_edge.f1),
    ("F1 of the roots", lambda moment: moment.metrics.score.root.f1),
    ("F1 of the weights", lambda moment: moment.metrics.score.freq_weight.f1),
)
LEFT, RIGHT, TOP, HEIGHT, STEP, MIN_WIDTH = 44, 60, 14, 150, 36, 420  # pixels of the plot


@dataclass(frozen=True)
class RunViews:
    """Implements EpisodeViews (bench.pages.capabilities).

    reveal_sealed: whether the true graph is shown
    """

    reveal_sealed: bool

    def text(self, item: LabItem, steps: Sequence[episode.LabStep], system: str) -> str:
        """Return the graph stated at the end; if sealed facts are revealed, also all steps and the true graph."""
        if not self.reveal_sealed:
            with refuse_uncounted(item):
                return graph_text(run_picture(f"{system}, {item.id}", item, steps))
        with refuse_uncounted(item):
            moments = run_moments(item, steps, reveal_sealed=self.reveal_sealed)
        rows = [[str(index), *moment.row] for index, moment in enumerate(moments)]
        last = moments[-1]
        graphs = [graph_text(picture) for picture in (last.stated, last.truth) if picture is not None]
        title = in_one_line(f"{system}, {item.id}")
        return "\n\n".join([title, aligned([*HEADINGS], rows), *graphs])

    def page(self, item: LabItem, episodes: Episodes) -> str:
        """Return one HTML file; without JavaScript it shows all steps of each run one below the other."""
        with refuse_uncounted(item):
            runs = [
                _run_content(index, name, run_moments(item, steps, reveal_sealed=self.reveal_sealed))
                for index, (name, steps) in enumerate(episodes)
            ]
        title = in_one_line(item.id)
        task = item.task
        remark = f"{len(task.nodes)} quantities, {task.allowance} settings allowed"
        return design_page(
            "trajectory.html", {"title": title, "crumbs": ["runs", title], "remark": remark, "runs": runs}
        )


def _run_content(run_index: int, name: str, moments: Sequence[RunMoment]) -> dict[str, Any]:
    """Return the fields of one run in the page's template."""
    steps = [
        {
            "number": k,
            "caption": moment.caption,
            "reading": moment.reading,
            "row": moment.row,
            "graphs": Markup(  # it escapes its texts
                graphs_svg([moment.stated, *([moment.truth] if moment.truth else [])], prefix=f"run-{run_index}-{k}-")
            ),
        }
        for k, moment in enumerate(moments)
    ]
    return {
        "anchor": f"run-{run_index}",
        "system": name,
        "verdict": moments[-1].stated.remark,
        "steps": steps,
        "plot": Markup(_plot(moments)),
        "headings": HEADINGS,
    }


def _plot(moments: Sequence[RunMoment]) -> str:
    """Return lines over steps: F1 scores on the left axis, remaining mechanisms on the right, logarithmic axis."""
    width = max(MIN_WIDTH, LEFT + RIGHT + STEP * max(1, len(moments) - 1))
    step = (width - LEFT - RIGHT) / max(1, len(moments) - 1)
    xs = [LEFT + step * k for k in range(len(moments))]
    shares = Scale(0, 1, TOP + HEIGHT, TOP)
    max_members = max(moment.metrics.members for moment in moments)
    members = Scale(1, max(10, max_members), TOP + HEIGHT, TOP, logarithmic=True)
    marks = [f'<rect class="cursor" x="{LEFT - 8}" y="{TOP - 8}" width="16" height="{HEIGHT + 16}"/>']
    marks += side_axis(shares.ticks(), LEFT, width - RIGHT)
    marks += [text_at(text, width - RIGHT + 8, y + 4, "soft") for y, text in members.ticks()]
    members_line = [(x, members.at(max(1, moment.metrics.members))) for x, moment in zip(xs, moments, strict=True)]
    marks.append(_polyline("members", members_line, "mechanisms left, right scale"))
    for k, (title, value) in enumerate(LINES):
        points = [(x, shares.at(value(moment))) for x, moment in zip(xs, moments, strict=True)]
        marks.append(_polyline(f"line-{k}", points, title))
    base = TOP + HEIGHT
    marks += foot_axis([(x, str(index)) for index, x in enumerate(xs)], base)
    signs = ["✓" if moment.metrics.equation_fits else "-" for moment in moments]
    marks += [text_at(sign, x, base + 34, anchor="middle") for x, sign in zip(xs, signs, strict=True)]
    first, last = moments[0].metrics.members, moments[-1].metrics.members
    label = f"metrics over {len(moments) - 1} steps; mechanisms left fall from {first:,} to {last:,}"
    return figure(width, base + 42, label, marks).replace(  # for the script that moves the cursor
        'class="fixed"', f'class="fixed course" data-left="{LEFT}" data-step="{step:.2f}"'
    )


def _polyline(kind: str, points: Sequence[tuple[float, float]], title: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline class="course-line {kind}" points="{path}"><title>{title}</title></polyline>'


EPISODE_VIEWS = RunViews(reveal_sealed=False)
REVEALED_VIEWS = RunViews(reveal_sealed=True)


# --- Means over runs by step: what `calibrant table --trajectory` prints ----------------------------------------------
MEAN_HEADINGS = (
    "Setting", "System", "Step", "n", "Going on", "Left", "F1", "Root F1", "Weight F1", "Fits", "Contradicted",
)  # fmt: skip


class StepMeans(NamedTuple):
    """Means over the runs of a system on a suite after a step; a run that has ended keeps its last moment.

    n: number of runs; going_on: number that have this step; members: geometric mean of the consistent mechanisms
    """

    setting: str
    system: str
    step: int
    n: int
    going_on: int
    members: float
    edge_f1: float
    root_f1: float
    weight_f1: float
    fits: float
    contradicted: float

    def cells(self) -> list[str]:
        means = (self.edge_f1, self.root_f1, self.weight_f1, self.fits, self.contradicted)
        counts = [self.setting, self.system, str(self.step), str(self.n), str(self.going_on), f"{self.members:.4g}"]
        return [*counts, *(f"{mean:.3f}" for mean in means)]


class TrajectoryTable(NamedTuple):
    """Means by suite, system and step; num_uncounted: runs left out, with too many mechanisms to count."""

    rows: Sequence[StepMeans]
    num_uncounted: int

    @property
    def headings(self) -> Sequence[str]:
        return MEAN_HEADINGS

    def to_dict(self) -> dict[str, Any]:
        return {"rows": [row._asdict() for row in self.rows], "uncounted": self.num_uncounted}


def mean_trajectories(transcripts: Iterable[Transcript], items: Mapping[tuple[str, str], LabItem]) -> TrajectoryTable:
    """Return the means of replayed runs; items: (pool digest, id) -> item; runs on other items are ignored."""
    courses: defaultdict[tuple[str, str, str], list[Sequence[Moment]]] = defaultdict(list)
    configurations: defaultdict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    num_uncounted = 0
    for context, steps in transcripts:
        item = items.get((context.pool_digest, context.instance))
        if item is None:
            continue
        replay_transcript(episode.LabEpisode(item), steps)  # raises if a step does not replay
        try:
            moments = trajectory(item, steps).moments
        except BudgetSpent:
            num_uncounted += 1
            continue
        if moments:
            options = context.options
            configurations[context.system][options] = context.config
            courses[context.setting, context.system, options].append(moments)
    rows: list[StepMeans] = []
    for setting, system, options in sorted(courses):
        configs = configurations[system]
        suffix = option_suffix(configs[options], differing_names(list(configs.values())))
        rows += _step_means(setting, system + suffix, courses[setting, system, options])
    return TrajectoryTable(rows, num_uncounted)


def _step_means(setting: str, system: str, courses: Sequence[Sequence[Moment]]) -> Iterable[StepMeans]:
    for step in range(max(map(len, courses))):
        moments = [course[min(step, len(course) - 1)] for course in courses]
        num_runs = len(moments)
        yield StepMeans(
            setting,
            system,
            step + 1,
            num_runs,
            sum(step < len(course) for course in courses),
            exp(fsum(log(max(1, moment.members)) for moment in moments) / num_runs),
            fsum(moment.score.all_edge.f1 for moment in moments) / num_runs,
            fsum(moment.score.root.f1 for moment in moments) / num_runs,
            fsum(moment.score.freq_weight.f1 for moment in moments) / num_runs,
            sum(moment.equation_fits for moment in moments) / num_runs,
            sum(moment.contradicted for moment in moments) / num_runs,
        )
