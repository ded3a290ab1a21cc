"""The dataset card of a part of an export: what the Hub shows, and where its loader finds the file."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from calibrant.bench.hub.describe import Described

SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def card(part: Described) -> str:
    """README.md: settings of the Hub, then a page."""
    return f"---\n{yaml.safe_dump(_settings(part), sort_keys=False, allow_unicode=True)}---\n\n" + "\n".join(
        _page(part)
    )


def _settings(part: Described) -> dict[str, object]:
    number = len(part.rows)
    license_ = {"license": part.license} if part.license else {}
    return {
        "pretty_name": part.name,
        "language": ["en"],
        **license_,
        "tags": ["causal-inference", *["synthetic"] * part.drawn_from_seeds, "benchmark", "calibrant"],
        "size_categories": [next((name for limit, name in SIZES if number < limit), "n>1M")],
        "configs": [{"config_name": "default", "data_files": [{"split": part.split, "path": part.file}]}],
    }


def _page(part: Described) -> Iterator[str]:
    yield f"# {_plain(part.name)}"
    yield ""
    yield part.summary
    yield ""
    if part.with_gold:
        yield "**This part has gold. Publish it only if these items are meant for training.**"
    else:
        yield "This part has no gold and no digest of it. Ids and the order of rows tell nothing of the items."
    yield ""
    yield f"| {'pool' if part.with_gold else 'benchmark'} | items |"
    yield "|---|--:|"
    yield from (f"| {_plain(name)} | {number} |" for name, number in part.groups)
    yield ""
    yield "## Columns"
    yield "| column | meaning |"
    yield "|---|---|"
    yield from (f"| `{column.name}` | {column.means} |" for column in part.columns)
    yield ""
    yield "## Use"
    yield "```python"
    yield "from datasets import load_dataset"
    yield ""
    yield f'items = load_dataset("path/to/this/folder", split="{part.split}")'
    yield "```"
    yield "Answers are scored by `calibrant score`; `calibrant.rewards` takes these columns as they are."
    yield ""
    if not part.with_gold:
        yield from _about(part)
        return
    yield "## Audit"
    if part.audits:
        yield "Counts of `calibrant audit`, exact in the classes that it names:"
        yield ""
        yield from (f"- {_plain(line.replace(':', ' '))}" for line in part.audits)
    else:
        yield "No audit was exported with these items (`calibrant export --audits DIR`)."
    yield ""
    yield from _about(part)


def _about(part: Described) -> Iterator[str]:
    yield "## About the data"
    yield from (f"- **{_separate_words(name)}**: {text}" for name, text in part.responsible_ai.items())
    yield ""
    yield "## Canary"
    yield next((row["canary"] for row in part.rows), "")
    yield ""


def _plain(text: str) -> str:
    """Return a name of a file on one line, without anything that Markdown reads as more than a name."""
    return " ".join("".join(c if c.isalnum() or c in " ._-+()" else " " for c in text).split())[:120]


def _separate_words(name: str) -> str:
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).capitalize()
