"""Meaning of exit code 1 of the commands that have it; 0 is done, 2 bad input, 130 interrupted."""

from __future__ import annotations

from collections.abc import Mapping

FAILED_CHECKS: Mapping[str, str] = {
    "audit": "`--fail-on` applies: an item is ambiguous, or has a finding of that kind",
    "board": "a submission, or the suite, is red",
    "demo": "an instance crashed",
    "family": "the models are too many to count, or `--fail-on` applies",
    "fit": "nothing of the class fits the table",
    "harden": "an item stays undecided",
    "network": "`--fail-on` applies",
    "play": "the answer was not right",
    "pool check": "a check failed",
    "run": "an instance crashed",
    "table": "a stored evaluation of `--official` comes out otherwise",
    "variants": "`--check` applies: a variant fails",
    "verify": "a certificate does not hold, or was not checked within its budget",
}
EXIT_CODES: dict[int, str] = {
    0: "done",
    2: "bad usage or input; a line on standard error names it",
    130: "interrupted",
}


def exit_codes(command: str) -> Mapping[int, str]:
    """Return the exit codes of a command and what they mean, in their order."""
    failed = {1: FAILED_CHECKS[command]} if command in FAILED_CHECKS else {}
    return dict(sorted((EXIT_CODES | failed).items()))
