"""The comparison of engines by hand: it counts questions, and it notices an engine that is wrong."""

from __future__ import annotations

import pytest

from tests.oracles.causim import TwinAnswerSet
from tests.soak.causim import engines
from tests.soak.causim.engines import Batch, compared, main


def test_engines_agree_and_a_wrong_one_is_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--small", "0", "--large", "0"]) == 0
    assert capsys.readouterr().out.count("0 questions, 0 differences") == 2
    for nodes in (3, 8):
        counts = compared(Batch(1, "tree", 0, nodes))
        assert counts["questions"] == 25
        assert counts["differences"] == 0

    class Wrong(TwinAnswerSet):
        def contains(self, answer: object) -> bool:
            return True

    monkeypatch.setattr(engines, "AnswerSet", Wrong)
    assert compared(Batch(1, "tree", 0, 3))["differences"] > 10
    assert compared(Batch(1, "tree", 0, 8))["differences"] > 10
