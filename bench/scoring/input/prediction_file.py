"""The objects of a file of predictions, each with where it stands: JSON lines, or a log of Inspect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from calibrant.bench.scoring.input.eval_logs import EvalLog, is_eval_log
from calibrant.bench.scoring.input.json_lines import numbered_lines, prediction_object, shown_name
from calibrant.dsl.errors import CalibrantError, MissingExtraError


class PredictionFile:
    """A file of predictions.

    num_failed: samples of a log that ended with an error and are left out, so far
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.num_failed = 0

    def objects(self) -> Iterator[tuple[str, dict[str, Any] | None]]:
        """Return where each stands, and what it says; None for what is no object. `CalibrantError` names the file."""
        if not is_eval_log(self._path):
            for number, raw in numbered_lines(self._path):
                try:
                    line = prediction_object(raw)
                except CalibrantError as error:
                    raise CalibrantError(f"{shown_name(self._path)}: line {number}: {error}") from None
                yield f"line {number}", line
            return
        log = EvalLog(self._path)
        try:
            yield from log.lines()
        except MissingExtraError as error:
            raise MissingExtraError(f"{shown_name(self._path)}: {error}") from None
        except CalibrantError as error:
            raise CalibrantError(f"{shown_name(self._path)}: {error}") from None
        self.num_failed = log.num_failed
