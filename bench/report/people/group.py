"""Participants of one set of terms as one system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.bench.answers.names import differing_names, option_suffix
from calibrant.bench.core.scoring import PEOPLE_SYSTEM, participant_of
from calibrant.bench.report.answers.named import NamedAnswer
from calibrant.dsl.errors import in_one_line


def group_people(answers: Sequence[NamedAnswer]) -> list[NamedAnswer]:
    """Return the answers, those of participants under the name of their group, as `people (40)`.

    Participants whose terms differ (feedback, study) are in groups of their own, named after the difference.
    """
    keys = [answer.context.options if participant_of(answer.context.system) else "" for answer in answers]
    configs: dict[str, Mapping[str, Any]] = {}
    groups: dict[str, set[str]] = {}
    for answer, key in zip(answers, keys, strict=True):
        if key:
            configs[key] = answer.context.config
            groups.setdefault(key, set()).add(answer.context.system)
    if not groups:
        return list(answers)
    differing = differing_names([*configs.values()])
    suffixes = {key: option_suffix(config, differing) for key, config in configs.items()}
    taken = {answer.system for answer in answers}
    group_names = {
        key: _free_name(f"{PEOPLE_SYSTEM} ({len(group)}){suffixes[key]}", taken) for key, group in groups.items()
    }
    return [
        answer._replace(system=in_one_line(group_names[key])) if key else answer
        for answer, key in zip(answers, keys, strict=True)
    ]


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name = f"{name} of studies"
    return name
