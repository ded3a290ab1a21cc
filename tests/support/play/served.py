"""A server of play in a thread, and participants who are programs and play through it."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from calibrant.bench.play.folder import PlayFolder
from calibrant.bench.play.game import ItemStop, PlayPool, Stop, Terms
from calibrant.bench.play.service.routes import Service, open_service
from calibrant.dsl.episode import Action


# --- A server of play in a thread, and requests to it -----------------------------------------------------------------
@contextmanager
def served(
    out: Path | None, pools: Sequence[Path], terms: Terms | None = None, *, num_items: int = 1
) -> Iterator[Service]:
    """Yield a running server on which everybody plays the first items of each pool."""
    sources = [PlayPool(path) for path in pools]
    terms = terms or Terms("pilot", feedback="cells")
    with PlayFolder(out, sources, {"feedback": terms.feedback}) as folder:
        stops: list[Stop] = []
        for source in sources:
            ids = list(source.indices)[:num_items]
            stops += [ItemStop(source.key(instance)) for instance in ids]
        with open_service(folder, terms, lambda name, group: stops) as service:
            thread = threading.Thread(target=service.server.serve_forever, kwargs={"poll_interval": 0.02})
            thread.start()
            try:
                yield service
            finally:
                service.server.shutdown()
                thread.join()


def participant_url(service: Service, name: str) -> str:
    """Return the address of a participant who has entered."""
    status, data = request(service, "POST", f"/{service.address.token}/enter", {"participant": name})
    assert status == 200, data
    return f"http://127.0.0.1:{service.address.port}{data['address']}"


def request(
    service: Service, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
) -> tuple[int, Any]:
    """Send one request; status, and the decoded body."""
    connection = http.client.HTTPConnection("127.0.0.1", service.address.port, timeout=120)
    sent = {"Content-Type": "application/json"} if body is not None else {}
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    try:
        connection.request(method, path, data, sent | dict(headers or {}))
        answer = connection.getresponse()
        raw = answer.read()
    finally:
        connection.close()
    is_json = answer.headers.get_content_type() == "application/json"
    return answer.status, json.loads(raw) if is_json and raw else raw.decode()


# --- Participants who are programs and play through the door that people use: requests to a server, one move each -----
# They answer what a protocol of `run` answers, so their table equals that protocol's. Lost answers are sent again.
MAX_TRIES = 600  # of one request, while a server is started again: two minutes, for a machine that is busy
PAUSE_SECONDS = 0.2


class SimulatedParticipant:
    """One participant.

    port: of the server on this machine, asked for before each request; actions: the moves on an item, by its public id
    reload_rate: share of moves before which the page is loaded anew, by another window
    answer: of a page of questions, by its state; lang: of the page, where the study has several
    """

    def __init__(
        self,
        port: Callable[[], int],
        path: str,
        actions: Callable[[str], Iterator[Action]],
        rng: Random,
        *,
        reload_rate: float = 0.2,
        answer: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
        lang: str = "",
    ) -> None:
        self._port = port
        self._path = path
        self._actions = actions
        self._rng = rng
        self._reload_rate = reload_rate
        self._answer = answer
        self._lang = lang
        self.answered: dict[tuple[str, int], Mapping[str, Any]] = {}  # by page and answers to it before
        self.end: Mapping[str, Any] = {}
        self._tab = f"{rng.getrandbits(64):x}"
        self.bodies: list[str] = []
        self.num_sent = 0

    def play(self) -> None:
        """Play from the start to the end."""
        state = self._state()
        while state["phase"] != "end":
            if state["phase"] == "start":
                state = self._post("begin", {"agreed": True, "lang": self._lang}, state)
            elif state["phase"] == "item":
                state = self._play_item(state)
            else:
                state = self._answer_page(state)
        self.end = state

    def _answer_page(self, state: dict[str, Any]) -> dict[str, Any]:
        """Answer a page of questions; an answer that was lost is sent again as it was."""
        assert self._answer is not None, "a simulated participant has no answers to questions"
        place = state["name"], state["tries"]
        answers = self.answered.setdefault(place, self._answer(state))
        clock = {"seconds": 1.5, "interruptions": ["reload"] if self._rng.random() < self._reload_rate else []}
        sent = {"tab": self._tab, "name": place[0], "tries": place[1], "answers": answers, "clock": clock}
        status, answer = self._request("POST", "answers", sent)
        assert status in (200, 409, 422, 423), (status, answer)
        return self._state()

    def _play_item(self, state: dict[str, Any]) -> dict[str, Any]:
        """Play one item: moves that are there already are passed over."""
        item = state["item"]["id"]
        for index, action in enumerate(self._actions(item)):
            if self._rng.random() < self._reload_rate:
                self._tab = f"{self._rng.getrandbits(64):x}"
                state = self._state()
            if state["phase"] != "item" or state["item"]["id"] != item:
                return state
            if index < state["item"]["moves"]:
                continue
            state = self._post("act", {"action": action}, state)
        return self._state()

    def _state(self) -> dict[str, Any]:
        return self._request("GET", f"state?tab={self._tab}&take=1&lang={self._lang}", None)[1]

    def _post(self, verb: str, body: Mapping[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        item = state.get("item") or {}
        sent = {"tab": self._tab, "item": item.get("id"), "moves": item.get("moves"), **body}
        while True:
            self.num_sent += 1
            status, answer = self._request("POST", verb, sent)
            if status == 200:
                return answer
            if status not in (409, 423):
                raise ValueError(f"{verb}: {status} {answer.get('problem')}")
            fresh = self._state()
            current = fresh.get("item") or {}
            if (current.get("id"), current.get("moves"), fresh["phase"]) != (
                sent["item"],
                sent["moves"],
                state["phase"],
            ):
                return fresh  # the answer to a move that was made was lost; of a question the next item follows

    def _request(self, method: str, verb: str, body: Mapping[str, Any] | None) -> tuple[int, dict[str, Any]]:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        data = None if body is None else json.dumps(body)
        for _ in range(MAX_TRIES):
            connection = http.client.HTTPConnection("127.0.0.1", self._port(), timeout=60)
            try:
                connection.request(method, self._path + verb, data, headers)
                answer = connection.getresponse()
                raw = answer.read()
                self.bodies.append(raw.decode())
                return answer.status, json.loads(raw)
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(PAUSE_SECONDS)
            finally:
                connection.close()
        raise ValueError(f"no answer from port {self._port()}")
