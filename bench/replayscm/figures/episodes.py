"""Figures of extended items in a page: bits left by world, and calibration of posteriors."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.audits.replayscm.extended.items import CalibrationBin
from calibrant.bench.pages.charts import Axis, Line, Mark, Panel, panels_svg
from calibrant.bench.replayscm.extended.curves import MAX_ITEMS, MAX_NOISY_ITEMS, LeftCurve
from calibrant.bench.report.sections import Plot
from calibrant.dsl.errors import in_one_line

LEFT_CAPTION = (
    "Mean bits left after each world: without noise the logarithm of the SCMs that fit, under noise the posterior"
    " entropy; a finished episode keeps its last value. Bars: two standard errors over items, of a system's first"
    f" {MAX_ITEMS} items without noise and {MAX_NOISY_ITEMS} with noise."
)
CALIBRATION_CAPTION = (
    "Posterior of the most probable held-out behaviour against the share of items where it is gold's, one statement an"
    " item, with 95 % Wilson intervals and the number of items. Items whose gold is drawn from the prior lie on the"
    " dashed line."
)


def left_plot(curves: Sequence[LeftCurve]) -> Plot | None:
    """Return the curves of all systems; None without any."""
    if not curves:
        return None
    lines = [
        Line(in_one_line(curve.system), tuple(Mark(p.worlds, p.mean, p.low, p.high) for p in curve.points))
        for curve in curves
    ]
    title = "Bits left by world"
    top = max(point.high for curve in curves for point in curve.points)
    drawing = panels_svg([Panel("", tuple(lines))], Axis("worlds", 0), Axis("bits left", 0, top), title)
    return Plot("bits_left", title, LEFT_CAPTION, drawing, in_page=True)


def calibration_plot(bins: Sequence[CalibrationBin]) -> Plot | None:
    """Return stated against true shares; None without statements."""
    if not bins:
        return None
    marks = [Mark(bin_.mean_stated, bin_.share_true, *bin_.interval, str(bin_.number)) for bin_ in bins]
    lines = (
        Line("statements", tuple(sorted(marks))),
        Line("as often as stated", (Mark(0, 0), Mark(1, 1)), printed=True),
    )
    title = "Calibration of posteriors"
    drawing = panels_svg([Panel("", lines)], Axis("stated posterior", 0, 1), Axis("share true", 0, 1), title)
    return Plot("posterior_calibration", title, CALIBRATION_CAPTION, drawing, in_page=True)
