"""The file of a study: terms, participants, blocks of items and pages of questions; and studies as one static page."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal, TypeAlias, TypeVar
from zlib import crc32

import msgspec
from msgspec import Meta

from calibrant.bench.core.typed_moves import Act, WordsError
from calibrant.bench.play.folder import PlayFolder, check_participant
from calibrant.bench.play.game import (
    CORRECT,
    MEMBERS,
    Assignment,
    Completion,
    Feedback,
    Game,
    ItemStop,
    Language,
    PageTexts,
    PlayPool,
    Practice,
    QuestionsStop,
    Stop,
    Terms,
    aid_config,
    item_state,
)
from calibrant.bench.play.service.routes import play_page
from calibrant.bench.play.study import pages as study_pages
from calibrant.bench.runs.records import FILE_NAME
from calibrant.bench.toml_file import read_toml
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.parse_limits import TooLargeError, decode_json
from calibrant.dsl.text import known_names

# --- Orders of items for participants: fixed, shuffled, or the rows of a balanced Latin square ------------------------
Order: TypeAlias = Literal["fixed", "shuffled", "latin"]
T = TypeVar("T")


def ordered(things: Sequence[T], order: Order, seed: str, participant: str, index: int) -> list[T]:
    """Return things in the order of a participant; seed: of the study; index: of the participant, from 0."""
    if order == "shuffled":
        shuffled = list(things)
        Random(f"{seed} {participant}").shuffle(shuffled)
        return shuffled
    if order == "latin":
        return [things[k] for k in latin_row(len(things), index)]
    return list(things)


def latin_row(size: int, index: int) -> list[int]:
    """Return a row of a Latin square balanced for immediate predecessors (E. J. Williams 1949).

    There are `size` rows where it is even, twice as many where it is odd; index is taken modulo their number.
    """
    first = [(k + 1) // 2 if k % 2 else -(k // 2) for k in range(size)]
    row = [(k + index) % size for k in first]
    is_mirrored = size % 2 == 1 and index // size % 2 == 1
    return row[::-1] if is_mirrored else row


def index_of(participant: str, names: Sequence[str] | None) -> int:
    """Return the index of a participant in the list; for an id outside it, an integer derived from the id."""
    if names is not None and participant in names:
        return names.index(participant)
    return int.from_bytes(hashlib.sha256(participant.encode()).digest()[:4], "big")


MAX_PARTICIPANTS = 10_000
# p001-p040: a repeated prefix with two numbers; ids have as many digits as the first number
_RANGE = re.compile(r"([A-Za-z][A-Za-z_.-]{0,40}?)(\d{1,9})-\1(\d{1,9})", re.ASCII)


class StudySection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table [study]."""

    out: Annotated[str, Meta(description="folder of moves and records, relative to the study file's folder")]
    title: Annotated[str, Meta(min_length=1, max_length=200, description="title that participants read")] = "Study"
    titles: Annotated[dict[str, str], Meta(description="the title by code of a further language of `lang`")] = {}
    participants: Annotated[str | list[str], Meta(description='ids such as "p001-p040", a list of ids, or "any"')] = (
        "any"
    )
    minutes: Annotated[int, Meta(ge=0, le=10_000, description="about how long it takes; 0: not stated")] = 0
    consent: Annotated[str, Meta(description="Markdown file that has to be agreed to; empty asks for none")] = ""
    feedback: Annotated[
        Feedback, Meta(description="cells: while a formula is typed, shows which cells of the evidence it reproduces")
    ] = "none"
    reveal: Annotated[bool, Meta(description="show the verdict when an item ends, and all verdicts at the end")] = False
    order: Annotated[Order, Meta(description="order of the items between two pages of questions")] = "fixed"
    seed: Annotated[str, Meta(description="seed of shuffled orders and of the assignment to groups")] = ""
    screen_out: Annotated[
        Completion | None, Meta(description="as `completion`, for those who used up their tries at instructions")
    ] = None
    limit: Annotated[int, Meta(ge=0, le=86_400, description="seconds from the start to the end; 0 for no limit")] = 0
    lang: Annotated[
        str | list[str],
        Meta(description="en, de, or a file of texts such as fr.toml; participants choose from a list"),
    ] = "en"
    groups: Annotated[
        list[str],
        Meta(max_length=20, description="groups, balanced in size, to which participants are assigned as they begin"),
    ] = []
    completion: Annotated[
        Completion | None, Meta(description="{code = ...} or {url = ...}, shown to those who finished")
    ] = None
    aid: Annotated[
        str, Meta(description="aid shown after each reading (CausaLab only): `members`, or a file of the release")
    ] = ""
    origin: Annotated[
        str,
        Meta(
            pattern=r"^(https?://[A-Za-z0-9.:-]+)?$",
            description="public address if a reverse proxy is used; begins with https:// or http://, such as "
            "https://study.example.org",
        ),
    ] = ""


class Block(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table [[block]]: items of a pool, a page of questions, or instructions."""

    pool: Annotated[str, Meta(description="file of a pool, relative to the study file's folder")] = ""
    ids: Annotated[list[str], Meta(description="ids of items, public or the pool's; empty for all")] = []
    limit: Annotated[int, Meta(ge=0, le=3_600, description="seconds of each item, or of the page; 0 for no limit")] = 0
    instructions: Annotated[
        str, Meta(description="Markdown file to read; `questions` of the same block test its comprehension")
    ] = ""
    questions: Annotated[str, Meta(description="file of a page of questions")] = ""
    tries: Annotated[
        int,
        Meta(ge=0, le=100, description="attempts at questions about instructions, then the study ends; 0: no limit"),
    ] = 0
    groups: Annotated[list[str], Meta(description="groups that get this block; empty for all")] = []


class PracticeBlock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table [[practice]]: items that may be tried before the start."""

    pool: Annotated[str, Meta(min_length=1, description="file of a pool, relative to the study file's folder")]
    ids: Annotated[list[str], Meta(description="ids of items, public or the pool's; empty for all")] = []


class StudyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of a study."""

    study: StudySection
    block: Annotated[list[Block], Meta(min_length=1)]
    practice: list[PracticeBlock] = []
    version: Literal[1] = 1


class Study:
    """A study that was read and checked, with its pools and pages.

    names: ids of participants, None for any id
    pools: each pool once; practice: items to try before the start, None for none
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        content = read_toml(path, StudyFile)
        section = content.study
        self.section = section
        out = path.parent / section.out
        self.out = out.parent if out.name == FILE_NAME else out  # the path of the records' file means its folder
        self.names = _participants(section.participants, path.name)
        names = [section.lang] if isinstance(section.lang, str) else section.lang
        langs = tuple(study_pages.read_language(name, path.parent) for name in names)
        self._other_langs = [entry.code for entry in langs[1:]]
        if not langs or len({entry.code for entry in langs}) < len(langs):
            raise CalibrantError(f"{path.name}: study.lang needs a language, or a list of them, each once")
        langs = tuple(self._titled(entry) for entry in langs)
        consent = _text(self._named_file("consent", section.consent)) if section.consent else ""
        consents = {
            code: _text(self._named_file("consent", study_pages.in_language(section.consent, code)))
            for code in self._other_langs
            if section.consent
        }
        aid = Path(MEMBERS) if section.aid == MEMBERS else path.parent / section.aid if section.aid else None
        for name in ("completion", "screen_out"):
            completion: Completion | None = getattr(section, name)
            if completion is not None and bool(completion.code) == bool(completion.url):
                raise CalibrantError(f"{path.name}: study.{name} needs either a code or a url")
        if len(set(section.groups)) != len(section.groups) or len(section.groups) == 1 or "" in section.groups:
            raise CalibrantError(f"{path.name}: study.groups needs two names or more, each once")
        self.terms = Terms(
            title=section.title,
            consent=consent,
            feedback=section.feedback,
            reveal=section.reveal,
            aid=aid,
            minutes=section.minutes,
            completion=section.completion,
            screen_out=section.screen_out,
            groups=tuple(section.groups),
            seed=section.seed,
            langs=langs,
            consents=consents,
            limit=section.limit,
        )
        self.config = {"feedback": section.feedback, "study": section.title, **aid_config(aid)}
        self._pools: dict[Path, PlayPool] = {}
        self._blocks = [(block, self._block(index, block)) for index, block in enumerate(content.block)]
        self._stops = [stops for _, stops in self._blocks]
        for group in section.groups or [""]:
            self._check_group(group)
        self.practice = self._practice(content.practice)
        if self.practice is not None:
            contents = _contents(self.pools, [stop for stops in self._stops for stop in stops])
            # compared by content, because a copied pool has another digest and may have other ids
            for content_key, name in _contents(self.practice.pools, self.practice.stops).items():
                if content_key in contents:
                    where = "[[practice]], which shows its verdict, and in a [[block]]"
                    raise CalibrantError(f"{path.name}: {name} is in {where}")
        self.plan = lru_cache(MAX_PARTICIPANTS)(self._plan)

    def _titled(self, language: Language) -> Language:
        """Return a language with the study's title in it; `CalibrantError` if a title is of no further language."""
        titles = self.section.titles
        if unknown := sorted({*titles} - {*self._other_langs}):
            raise CalibrantError(
                f"{self.path.name}: study.titles has {unknown[0]}, which is no further language of lang"
            )
        if language.code not in titles:
            return language
        return study_pages.add_title(language, self.section.title, titles[language.code])

    def require_participant(self, name: str) -> str:
        """Return the id of a participant; `CalibrantError` for a malformed id, or one outside the study's list."""
        check_participant(name)
        if self.names is not None and name not in self.names:
            listed = ", ".join(self.names[:3]) + (f", ... ({len(self.names)} ids)" if len(self.names) > 3 else "")
            raise CalibrantError(f"{name} does not take part in {self.path.name}; participants are {listed}")
        return name

    @property
    def questions(self) -> list[tuple[str, Mapping[str, Any]]]:
        """(column, question) for all questions, in the order of the file."""
        pages = [stop for stops in self._stops for stop in stops if isinstance(stop, QuestionsStop)]
        names = page_names(stop.name for stop in pages)
        return [(f"{names[stop.name]}.{q['id']}", q) for stop in pages for q in stop.questions]

    @property
    def page_groups(self) -> dict[str, list[str]]:
        """Page of questions -> groups that get it, empty for all groups; in the order of the file."""
        blocks = ((block.groups, stop) for block, stops in self._blocks for stop in stops)
        return {stop.name: groups for groups, stop in blocks if isinstance(stop, QuestionsStop)}

    @property
    def question_places(self) -> dict[str, str]:
        """Column of a question -> text with its block, counted from 1, and its groups."""
        names, places = page_names(self.page_groups), dict[str, str]()
        for stop in (stop for stops in self._stops for stop in stops if isinstance(stop, QuestionsStop)):
            groups = self.page_groups[stop.name]
            listed = f" of {'groups' if len(groups) > 1 else 'group'} {', '.join(groups)}" if groups else ""
            place = f"block {int(stop.name.partition('-')[0]) + 1}{listed}"
            places |= {f"{names[stop.name]}.{question['id']}": place for question in stop.questions}
        return places

    @property
    def pools(self) -> list[PlayPool]:
        return list(self._pools.values())

    def _check_group(self, group: str) -> None:
        """Raise `CalibrantError` for a group without a block, and for items that it has twice."""
        keys = [stop.key for stops in self._blocks_of(group) for stop in stops]
        where = f"{self.path.name}: group {group}" if group else self.path.name
        for key in keys:
            if keys.count(key) > 1:
                raise CalibrantError(f"{where}: {key.instance} is named twice; each participant plays an item once")
        if not keys:
            raise CalibrantError(f"{where} has no block")

    def _blocks_of(self, group: str) -> list[list[Stop]]:
        return [stops for block, stops in self._blocks if not block.groups or group in block.groups]

    def _plan(self, participant: str, assigned: Assignment | None = None) -> tuple[Stop, ...]:
        """Return the stops of a participant: pages of questions in the file's order, between them items by `order`.

        assigned: group of the participant, whose rank in it replaces the index among all; None without groups
        """
        index = index_of(participant, self.names) if assigned is None else assigned.rank
        plan: list[Stop] = []
        waiting: list[Stop] = []
        blocks = self._blocks_of("" if assigned is None else assigned.group)
        for stops in [*blocks, []]:  # the empty block flushes the items after the last page
            if stops and isinstance(stops[0], ItemStop):
                waiting += stops
                continue
            seed = f"{self.section.seed} {len(plan)}"
            plan += [*ordered(waiting, self.section.order, seed, participant, index), *stops]
            waiting = []
        return tuple(plan)

    def _practice(self, blocks: Sequence[PracticeBlock]) -> Practice | None:
        """Return the items of practice, each once; None if there are none."""
        pools: dict[Path, PlayPool] = {}
        stops: dict[Stop, None] = {}
        for index, block in enumerate(blocks):
            path = self._named_file(f"practice {index + 1}: pool", block.pool)
            pool = _open_pool(path, pools)
            stops |= dict.fromkeys(ItemStop(pool.key(instance)) for instance in block.ids or pool.indices)
        return Practice(list(pools.values()), tuple(stops)) if stops else None

    def _named_file(self, where: str, name: str) -> Path:
        """Return a file named by the study, relative to its folder; `CalibrantError` if it is missing."""
        path = self.path.parent / name
        if not path.is_file():
            raise CalibrantError(
                f"{self.path.name}: {where}: there is no file {short_repr(name)} in {self.path.parent}"
            )
        return path

    def _block(self, index: int, block: Block) -> list[Stop]:
        where = f"{self.path.name}: block {index + 1}"
        for group in block.groups:
            if group not in self.section.groups:
                raise CalibrantError(
                    f"{where}: no group {short_repr(group)}; {known_names(group, self.section.groups)}"
                )
        if bool(block.pool) == bool(block.questions or block.instructions):
            raise CalibrantError(f"{where}: give either `pool`, or `questions`, `instructions` or both")
        if not block.pool:
            return [self._page(index, block)]
        if block.tries:
            raise CalibrantError(f"{where}: `tries` needs `instructions` with `questions`")
        path = self._named_file(f"block {index + 1}: pool", block.pool)
        pool = _open_pool(path, self._pools)
        if self.terms.aid is not None:
            pool.check_aid(self.terms.aid)
        ids = block.ids or list(pool.indices)
        return [ItemStop(pool.key(instance), block.limit) for instance in ids]

    def _page(self, index: int, block: Block) -> QuestionsStop:
        """Return a page of questions, or of instructions and the questions that test their comprehension."""
        where = f"{self.path.name}: block {index + 1}"
        if block.ids:
            raise CalibrantError(f"{where}: `ids` needs a `pool`")
        if block.limit and block.instructions and block.questions:
            raise CalibrantError(f"{where}: questions about instructions have tries, no limit")
        text, title, file = "", "Instructions", None
        if block.instructions:
            file = self._named_file(f"block {index + 1}: instructions", block.instructions)
            text = _text(file)
        questions: list[dict[str, Any]] = []
        if block.questions:
            file = self._named_file(f"block {index + 1}: questions", block.questions)
            page = read_toml(file, study_pages.QuestionPage)
            title, questions = page.title, study_pages.check_page(page, file.name)
        if block.instructions and any(CORRECT not in question for question in questions):
            raise CalibrantError(f"{where}: each question about instructions states what is `correct`")
        if block.tries and not (block.instructions and questions):
            raise CalibrantError(f"{where}: `tries` needs `instructions` with `questions`")
        assert file is not None
        translations = {code: self._translated(index, block, code, questions) for code in self._other_langs}
        return QuestionsStop(f"{index}-{file.stem}", title, questions, text, block.tries, translations, block.limit)

    def _translated(self, index: int, block: Block, code: str, questions: Sequence[Mapping[str, Any]]) -> PageTexts:
        """Return the texts of a page in another language, from files whose names have its code before their suffix."""
        text, title, texts = "", "Instructions", list[dict[str, Any]]()
        where = f"block {index + 1}"
        if block.instructions:
            text = _text(self._named_file(f"{where}: instructions", study_pages.in_language(block.instructions, code)))
        if block.questions:
            file = self._named_file(f"{where}: questions", study_pages.in_language(block.questions, code))
            page = read_toml(file, study_pages.QuestionPage)
            title, texts = page.title, study_pages.translated_questions(questions, page, file.name)
        return PageTexts(title, text, texts)


def page_names(stops: Iterable[str]) -> dict[str, str]:
    """Return stop -> name of the page in results: that of its file, followed by the block's index if it is not unique.

    stops: names of stops, such as 2-after for after.toml in the block of index 2
    """
    parts = {name: name.partition("-") for name in stops}
    counts = Counter(file for _, _, file in parts.values())
    return {name: file if counts[file] == 1 else f"{file}{index}" for name, (index, _, file) in parts.items()}


def _open_pool(path: Path, pools: dict[Path, PlayPool]) -> PlayPool:
    """Return the pool at a path from `pools`, read and added there if it is missing."""
    resolved = path.resolve()
    if resolved not in pools:
        pools[resolved] = PlayPool(path)
    return pools[resolved]


def _contents(pools: Sequence[PlayPool], stops: Sequence[Stop]) -> dict[str, str]:
    """Map the content of each item, without its id and labels, to its id."""
    by_digest = {pool.digest: pool for pool in pools}
    ids: dict[str, str] = {}
    for key in (stop.key for stop in stops if isinstance(stop, ItemStop)):
        pool = by_digest[key.pool_digest]
        record = pool.benchmark.items.record(pool.item(key.instance))
        content = {name: value for name, value in record.items() if name not in ("id", "labels")}
        ids[f"{pool.benchmark.name} {json.dumps(content, sort_keys=True)}"] = key.instance
    return ids


def _text(path: Path) -> str:
    """Return a text of consent or instructions."""
    if path.stat().st_size > 4 * study_pages.MAX_CONSENT_CHARS:  # a character of UTF-8 has at most 4 bytes
        raise CalibrantError(f"{path}: at most {study_pages.MAX_CONSENT_CHARS:,} characters are shown")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise CalibrantError(f"{path}: not a text in UTF-8") from None
    if len(text) > study_pages.MAX_CONSENT_CHARS:
        raise CalibrantError(f"{path}: at most {study_pages.MAX_CONSENT_CHARS:,} characters are shown")
    if not text.strip():
        raise CalibrantError(f"{path}: there is no text in it; leave it out of the study to show none")
    return text


def _participants(stated: str | list[str], file: str) -> Sequence[str] | None:
    """Return the ids of a list or a range; None for any."""
    if stated == "any":
        return None
    if isinstance(stated, str):
        match = _RANGE.fullmatch(stated)
        if match is None:
            example = 'such as "p001-p040", a list of ids, or "any"'
            raise CalibrantError(f"{file}: participants is {short_repr(stated)}; expected a range {example}")
        first, last = int(match[2]), int(match[3])
        if not first <= last < first + MAX_PARTICIPANTS:
            allowed = f"from the first to the last, 1 to {MAX_PARTICIPANTS:,} ids"
            raise CalibrantError(f"{file}: participants is {short_repr(stated)}: {allowed}")
        return [f"{match[1]}{number:0{len(match[2])}d}" for number in range(first, last + 1)]
    if not stated or len(stated) > MAX_PARTICIPANTS or len(set(stated)) < len(stated):
        raise CalibrantError(f"{file}: participants needs 1 to {MAX_PARTICIPANTS:,} ids, each once")
    return [check_participant(name) for name in stated]


# --- Studies as one static page, for items that are not interactive: without gold; answers are downloaded -------------
MAX_DOWNLOAD_BYTES = 8_000_000


class Answered(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One stop of a download."""

    stop: Annotated[str, Meta(description="public id of the item, or name of the page of questions")]
    seconds: Annotated[float, Meta(ge=0, le=1e6, description="for which it was shown")] = 0.0
    draft: Annotated[dict[str, Any] | None, Meta(description="the answer as it was written; null for no answer")] = None
    answers: Annotated[dict[str, Any], Meta(description="answers to a page of questions, by id")] = {}


class Download(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """File with a participant's answers that a static page saves."""

    participant: str
    agreed: bool
    stops: list[Answered]
    digests: Annotated[list[str], Meta(description="SHA-256 of the pools that the page was made from")]
    version: int = 1


def static_page(study: Study, participant: str = "") -> str:
    """Return the static page of a study; `CalibrantError` for interactive items, which need a server.

    participant: id whose order of items the page has; empty for the order of the file
    """
    if participant:
        study.require_participant(participant)
    _refuse_served_terms(study)
    stops: list[dict[str, Any]] = []
    pools, digests = {pool.digest: pool for pool in study.pools}, [pool.digest for pool in study.pools]
    for stop in study.plan(participant):
        if isinstance(stop, QuestionsStop):
            questions = [
                {**question, "values": study_pages.value_text(question)} for question in stop.texts("").questions
            ]
            page = {"phase": "questions", "name": stop.name, "heading": stop.title, "questions": questions}
            stops.append(
                page
                | {"instructions": study_pages.consent_html(stop.instructions, study_pages.PAGE_HEADING), "tries": 0}
            )
            continue
        pool = pools[stop.key.pool_digest]
        game = Game(pool, stop.key.instance)
        if game.episode is not None:
            raise CalibrantError(
                f"{study.path.name}: items of {pool.path.name} are interactive; a file is not: serve the study instead"
            )
        stops.append({"phase": "item", "item": item_state(game, with_cells=False)})
    plan = {
        "title": study.terms.title,
        "task": study_pages.task_text(study.plan(participant), pools, study.terms.minutes),
        "privacy": [study_pages.PRIVACY, study_pages.IN_BROWSER],
        "consent": study_pages.consent_html(study.terms.consent),
        # checksums of ids: the page can refuse other ids without listing the participants
        "names": None if study.names is None else [crc32(name.encode()) for name in study.names],
        "stops": stops,
        "digests": digests,
    }
    # separates the answers of this study from those of others in the same browser
    plan["key"] = hashlib.sha256(json.dumps([plan, str(study.section.out)]).encode()).hexdigest()[:32]
    return play_page(study.terms.title, participant, json.dumps(plan), langs=study.terms.langs)


def _refuse_served_terms(study: Study) -> None:
    """Raise `CalibrantError` for terms that only a server can enforce: anyone can read a file's code and answers."""
    stops = study.plan("")
    unsupported = {
        "two languages": len(study.terms.langs) > 1,
        "completion": study.terms.completion is not None,
        "groups": bool(study.terms.groups),
        "limit": bool(study.terms.limit) or any(stop.limit for stop in stops),
        "instructions with questions": any(isinstance(s, QuestionsStop) and s.checks_instructions for s in stops),
    }
    for name, is_used in unsupported.items():
        if is_used:
            raise CalibrantError(f"{study.path.name}: a file cannot enforce {name}: serve the study instead")


def import_downloads(study: Study, files: list[Path]) -> Iterator[str]:
    """Write downloads of a study's static page into its folder as events and records; yield a line on each file."""
    with PlayFolder(study.out, study.pools, study.config) as folder:
        for file in files:
            yield f"{file}: {_import_one(study, folder, _read(file))}"


def _read(file: Path) -> Download:
    if file.stat().st_size > MAX_DOWNLOAD_BYTES:
        raise CalibrantError(f"{file}: at most {MAX_DOWNLOAD_BYTES:,} bytes are read")
    try:
        return decode_json(file.read_bytes(), Download)
    except (msgspec.DecodeError, UnicodeDecodeError, TooLargeError) as error:
        raise CalibrantError(f"{file}: no download of a questionnaire: {error}") from None


def _import_one(study: Study, folder: PlayFolder, download: Download) -> str:
    name = study.require_participant(download.participant)
    if download.digests != [pool.digest for pool in study.pools]:
        raise CalibrantError(f"{name}: the page was made from other pools than those of {study.path.name}")
    if study.terms.consent and not download.agreed:
        raise CalibrantError(f"{name}: no consent was given")
    folder.begin(name, agreed=download.agreed)
    by_stop = {answered.stop: answered for answered in download.stops}
    counts = {"recorded": 0, "there already": 0, "without an answer": 0, "not reached": 0}
    unreadable = []
    positions = {answered.stop: position for position, answered in enumerate(download.stops)}
    # in the order of the page, which is that of the file if the page was made without a participant
    for stop in sorted(study.plan(name), key=lambda stop: positions.get(_page_name(folder, stop), len(positions))):
        if isinstance(stop, QuestionsStop):
            answered = by_stop.get(stop.name)
            if answered is not None and not folder.events(name, stop.key):
                folder.add(name, stop.key, study_pages.answers_event(stop, answered.answers), answered.seconds)
            continue
        try:
            counts[_import_item(folder, name, stop, by_stop)] += 1
        except WordsError as error:
            unreadable.append(f"; not recorded: {stop.key.instance}: {error}")
    return (
        f"{name}: " + ", ".join(f"{number} {kind}" for kind, number in counts.items() if number) + "".join(unreadable)
    )


def _page_name(folder: PlayFolder, stop: Stop) -> str:
    """Return the name of a stop in a download: the public id of an item, or the name of a page."""
    if isinstance(stop, QuestionsStop):
        return stop.name
    pool = folder.pools[stop.key.pool_digest]
    return str(pool.public.shown(pool.item(stop.key.instance)).id)


def _import_item(folder: PlayFolder, name: str, stop: ItemStop, by_stop: dict[str, Answered]) -> str:
    if folder.is_closed(name, stop.key):
        return "there already"
    game = folder.game(name, stop.key)
    answered = by_stop.get(game.shown.id)
    if answered is None:
        return "not reached"
    parser = game.pool.words  # of typed moves and drafts
    action: dict[str, Any] | None = None
    if answered.draft is not None:
        draft = parser.check_draft(game.shown, answered.draft)
        stated = parser.read(game.shown, game.position._replace(draft=draft), "submit")
        assert isinstance(stated, Act)
        action = dict(stated.action)
        game.check(action)
    event: dict[str, Any] = {"give_up": {}} if action is None else {"act": action}
    folder.add(name, stop.key, event, answered.seconds)
    folder.record(name, folder.game(name, stop.key))
    return "without an answer" if action is None else "recorded"
