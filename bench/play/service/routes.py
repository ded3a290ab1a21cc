"""Routes of the server (page, states, moves), and running it: addresses and links of participants."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec
from markupsafe import Markup

from calibrant.bench.core.typed_moves import WordsError
from calibrant.bench.pages.page import design_page
from calibrant.bench.pages.tokens import contrast_rules
from calibrant.bench.play.clocks import Elapsed, ticking
from calibrant.bench.play.folder import Clock, PageClock, PlayFolder, check_participant
from calibrant.bench.play.game import ENGLISH, ItemStop, Language, Plan, Practice, Terms, aid_config
from calibrant.bench.play.participants import Sitting, StaleError
from calibrant.bench.play.review import Reviews
from calibrant.bench.play.service.server import (
    HOST,
    Address,
    Gate,
    PlayServer,
    Refusal,
    Response,
    Target,
    new_secret,
    read_address,
    write_address,
)
from calibrant.dsl.atomic_write import write_privately
from calibrant.dsl.errors import CalibrantError

# --- Practice: a session for each participant, in memory alone, at addresses of its own -------------------------------


class PracticeRooms:
    """The practice of a study, always with feedback and verdicts, for nothing is recorded."""

    def __init__(self, address: Address, terms: Terms, practice: Practice) -> None:
        self._address = address
        self._practice = practice
        self._terms = Terms(f"{terms.title}: practice", feedback="cells", reveal=True, aid=terms.aid, langs=terms.langs)
        config = {"feedback": self._terms.feedback, **aid_config(terms.aid)}
        self._folder = PlayFolder(None, practice.pools, config)
        self._reviews = Reviews(self._folder)

    def token(self, participant: str) -> str:
        """Return the token in the address of a participant's practice, distinct from ids because of a blank."""
        return self._address.participant_token(f"{participant} practice")

    def open(self, participant: str) -> Sitting:
        """Return a new session that has begun."""
        stops = self._practice.stops
        sitting = Sitting(self._folder, participant, lambda name, group: stops, self._terms, reviews=self._reviews)
        self._folder.begin(participant, agreed=False)  # without a language: each page requests the study's
        return sitting

    def warm_up(self) -> None:
        """Load and compile the code of verdicts."""
        self._folder.warm_up()


# --- The page of play, which requests the state from the server and shows it ------------------------------------------


@lru_cache(maxsize=64)
def play_page(
    title: str,
    participant: str,
    plan: str = "",
    offered: str = "",
    langs: tuple[Language, ...] = (ENGLISH,),
    *,
    is_listed: bool = False,
) -> str:
    """Return the page of play.

    participant: id from the address, empty for none; plan: all content of a static page, empty for a served one
    offered: an unused id of the study's list; is_listed: whether there is a list, so that other ids are refused
    """
    content = {
        "participant": participant,
        "offered": offered,
        "listed": is_listed,
        "plan": json.loads(plan) if plan else None,
        "langs": [entry.code for entry in langs],
        "names": {entry.code: entry.name for entry in langs},
        "texts": {entry.code: json.loads(entry.texts) for entry in langs if entry != ENGLISH},
    }
    embedded = json.dumps(content)
    # `</` and `<!--` would end the script element
    page = {
        "title": title,
        "crumbs": [title],
        "lang": langs[0].code,
        "embedded": Markup(embedded.replace("<", "\\u003c")),
    }
    page["contrast"] = Markup(contrast_rules())
    return design_page("play/play.html", page)


MAX_SITTINGS = 10_000  # participants of one server


class PlayRoutes:
    """Implementation of Routes (bench.play.service.server).

    names: ids of participants, None for any id
    practice: offered on the start page, None for none
    """

    def __init__(
        self,
        folder: PlayFolder,
        address: Address,
        terms: Terms,
        plan: Plan,
        names: Sequence[str] | None,
        practice: Practice | None = None,
    ) -> None:
        self._folder = folder
        self._address = address
        self._terms = terms
        self._plan = plan
        self._names = names
        self._lock = threading.Lock()
        self._rooms = None if practice is None else PracticeRooms(address, terms, practice)
        self._names_by_token: dict[str, str] = {}
        self._names_by_practice: dict[str, str] = {}
        for name in (*(names or ()), *folder.participants):
            self._admit(name)
        self._in_use: set[str] = set()  # ids that were entered, or whose link was opened
        self._sittings: dict[str, Sitting] = {}
        self._reviews = Reviews(folder)
        for name in folder.participants:  # their limits count down even without an open page
            self._sitting(address.participant_token(name)).resume()

    def warm_up(self) -> None:
        """Load and compile the code of verdicts of study and practice."""
        self._folder.warm_up()
        if self._rooms is not None:
            self._rooms.warm_up()

    def tick(self) -> None:
        """End stops whose limits are over, and store the seconds since the last events."""
        with self._lock:
            sittings = [self._sittings[token] for token in self._names_by_token if token in self._sittings]
        elapsed: dict[str, Elapsed] = {}
        for sitting in sittings:
            if not sitting.lock.acquire(blocking=False):  # in use: left for the next tick
                continue
            try:
                sitting.close_if_over()
                entry = sitting.elapsed
            finally:
                sitting.lock.release()
            if entry is not None:
                elapsed[sitting.participant] = entry
        self._folder.store_elapsed(elapsed)

    def get(self, target: Target) -> Response:
        """Answer a GET: the page, or the state."""
        query = {name: values[-1] for name, values in parse_qs(target.query).items()}
        if target.token == self._address.token:
            if target.verb == "":
                named = query.get("participant", "")
                offered = "" if named else self._unused_name()
                is_listed = self._names is not None
                terms = self._terms
                text = play_page(terms.title, named, offered=offered, langs=terms.langs, is_listed=is_listed)
                return Response(200, text)
            raise Refusal(404, "no such page")
        sitting = self._sitting(target.token)
        if target.verb == "":
            return Response(200, play_page(self._terms.title, "", langs=self._terms.langs))
        if target.verb == "review":
            with sitting.lock:
                page = sitting.review_page()
            if page is None:
                raise Refusal(404, "no such page")
            return Response(200, page)
        if target.verb not in ("state", "alive"):
            raise Refusal(404, "no such page")
        with sitting.lock:
            if target.verb == "alive":  # returns no state, because a page in the background must not open the next item
                return Response(200, {"writer": sitting.claim(query.get("tab", ""))})
            sitting.ask_language(query.get("lang"))
            can_write = sitting.claim(query.get("tab", ""), force=query.get("take") == "1")
            return Response(200, self._state(target.token, sitting) | {"writer": can_write})

    def post(self, target: Target, body: Mapping[str, Any]) -> Response:
        """Answer a POST: the entry of a participant, or a move."""
        if target.token == self._address.token:
            if target.verb != "enter":
                raise Refusal(404, "no such page")
            return self._enter(body)
        sitting = self._sitting(target.token)
        with sitting.lock:
            if not sitting.claim(str(body.get("tab", ""))[:64]):
                state = self._state(target.token, sitting)
                return Response(423, state | {"writer": False, "problem": "another window is in use"})
            try:
                sitting.page_clock = _read_clock(body)
                stop = self._do(sitting, target.verb, body)
            except StaleError:
                state = self._state(target.token, sitting)
                return Response(409, state | {"writer": True, "problem": "the page was not up to date"})
            except (CalibrantError, RecursionError) as error:
                is_typed = target.verb == "say"
                problem = "the move cannot be read"
                if isinstance(error, WordsError):
                    problem = str(error) if is_typed else error.page
                return Response(422, {"problem": problem, "writer": True, "tries": sitting.tries})
            return Response(200, self._state(target.token, sitting, stop) | {"writer": True})

    def _state(self, token: str, sitting: Sitting, stay_at: ItemStop | None = None) -> dict[str, Any]:
        """Return the state, at the start with the address of practice, in practice with that of the study."""
        state = sitting.state(stay_at=stay_at)
        if token in self._names_by_practice:
            return state | {"study": f"/{self._address.participant_token(sitting.participant)}/"}
        if self._rooms is not None and state["phase"] == "start":
            return state | {"practice": f"/{self._rooms.token(sitting.participant)}/"}
        return state

    def _do(self, sitting: Sitting, verb: str, body: Mapping[str, Any]) -> ItemStop | None:
        item, num_moves = str(body.get("item", "")), body.get("moves")
        if type(num_moves) is not int:
            num_moves = -2  # equal to no state's number
        match verb:
            case "begin":
                sitting.ask_language(body.get("lang"))
                sitting.begin(body.get("agreed") is True)
            case "act" if isinstance(body.get("action"), dict):
                return sitting.act(item, num_moves, body["action"])
            case "say" if isinstance(body.get("line"), str):
                return sitting.say(item, num_moves, body["line"])
            case "submit":
                return sitting.submit_draft(item, num_moves)
            case "draft" if "name" in body:
                sitting.write_answers(str(body["name"]), body.get("answers"))
            case "draft":
                return sitting.write(item, body.get("draft"))
            case "undo":
                return sitting.undo(item)
            case "quit":
                return sitting.give_up(item)
            case "expire" if "name" in body:
                sitting.expire_page(str(body["name"]), body.get("answers"))
            case "expire":
                return sitting.expire(item)
            case "answers":
                tries = body.get("tries")
                is_counted = type(tries) is int
                sitting.answer_questions(str(body.get("name", "")), body.get("answers"), tries if is_counted else None)
            case _:
                raise Refusal(404, "no such move")
        return None

    def _enter(self, body: Mapping[str, Any]) -> Response:
        """Return the address of a participant who entered an id."""
        try:
            name = check_participant(str(body.get("participant", "")))
        except CalibrantError as error:
            return Response(422, {"problem": str(error)})
        if self._names is not None and name not in self._names:
            return Response(
                422, {"problem": f"{name} does not take part in this study; enter the id that you were given"}
            )
        token = self._address.participant_token(name)
        with self._lock:
            if token not in self._names_by_token and len(self._names_by_token) >= MAX_SITTINGS:
                return Response(422, {"problem": "no more participants can enter"})
            if body.get("offered") is True and self._is_in_use(name):  # two pages may offer the same id
                free = self._unused_name()
                hint = f"; {free} is free" if free else "; enter the id that you were given"
                return Response(422, {"problem": f"{name} was taken meanwhile{hint}", "offered": free})
            self._admit(name)
            self._in_use.add(name)
        return Response(200, {"address": f"/{token}/"})

    def _unused_name(self) -> str:
        """Return the first unused id of the list; empty if there is no list or no unused id."""
        return next((name for name in self._names or () if not self._is_in_use(name)), "")

    def _is_in_use(self, name: str) -> bool:
        return name in self._in_use or self._folder.has_begun(name)

    def _admit(self, name: str) -> None:
        """Make the addresses of a participant valid."""
        self._names_by_token.setdefault(self._address.participant_token(name), name)
        if self._rooms is not None:
            self._names_by_practice.setdefault(self._rooms.token(name), name)

    def _sitting(self, token: str) -> Sitting:
        name, practised = self._names_by_token.get(token), self._names_by_practice.get(token)
        if name is None and practised is None:
            raise Refusal(403, "wrong secret")
        with self._lock:
            if token not in self._sittings:
                if name is not None:
                    self._in_use.add(name)
                    self._sittings[token] = Sitting(self._folder, name, self._plan, self._terms, reviews=self._reviews)
                elif practised is not None and self._rooms is not None:
                    self._sittings[token] = self._rooms.open(practised)
            return self._sittings[token]


def _read_clock(body: Mapping[str, Any]) -> Clock:
    """Return the time of a move by the page's clock, UNSET without one; `CalibrantError` for a malformed one."""
    if body.get("clock") is None:
        return msgspec.UNSET
    try:
        clock = msgspec.convert(body["clock"], PageClock)
    except msgspec.ValidationError:
        raise CalibrantError("clock: no time of a page") from None
    if clock.seconds != clock.seconds:
        raise CalibrantError("clock: no time of a page")
    return clock


# --- Running the server: address, port, links of participants ---------------------------------------------------------
LINKS = "links.csv"


class Service:
    """A server that is ready to run.

    address: addresses of participants; server: run by its `serve_forever`; warm_up: loads the code of scores
    """

    def __init__(self, server: PlayServer, address: Address, warm_up: Callable[[], None]) -> None:
        self.server = server
        self.address = address
        self.warm_up = warm_up

    @property
    def url(self) -> str:
        """The address at which participants enter their id."""
        return self.address.url(self.address.token)


@contextmanager
def open_service(
    folder: PlayFolder,
    terms: Terms,
    plan: Plan,
    names: Sequence[str] | None = None,
    *,
    port: int | None = None,
    public_origin: str = "",
    practice: Practice | None = None,
) -> Iterator[Service]:
    """Yield a server that listens; `CalibrantError` if the port is taken.

    port: by default the folder's last one, else a free one
    public_origin: origin of a proxy in front, such as https://study.example.org
    """
    stored = read_address(folder.folder) if folder.folder is not None else None
    chosen_port = port if port is not None else stored.port if stored is not None else 0
    secret = stored.secret if stored is not None else new_secret()
    routes = PlayRoutes(folder, Address(chosen_port, secret), terms, plan, names, practice)
    try:
        server = PlayServer(chosen_port, routes)
    except OSError as error:
        hint = "give another one with --port"
        raise CalibrantError(f"port {chosen_port} of {HOST}: {error.strerror or error}; {hint}") from None
    address = Address(server.port, secret)
    origins = [f"http://{host}:{server.port}" for host in (HOST, "localhost")]
    server.gate = Gate(tuple(filter(None, [*origins, public_origin])))
    with server:
        if folder.folder is not None:
            write_address(folder.folder, address)
            if names:
                _write_links(folder.folder / LINKS, address, names, public_origin)
        with ticking(routes.tick):
            yield Service(server, address, routes.warm_up)


def serve_until_stopped(service: Service) -> None:
    """Answer requests until Ctrl-C or SIGTERM; accepted requests are still answered."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    threading.Thread(target=service.warm_up, daemon=True).start()
    before = signal.signal(signal.SIGTERM, stop)
    try:
        service.server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGTERM, before)


def _write_links(file: Path, address: Address, names: Sequence[str], public_origin: str) -> None:
    """Write the address of each participant to a file that the owner alone can read."""
    lines = ["participant,address"]
    for name in names:
        token = address.participant_token(name)
        lines.append(f"{name},{f'{public_origin}/{token}/' if public_origin else address.url(token)}")
    write_privately(file, "\n".join(lines) + "\n")
