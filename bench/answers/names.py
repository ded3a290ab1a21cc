"""Names of systems and pools in tables: no two of one table look alike, and no part of a name is data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from calibrant.bench.core.scoring import AnswerContext
from calibrant.dsl.errors import in_one_line

SHORT_DIGEST = 8
CHOSEN = " (chosen)"  # ends the name of a row of the answers that a tie rule chose


class SystemKey(NamedTuple):
    """Identity of a system in tables. options: as text; is_chosen: of the answers that its tie rule chose."""

    system: str
    options: str
    is_chosen: bool = False

    @classmethod
    def of(cls, context: AnswerContext) -> SystemKey:
        return cls(context.system, context.options, context.is_chosen)


def system_names(configs: Mapping[SystemKey, Mapping[str, Any]]) -> dict[SystemKey, str]:
    """Return the names of systems, each with the options in which its runs differ; a name like another is quoted."""
    by_system: dict[str, list[Mapping[str, Any]]] = {}
    for key, config in configs.items():
        by_system.setdefault(key.system, []).append(config)
    differing = {system: differing_names(listed) for system, listed in by_system.items()}
    suffixes = {
        key: option_suffix(config, differing[key.system]) + CHOSEN * key.is_chosen for key, config in configs.items()
    }
    names = {key: in_one_line(key.system + suffix) for key, suffix in suffixes.items()}
    alike: dict[str, list[SystemKey]] = {}
    for key, name in names.items():
        alike.setdefault(_visible(name), []).append(key)
    for group in (group for group in alike.values() if len(group) > 1):
        has_suffix = any(suffixes[key] for key in group)
        for key in group:
            if key.system != _visible(key.system) or (has_suffix and not suffixes[key]):
                names[key] = in_one_line(f"{_quote(key.system)}{suffixes[key]}")
    return names


def _visible(name: str) -> str:
    """Return what a page shows of a name: white space at its ends is lost, and more than one space is one."""
    return " ".join(name.split())


def _quote(name: str) -> str:
    return re.sub(r" (?= )", r"\\x20", repr(name))


def pool_labels(names: Mapping[str, str]) -> dict[str, str]:
    """Return what tables call the pools of these digests: the name, and the digest's start where names are equal."""
    times = Counter(names.values())
    return {digest: name if times[name] == 1 else f"{name} ({digest[:SHORT_DIGEST]})" for digest, name in names.items()}


def differing_options(config: Mapping[str, Any], configs: Sequence[Mapping[str, Any]]) -> str:
    """Return the options in which a system's configurations differ, as a suffix of its name; empty for one alone."""
    return option_suffix(config, differing_names(configs))


def differing_names(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the options in which configurations differ."""
    names = sorted({name for config in configs for name in config})
    return [name for name in names if any(config.get(name) != configs[0].get(name) for config in configs)]


def option_suffix(config: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return these options of a configuration as a suffix of a system's name."""
    return f" ({', '.join(f'{name}={config.get(name)}' for name in names)})" if names else ""


def natural(text: str) -> tuple[tuple[str, int], ...]:
    """Return a key that sorts numbers inside names by value: n8 before n10."""
    parts = re.split(r"(\d+)", text)
    return tuple((part, 0) if not part.isdecimal() else ("", int(part)) for part in parts)
