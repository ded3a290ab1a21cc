"""Participants who are programs and play through the door that people use: requests to a server, one move each.

They answer what a protocol of `run` answers, so a table of theirs equals that protocol's. Lost answers are sent again.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from calibrant.dsl.episode import Action

MAX_TRIES = 600  # of one request, while a server is started again: two minutes, for a machine that is busy
PAUSE_SECONDS = 0.2


class SimulatedParticipant:
    """One participant.

    port: of the server on this machine, asked for before each request; actions: the moves on an item, by its public id
    reload_rate: share of moves before which the page is loaded anew, by another window
    """

    def __init__(
        self,
        port: Callable[[], int],
        path: str,
        actions: Callable[[str], Iterator[Action]],
        rng: Random,
        *,
        reload_rate: float = 0.2,
    ) -> None:
        self._port = port
        self._path = path
        self._actions = actions
        self._rng = rng
        self._reload_rate = reload_rate
        self._tab = f"{rng.getrandbits(64):x}"
        self.bodies: list[str] = []
        self.num_sent = 0

    def play(self) -> None:
        """Play from the start to the end."""
        state = self._state()
        while state["phase"] != "end":
            if state["phase"] == "start":
                state = self._post("begin", {"agreed": True}, state)
            elif state["phase"] == "item":
                state = self._play_item(state)
            else:
                raise ValueError(f"a simulated participant has no answer to {state['phase']}")

    def _play_item(self, state: dict[str, Any]) -> dict[str, Any]:
        """Play one item: moves that are there already are passed over."""
        item = state["item"]["id"]
        for number, action in enumerate(self._actions(item)):
            if self._rng.random() < self._reload_rate:
                self._tab = f"{self._rng.getrandbits(64):x}"
                state = self._state()
            if state["phase"] != "item" or state["item"]["id"] != item:
                return state
            if number < state["item"]["moves"]:
                continue
            state = self._post("act", {"action": action}, state)
        return self._state()

    def _state(self) -> dict[str, Any]:
        return self._request("GET", f"state?tab={self._tab}&take=1", None)[1]

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
