"""Plots of extended items: bits left by world, and calibration of posteriors."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.audits.replayscm.extended.calibration import CalibrationBin
from calibrant.bench.pages.design.tokens import TOKENS
from calibrant.bench.replayscm.extended.curves import LeftCurve
from calibrant.bench.report.figures.drawing import drawn_svg, legend, looks, new_figure, plain, style
from calibrant.bench.report.sections import Plot

LEFT_CAPTION = (
    "Mean bits left after each world: without noise the logarithm of the SCMs that fit, under noise the posterior"
    " entropy; a finished episode keeps its last value. Bands: two standard errors over items."
)
CALIBRATION_CAPTION = (
    "Posterior of the most probable held-out behaviour against the share of items where it is gold's, one statement an"
    " item, with 95 % Wilson intervals. Items whose gold is drawn from the prior lie on the diagonal."
)


def left_plot(curves: Sequence[LeftCurve]) -> Plot | None:
    """Return the curves of all systems; None without any. `MissingExtraError` without matplotlib."""
    if not curves:
        return None
    with style():
        figure, ((axes,),) = new_figure(1, 1, extra=1.5)
        by_system = looks(curve.system for curve in curves)
        for curve in curves:
            look = by_system[curve.system]
            worlds = [point.worlds for point in curve.points]
            means = [point.mean for point in curve.points]
            lows, highs = [point.low for point in curve.points], [point.high for point in curve.points]
            axes.fill_between(worlds, lows, highs, color=look.colour, alpha=0.15, linewidth=0)
            axes.plot(worlds, means, color=look.colour, marker=look.marker, markersize=3, label=plain(curve.system))
        axes.set_xlabel("worlds")
        axes.set_ylabel("bits left")
        axes.set_ylim(bottom=0)
        legend(figure, [axes])
        return Plot("bits_left", "Bits left by world", LEFT_CAPTION, drawn_svg(figure))


def calibration_plot(bins: Sequence[CalibrationBin]) -> Plot | None:
    """Return stated against true shares; None without statements. `MissingExtraError` without matplotlib."""
    if not bins:
        return None
    with style():
        figure, ((axes,),) = new_figure(1, 1, extra=0.5)
        axes.plot([0, 1], [0, 1], color=TOKENS["edge"].light, linewidth=0.8, linestyle="--")
        stated = [bin_.mean_stated for bin_ in bins]
        shares = [bin_.share_true for bin_ in bins]
        reaches = [
            (share - bin_.interval[0], bin_.interval[1] - share) for bin_, share in zip(bins, shares, strict=True)
        ]
        axes.errorbar(
            stated,
            shares,
            yerr=[[max(0.0, low) for low, _ in reaches], [max(0.0, high) for _, high in reaches]],
            color=TOKENS["link"].light,
            marker="o",
            linewidth=0,
            elinewidth=0.9,
        )
        for bin_, x, y in zip(bins, stated, shares, strict=True):
            axes.annotate(str(bin_.number), (x, y), textcoords="offset points", xytext=(5, -9), fontsize=7)
        axes.set_xlim(0, 1.03)
        axes.set_ylim(0, 1.03)
        axes.set_xlabel("stated posterior")
        axes.set_ylabel("share true")
        return Plot("posterior_calibration", "Calibration of posteriors", CALIBRATION_CAPTION, drawn_svg(figure))
