"""Runs step by step: their moments, the page with a slider, and means over runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, fsum, log
from typing import Any, NamedTuple

from markupsafe import Markup

from calibrant.audits.causalab.attribution import Moment, run_space, trajectory
from calibrant.bench.answers.names import differing_names, option_suffix
from calibrant.bench.causalab.items import refuse_uncounted, run_picture
from calibrant.bench.pages.aligned import aligned
from calibrant.bench.pages.charts import Scale, figure, foot_axis, side_axis, text_at
from calibrant.bench.pages.graphs import GraphPicture, graph_text, graphs_svg
from calibrant.bench.pages.page import design_page
from calibrant.bench.report.sources import Transcript
from calibrant.dsl.causalab.episode import HYPOTHESIS, LabEpisode, LabStep
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import EMPTY, state_mechanism
from calibrant.dsl.causalab.prompt import shown_step
from calibrant.dsl.causalab.score import Scorer
from calibrant.dsl.episode import Action, replay_actions, verify_transcript
from calibrant.dsl.errors import in_one_line, short_repr
from calibrant.solvers.outcome import BudgetSpent

# --- A run step by step, ready to be shown: actions, readings, the stated graph, the true one, and the metrics --------
HEADINGS = ("Step", "Action", "Left", "F1", "Root F1", "Weight F1", "Fits", "Contradicted")


@dataclass(frozen=True)
class RunMoment:
    """The state after a step; the first is that before any.

    caption: number and action; reading: what came of it, in words
    stated: the stated graph beside what the readings prove; truth: the true one, None where it is not shown
    moment: the metrics
    """

    caption: str
    reading: str
    stated: GraphPicture
    truth: GraphPicture | None
    moment: Moment

    @property
    def row(self) -> list[str]:
        """The cells under HEADINGS, without the number of the step."""
        score = self.moment.score
        figures = (score.all_edge.f1, score.root.f1, score.freq_weight.f1)
        fits, contradicted = self.moment.equation_fits, self.moment.contradicted
        return [
            self.caption,
            f"{self.moment.members:,}",
            *(f"{figure:.3f}" for figure in figures),
            "yes" if fits else "no",
            "yes" if contradicted else "no",
        ]


def run_moments(item: LabItem, steps: Sequence[LabStep], *, reveal_sealed: bool) -> list[RunMoment]:
    """Return the moments of a run; `BudgetSpent` where the mechanisms left are not counted."""
    course = trajectory(item, steps)
    start = Moment(0, run_space(item).count, Scorer(item.sealed.mechanism).score(EMPTY), False, False)
    moments = []
    for number, moment in enumerate((start, *course.moments)):
        before = steps[:number]
        last = before[-1] if before else None
        moments.append(
            RunMoment(
                "before any action" if last is None else _action_text(last.action),
                "" if last is None else " ".join(shown_step(last).split()),
                run_picture(f"stated after step {number}", item, before),
                _true_picture(item, before) if reveal_sealed else None,
                moment,
            )
        )
    return moments


def _true_picture(item: LabItem, steps: Sequence[LabStep]) -> GraphPicture:
    """Return the true graph beside what the same readings prove."""
    settings: list[Action] = [{k: v for k, v in step.action.items() if k != HYPOTHESIS} for step in steps if step.cost]
    truth = {"submit": {HYPOTHESIS: state_mechanism(item.sealed.mechanism)}}
    picture = run_picture("the true graph", item, replay_actions(LabEpisode(item), [*settings, truth]).steps)
    return replace(picture, remark=f"beside the same readings; {picture.remark.split('; ')[1]}")


def _action_text(action: Action) -> str:
    named: dict[str, Any] = {key: value for key, value in action.items() if key != HYPOTHESIS}
    if "set" in named:
        return f"set {named['set']} to {named.get('value')}"
    if "reactor" in named:
        return f"try {named['reactor']} on the reactor"
    return "submit" if "submit" in named else short_repr(named)


# --- Runs as a page with a slider over steps: graphs, lines of the metrics, what was set and read ---------------------
Episodes = Sequence[tuple[str, Sequence[LabStep]]]
LINES: tuple[tuple[str, Callable[[RunMoment], float]], ...] = (
    ("F1 of all edges", lambda view: view.moment.score.all_edge.f1),
    ("F1 of the roots", lambda view: view.moment.score.root.f1),
    ("F1 of the weights", lambda view: view.moment.score.freq_weight.f1),
)
LEFT, RIGHT, TOP, HEIGHT, STEP, MIN_WIDTH = 44, 60, 14, 150, 36, 420  # pixels of the plot


@dataclass(frozen=True)
class RunViews:
    """Implements EpisodeViews (bench.pages.capabilities).

    reveal_sealed: whether the true graph is view
    """

    reveal_sealed: bool

    def text(self, item: LabItem, steps: Sequence[LabStep], system: str) -> str:
        """Return the graph that was stated at the end; with what is sealed also all steps and the truth."""
        if not self.reveal_sealed:
            with refuse_uncounted(item):
                return graph_text(run_picture(f"{system}, {item.id}", item, steps))
        with refuse_uncounted(item):
            moments = run_moments(item, steps, reveal_sealed=self.reveal_sealed)
        rows = [[str(number), *view.row] for number, view in enumerate(moments)]
        last = moments[-1]
        graphs = [graph_text(picture) for picture in (last.stated, last.truth) if picture is not None]
        title = in_one_line(f"{system}, {item.id}")
        return "\n\n".join([title, aligned([*HEADINGS], rows), *graphs])

    def page(self, item: LabItem, episodes: Episodes) -> str:
        """Return one HTML file; without scripts all steps of each run stand below one another."""
        with refuse_uncounted(item):
            runs = [
                _run_content(number, name, run_moments(item, steps, reveal_sealed=self.reveal_sealed))
                for number, (name, steps) in enumerate(episodes)
            ]
        title = in_one_line(item.id)
        task = item.task
        remark = f"{len(task.nodes)} quantities, {task.allowance} settings allowed"
        return design_page(
            "trajectory.html", {"title": title, "crumbs": ["runs", title], "remark": remark, "runs": runs}
        )


def _run_content(number: int, name: str, moments: Sequence[RunMoment]) -> dict[str, Any]:
    """Return what the template needs of a run."""
    steps = [
        {
            "number": k,
            "caption": view.caption,
            "reading": view.reading,
            "row": view.row,
            "graphs": Markup(  # it escapes its texts
                graphs_svg([view.stated, *([view.truth] if view.truth else [])], prefix=f"run-{number}-{k}-")
            ),
        }
        for k, view in enumerate(moments)
    ]
    return {
        "anchor": f"run-{number}",
        "system": name,
        "verdict": moments[-1].stated.remark,
        "steps": steps,
        "plot": Markup(_plot(moments)),
        "headings": HEADINGS,
    }


def _plot(moments: Sequence[RunMoment]) -> str:
    """Return lines over steps: three F1 on the left scale, mechanisms left on the right, logarithmic one."""
    width = max(MIN_WIDTH, LEFT + RIGHT + STEP * max(1, len(moments) - 1))
    step = (width - LEFT - RIGHT) / max(1, len(moments) - 1)
    places = [LEFT + step * k for k in range(len(moments))]
    shares = Scale(0, 1, TOP + HEIGHT, TOP)
    most = max(view.moment.members for view in moments)
    members = Scale(1, max(10, most), TOP + HEIGHT, TOP, logarithmic=True)
    marks = [f'<rect class="cursor" x="{LEFT - 8}" y="{TOP - 8}" width="16" height="{HEIGHT + 16}"/>']
    marks += side_axis(shares.ticks(), LEFT, width - RIGHT)
    marks += [text_at(text, width - RIGHT + 8, y + 4, "soft") for y, text in members.ticks()]
    members_line = [(x, members.at(max(1, view.moment.members))) for x, view in zip(places, moments, strict=True)]
    marks.append(_polyline("members", members_line, "mechanisms left, right scale"))
    for k, (title, value) in enumerate(LINES):
        points = [(x, shares.at(value(view))) for x, view in zip(places, moments, strict=True)]
        marks.append(_polyline(f"line-{k}", points, title))
    base = TOP + HEIGHT
    marks += foot_axis([(x, str(number)) for number, x in enumerate(places)], base)
    signs = ["✓" if view.moment.equation_fits else "-" for view in moments]
    marks += [text_at(sign, x, base + 34, anchor="middle") for x, sign in zip(places, signs, strict=True)]
    label = f"metrics over {len(moments) - 1} steps; mechanisms left fall from {moments[0].moment.members:,} to "
    return figure(width, base + 42, f"{label}{moments[-1].moment.members:,}", marks).replace(
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
    """Means over the runs of a system on a suite after a step; a run that has ended counts with its last moment.

    going_on: runs that have this step; members: geometric mean; fits, contradicted: shares of the runs
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
        figures = (self.edge_f1, self.root_f1, self.weight_f1, self.fits, self.contradicted)
        counts = [self.setting, self.system, str(self.step), str(self.n), str(self.going_on), f"{self.members:.4g}"]
        return [*counts, *(f"{figure:.3f}" for figure in figures)]


class TrajectoryTable(NamedTuple):
    """rows: by suite, system and step; num_uncounted: runs whose mechanisms are not counted, and which are left out."""

    rows: Sequence[StepMeans]
    num_uncounted: int

    @property
    def headings(self) -> Sequence[str]:
        return MEAN_HEADINGS

    def to_dict(self) -> dict[str, Any]:
        return {"rows": [row._asdict() for row in self.rows], "uncounted": self.num_uncounted}


def mean_trajectories(transcripts: Iterable[Transcript], items: Mapping[tuple[str, str], LabItem]) -> TrajectoryTable:
    """Return the means of replayed runs; items: by digest of the pool and id; runs on others are passed over."""
    courses: defaultdict[tuple[str, str, str], list[Sequence[Moment]]] = defaultdict(list)
    configurations: defaultdict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    num_uncounted = 0
    for context, steps in transcripts:
        item = items.get((context.pool_digest, context.instance))
        if item is None:
            continue
        verify_transcript(LabEpisode(item), steps)
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
        stated = configurations[system]
        suffix = option_suffix(stated[options], differing_names(list(stated.values())))
        rows += _step_means(setting, system + suffix, courses[setting, system, options])
    return TrajectoryTable(rows, num_uncounted)


def _step_means(setting: str, system: str, courses: Sequence[Sequence[Moment]]) -> Iterable[StepMeans]:
    for step in range(max(map(len, courses))):
        moments = [course[min(step, len(course) - 1)] for course in courses]
        number = len(moments)
        yield StepMeans(
            setting,
            system,
            step + 1,
            number,
            sum(step < len(course) for course in courses),
            exp(fsum(log(max(1, moment.members)) for moment in moments) / number),
            fsum(moment.score.all_edge.f1 for moment in moments) / number,
            fsum(moment.score.root.f1 for moment in moments) / number,
            fsum(moment.score.freq_weight.f1 for moment in moments) / number,
            sum(moment.equation_fits for moment in moments) / number,
            sum(moment.contradicted for moment in moments) / number,
        )
