"""Which episodes a report shows step by step: one earned, one missed, one lucky and one short, where there are some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from calibrant.bench.answers.names import differing_names, natural, option_suffix
from calibrant.bench.core.attribution import KEY, KINDS
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.pages.capabilities import TIMELINES
from calibrant.bench.pages.timeline import Timeline
from calibrant.bench.report.answers.transcripts import Transcript, transcripts
from calibrant.bench.report.rows import Answer
from calibrant.bench.report.sections import ReportContents
from calibrant.dsl.episode import TranscriptError
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr

if TYPE_CHECKING:
    from calibrant.bench.core.benchmark import Benchmark

_Key: TypeAlias = tuple[str, str, str, str, int]


def chosen_episodes(
    of: Benchmark[Any],
    answers: Sequence[Answer],
    contents: ReportContents,
    items: Mapping[tuple[str, str], Any],
) -> Iterator[Timeline]:
    """Yield the first of each kind, by system and item, among those whose items and transcripts are at hand.

    items: by digest of the pool, and id
    """
    pools = [path for path in contents.pools if _is_of(path, of)]
    sources = contents.transcripts.get(of.name, ())
    if not pools or not sources:
        return
    first: dict[tuple[str, str], AnswerContext] = {}  # by kind and system
    for context, score in sorted(answers, key=lambda answer: (natural(answer[0].system), natural(answer[0].instance))):
        if (context.pool_digest, context.instance) in items and score.get(KEY):
            first.setdefault((score[KEY]["kind"], context.system), context)
    keys = {_key(context) for context in first.values()}
    transcript_by_key = {
        _key(origin.context): origin
        for origin in transcripts(sources, pools, contents.fields)
        if _key(origin.context) in keys
    }
    for kind in KINDS:
        keys_of_kind = [_key(context) for (kind_of_key, _), context in first.items() if kind_of_key == kind]
        transcript = next((transcript_by_key[key] for key in keys_of_kind if key in transcript_by_key), None)
        if transcript is not None:
            context = transcript.context
            configs = [origin.config for origin, _ in answers if origin.system == context.system]
            name = in_one_line(context.system + option_suffix(context.config, differing_names(configs)))
            yield _build_timeline(of, items[context.pool_digest, context.instance], transcript, name)


def _is_of(path: Any, of: Benchmark[Any]) -> bool:
    from calibrant.bench.core.registry import benchmark_of

    return benchmark_of(path).name == of.name


def _key(context: AnswerContext) -> _Key:
    return context.pool_digest, context.instance, context.system, context.options, context.sample


def _build_timeline(of: Benchmark[Any], item: Any, transcript: Transcript, name: str) -> Timeline:
    try:
        return of.require(TIMELINES)(item, transcript.steps, name)
    except TranscriptError as error:
        raise CalibrantError(f"{name} on {short_repr(item.id)} of {transcript.context.pool}: {error}") from None
