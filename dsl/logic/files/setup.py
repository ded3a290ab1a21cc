"""Candidates of experiments: setup.json, and tables of TR columns."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import msgspec

from calibrant.dsl.errors import CalibrantError, PoolError
from calibrant.dsl.logic.files.midas import parse_clamps
from calibrant.dsl.logic.files.text_input import check_name, read_text
from calibrant.dsl.logic.task import Experiment, Setup, check_setup
from calibrant.dsl.records import decode_line

MAX_CANDIDATES = 1_000_000


class SetupRecord(msgspec.Struct):
    """Names of a setup in order; other fields are ignored."""

    stimuli: list[str]
    inhibitors: list[str]
    readouts: list[str]


def read_setup(path: Path) -> Setup:
    """Return the setup of a setup.json file; `PoolError` names the field of what is refused."""
    return parse_setup(read_text(path), path.name)


def parse_setup(text: str, file: str = "") -> Setup:
    """Return the setup of a JSON text, see `read_setup`."""
    try:
        record = decode_line(text, SetupRecord)
    except PoolError as error:
        raise error.with_location(file=file) from None
    for role, names in (("stimuli", record.stimuli), ("inhibitors", record.inhibitors), ("readouts", record.readouts)):
        for name in names:
            check_name(name, file=file, where=role)
    setup = Setup(tuple(record.stimuli), tuple(record.inhibitors), tuple(record.readouts))
    try:
        check_setup(setup)
    except CalibrantError as error:
        raise PoolError(str(error), file=file) from None
    return setup


def candidate_experiments(setup: Setup, *, max_stimuli: int = 2, max_inhibitors: int = 1) -> list[Experiment]:
    """Return the experiments with at most so many clamps, by number of clamps, then in header order, stimuli first.

    `PoolError` if there are more than MAX_CANDIDATES.
    """
    clamps = [(name, True) for name in setup.stimuli] + [(name, False) for name in setup.inhibitors]
    max_stimuli, max_inhibitors = min(max_stimuli, len(setup.stimuli)), min(max_inhibitors, len(setup.inhibitors))
    experiments = []
    for size in range(max_stimuli + max_inhibitors + 1):
        for tried, chosen in enumerate(combinations(clamps, size)):
            on = frozenset(name for name, stimulates in chosen if stimulates)
            if len(on) <= max_stimuli and size - len(on) <= max_inhibitors:
                experiments.append(Experiment(on, frozenset(name for name, stimulates in chosen if not stimulates)))
            if len(experiments) > MAX_CANDIDATES or tried > 20 * MAX_CANDIDATES:
                raise PoolError(f"more than {MAX_CANDIDATES} candidates; allow fewer stimuli or inhibitors at a time")
    return experiments


def read_candidates(path: Path, *, max_stimuli: int = 2, max_inhibitors: int = 1) -> list[Experiment]:
    """Return the experiments of a setup.json file, or of a CSV file of TR columns, one a row."""
    text = read_text(path)
    if text.lstrip().startswith("{"):
        setup = parse_setup(text, path.name)
        return candidate_experiments(setup, max_stimuli=max_stimuli, max_inhibitors=max_inhibitors)
    return parse_clamps(text, path.name)
