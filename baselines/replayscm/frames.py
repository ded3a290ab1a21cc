"""The training panel of a task as structure learning sees it."""

from __future__ import annotations

from calibrant.baselines.structure_learning.frame import Frame, frame_from_columns
from calibrant.dsl.replayscm.world import Panel


def frame_from_panel(panel: Panel) -> Frame:
    """All rows of a panel; a variable counts as set in the worlds that target it."""
    values, clamped = ([columns[v] for v in panel.variables] for columns in (panel.columns, panel.clamped))
    return frame_from_columns(panel.variables, values, clamped, panel.num_rows)
