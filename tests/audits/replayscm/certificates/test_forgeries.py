"""Forged certificates of counts, capped counts and unique members: none that is false verifies."""

from __future__ import annotations

from random import Random

import pytest

from calibrant.audits.claims import Refused
from calibrant.audits.replayscm.certificates.verify import verify
from tests.support.effort import effort
from tests.support.forgery.replayscm import KINDS, forgeries, genuine, is_true

ENOUGH = 50


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_no_false_certificate_verifies(kind: str) -> None:
    """Of each certificate six changes at drawn places beside those that know the claim; 200 in a soak."""
    assert len(genuine(kind)) > 1
    for problem, file in genuine(kind):
        assert verify(file, problem)
        assert is_true(problem, file)
    false = 0
    for problem, forged in forgeries(kind, Random(kind), effort(6, 200)):
        if not isinstance(forged, dict) or is_true(problem, forged):
            continue
        false += 1
        with pytest.raises(Refused) as refusal:
            verify(forged, problem)
        assert len(str(refusal.value)) < 1_000
        assert str(refusal.value).isprintable()
    assert false >= ENOUGH
