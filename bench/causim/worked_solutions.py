"""Worked solutions of CauSim questions, to train on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calibrant.audits.causim.training import ORDERS, TrainingHeader, TrainingRecord, write_training
from calibrant.dsl.causim.item import CausimItem


class CausimSolutions:
    """Implements WorkedSolutions (bench.core.capabilities)."""

    @property
    def orders(self) -> Sequence[str]:
        return ORDERS

    def write(self, path: Path, items: Sequence[CausimItem], order: str) -> tuple[int, int]:
        return write_training(path, items, ORDERS[ORDERS.index(order)])


WORKED_SOLUTIONS = CausimSolutions()
LINE_RECORDS = {"training": (TrainingHeader, TrainingRecord)}
