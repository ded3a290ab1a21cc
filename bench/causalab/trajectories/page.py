"""Runs as a page with a slider over steps: graphs, lines of the metrics, what was set and read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from calibrant.bench.causalab.pages import refuse_uncounted
from calibrant.bench.causalab.plots.picture import run_picture
from calibrant.bench.causalab.trajectories.moments import HEADINGS, RunMoment, run_moments
from calibrant.bench.pages.aligned import aligned
from calibrant.bench.pages.charts import Scale, figure, foot_axis, side_axis, text_at
from calibrant.bench.pages.design.page import design_page
from calibrant.bench.pages.graphs import graph_text, graphs_svg
from calibrant.dsl.causalab.episode import LabStep
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.errors import in_one_line

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
