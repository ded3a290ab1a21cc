"""The server of play: what it refuses, moves that are made once, two windows, and nothing sealed in any answer."""

from __future__ import annotations

import dataclasses
import http.client
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.cli import main
from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.core.typed_moves import Position
from calibrant.bench.play.game import PlayPool, Terms, item_state
from calibrant.bench.play.service.routes import Service
from calibrant.bench.play.service.server import TIMEOUT_SECONDS
from calibrant.bench.runs.records import folder_records
from tests.support.play.right_lines import POOLS, episode_pool, first_item, pool_file, right_actions
from tests.support.play.served import participant_url, request, served

KINDS = (*POOLS, "episode")


class Client:
    """A participant's page, without a browser."""

    def __init__(self, service: Service, name: str, tab: str = "t") -> None:
        self.service = service
        self.path = participant_url(service, name).partition(str(service.address.port))[2]
        self.tab = tab
        self.state: dict[str, Any] = {}
        self.bodies: list[str] = []

    def get(self, query: str = "") -> int:
        status, self.state = request(self.service, "GET", f"{self.path}state?tab={self.tab}{query}")
        self.bodies.append(json.dumps(self.state))
        return status

    def post(self, verb: str, **body: Any) -> int:
        item = self.state.get("item") or {}
        sent = {"tab": self.tab, "item": item.get("id"), "moves": item.get("moves"), **body}
        status, answer = request(self.service, "POST", self.path + verb, sent)
        self.bodies.append(json.dumps(answer))
        if "phase" in answer:
            self.state = answer
        return status


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with served(tmp_path / "out", [pool_file("blickets", tmp_path)], num_items=2) as service:
        yield service


BAD_PATHS = (
    *("/", "//", "/..", "/../../etc/passwd", "/%2e%2e/", "/{token}", "/{token}/../{token}/", "/{token}/state/x"),
    *("/{token}//state", "/{token}/STATE", "/{token}/move.html", "/{token}/\\..\\x", "http://127.0.0.1/{token}/"),
    *("/{token}/state?tab=<script>", "/{token}/" + "a" * 17, "/" + "0" * 5_000, "/{token}/%00"),
)


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_path_that_is_none_is_not_found(path: str, service: Service) -> None:
    client = Client(service, "p1")
    token = client.path.strip("/")
    status, answer = request(service, "GET", path.replace("{token}", token))
    assert status == 404 or (path.startswith("http:") and status == 403)  # its host is another one
    assert list(answer) == ["problem"]
    assert token not in json.dumps(answer)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1"}, 403),
        ({"Host": "127.0.0.1.evil.example:{port}"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Length": "-1"}, 411),
        ({"Content-Length": "9" * 30}, 413),
        ({"Transfer-Encoding": "chunked"}, 411),
        ({"Origin": "http://127.0.0.1:{port}"}, 200),
        ({"Host": "localhost:{port}", "Origin": "http://localhost:{port}"}, 200),
    ],
)
def test_a_move_from_elsewhere_is_refused(headers: dict[str, str], status: int, service: Service) -> None:
    client = Client(service, "p1")
    filled = {name: value.replace("{port}", str(service.address.port)) for name, value in headers.items()}
    answer = request(service, "POST", f"{client.path}begin", {"tab": "t"}, filled)
    assert answer[0] == status, answer
    client.get()
    assert client.state["phase"] == ("item" if status == 200 else "start")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"x" * 1_000_000, 413),
        (b"", 400),
        (b"[]", 400),
        (b"[" * 60_000, 400),
        (b'{"tab":', 400),
        (b"\xff\xfe", 400),
        (json.dumps({"tab": "t", "action": {"place": "A" * 60_000}}).encode(), 409),
        (b'{"tab": "t", "action": {"place": NaN}, "moves": 1e400, "item": []}', 409),
        (b'{"action": {}}', 423),
    ],
)
def test_a_body_that_is_none_is_refused(body: bytes, status: int, service: Service) -> None:
    client = Client(service, "p1")
    client.get()
    assert request(service, "POST", f"{client.path}act", body)[0] == status
    assert client.get() == 200


def test_a_wrong_secret_opens_nothing(service: Service) -> None:
    client = Client(service, "p1")
    token = client.path.strip("/")
    for wrong in ("0" * 32, token[:-1] + ("0" if token[-1] != "0" else "1"), token.upper(), token + "0"):
        assert request(service, "GET", f"/{wrong}/state?tab=t")[0] in (403, 404)
        assert request(service, "POST", f"/{wrong}/begin", {"tab": "t"})[0] in (403, 404)
    for name in ("", "../p1", "p 1", "x" * 65):
        assert request(service, "POST", f"/{service.address.token}/enter", {"participant": name})[0] == 422
    for method in ("PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"):
        assert request(service, method, client.path)[0] == 501


def test_idle_connections_and_noise_do_not_stop_the_service(service: Service) -> None:
    """As many as are handled at a time, twice, and they stay open: the oldest give their places up.

    They would end by themselves after 10 s. The script of simulated participants opens 1,000.
    """
    address = ("127.0.0.1", service.address.port)
    idle = [socket.create_connection(address, timeout=5) for _ in range(260)]
    try:
        for connection in idle[::13]:
            connection.sendall(b"\x16\x03\x01 nonsense\r\n\r\n")
    except OSError:  # it was closed already
        pass
    client = Client(service, "p1")
    start = time.monotonic()
    assert client.get() == 200
    assert time.monotonic() - start < TIMEOUT_SECONDS
    for connection in idle:
        connection.close()


def test_a_move_that_is_sent_twice_is_made_once(service: Service, tmp_path: Path) -> None:
    client = Client(service, "p1")
    client.get()
    assert client.post("act", action={"place": "A"}) == 409  # before the start
    assert client.post("begin") == 200
    client.get()
    before = dict(client.state)
    assert client.post("act", action={"place": "A"}) == 200
    client.state = before
    assert client.post("act", action={"place": "A"}) == 200  # the answer was lost, and it is sent again
    assert (client.state["item"]["moves"], len(client.state["item"]["steps"])) == (1, 1)
    client.state = before
    assert client.post("act", action={"place": "B"}) == 409
    client.get()
    assert client.post("say", line="plac B") == 422
    assert client.post("say", line="place B") == 200
    assert client.post("draft", draft={"rule": "conjunctive", "blickets": ["A", "Q"]}) == 422
    assert client.post("draft", draft={"rule": "conjunctive", "blickets": ["B", "A"]}) == 200
    assert client.post("submit") == 200
    assert (client.state["item"]["closed"], client.state["done"]) == (True, 1)
    assert client.post("submit") in (409, 422)
    client.get()
    assert (client.state["number"], client.state["item"]["moves"]) == (2, 0)
    (record,) = folder_records(tmp_path / "out")
    assert isinstance(record.steps, list)
    assert [step.action for step in record.steps] == [
        *({"place": "A"}, {"place": "B"}),
        {"check": {"rule": "conjunctive", "blickets": ["A", "B"]}},
    ]


def test_a_second_window_only_shows_until_it_takes_over(service: Service) -> None:
    first, second = Client(service, "p1"), Client(service, "p1", tab="other")
    first.get()
    first.post("begin")
    first.get()
    second.get()
    assert (first.state["writer"], second.state["writer"]) == (True, False)
    assert second.post("act", action={"place": "A"}) == 423
    assert second.state["item"]["moves"] == 0
    second.get("&take=1")
    assert second.state["writer"]
    assert second.post("act", action={"place": "A"}) == 200
    assert first.post("act", action={"place": "A"}) == 423
    other = Client(service, "p2")
    other.get()
    assert (other.state["phase"], other.state["writer"]) == ("start", True)


def test_the_address_is_the_same_after_a_restart(tmp_path: Path) -> None:
    pool, out = pool_file("blickets", tmp_path), tmp_path / "out"
    with served(out, [pool]) as service:
        client = Client(service, "p1")
        client.get()
        client.post("begin")
        client.post("act", action={"place": "A"})
        address = service.address
    assert (out / "address.json").stat().st_mode & 0o077 == 0
    with served(out, [pool]) as service:
        assert service.address == address
        client.service = service
        client.get()
        assert (client.state["phase"], client.state["item"]["moves"]) == ("item", 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reveal", [False, True])
def test_verdict_and_id_cross_after_the_end_and_only_if_they_may(kind: str, reveal: bool, tmp_path: Path) -> None:
    pool = pool_file(kind, tmp_path)
    item = first_item(pool)
    with served(tmp_path / "out", [pool], Terms("pilot", reveal=reveal)) as service:
        client = Client(service, "p1")
        client.get()
        client.post("begin")
        for line in right_actions(item):
            assert "verdict" not in client.state
            client.get()
            assert request(service, "GET", f"{client.path}review")[0] == 404
            assert client.post("act", action=json.loads(line)) == 200
        assert ("verdict" in client.state) is reveal
        client.get()
        assert client.state["phase"] == "end"
        assert bool(client.state["verdicts"]) is reveal
        status, page = request(service, "GET", f"{client.path}review")
        assert (status, "1 of 1 right" in str(page)) == ((200, True) if reveal else (404, False))
        if reveal:
            (row,) = client.state["verdicts"]
            assert (row["ideal"] is None) is (not benchmark_of(pool).is_interactive(item))
            if kind == "blickets":
                assert main(["run", "exact", str(pool), "--only", item.id, "--out", str(tmp_path / "exact")]) == 0
                (record,) = folder_records(tmp_path / "exact")
                assert row["ideal"] == sum(step.cost for step in record.steps or ())
            assert (row["right"], row["item"]) == (True, PlayPool(pool).public.ids.public(item.id))
    for body in client.bodies:
        assert f'"{item.id}"' not in body
        assert "trainExact" not in body or (reveal and '"verdict"' in body)


class Sealed:
    """What is sealed, where nothing may look at it."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("__class__", "__reduce_ex__"):
            return object.__getattribute__(self, name)
        raise AssertionError(f"a page reads what is sealed: {name}")


@pytest.mark.parametrize("kind", KINDS)
def test_no_page_of_any_item_reads_what_is_sealed(kind: str, tmp_path: Path) -> None:
    pool = pool_file(kind, tmp_path)
    words = PlayPool(pool).words
    for item in benchmark_of(pool).items.read_pool(pool).items:
        blind = dataclasses.replace(item, sealed=Sealed())
        position = Position((), 3, {})
        drafts: list[dict[str, Any]] = [{}]
        if item.benchmark == "replayscm":
            drafts.append({"formulas": {item.task.variables[-1]: item.task.variables[0]}})
        for draft in drafts:
            shown: list[object] = [
                words.opening(blind),
                words.view(blind),
                words.problems(blind, draft),
                words.graph(blind, draft),
            ]
            shown += [words.cells(blind, position._replace(draft=draft)), words.verbs(blind)]
            json.dumps(shown)


def test_headers_forbid_frames_caches_and_foreign_code(service: Service) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", service.address.port, timeout=5)
    connection.request("GET", f"/{service.address.token}/")
    answer = connection.getresponse()
    page = answer.read().decode()
    connection.close()
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert (answer.headers["Cache-Control"], answer.headers["Referrer-Policy"]) == ("no-store", "no-referrer")
    assert "Server" not in answer.headers or "Python" not in answer.headers["Server"]
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page


def test_a_draft_with_a_loop_is_named_and_drawn_again_without_it(tmp_path: Path) -> None:
    with served(tmp_path / "out", [pool_file("replayscm", tmp_path)]) as service:
        client = Client(service, "p1")
        client.get()
        client.post("begin")
        client.get()
        assert client.post("draft", draft={"formulas": {"X3": "X4", "X4": "not X3"}}) == 200
        assert set(client.state["item"]["loop"]) == {"X3", "X4"}
        assert "picture" not in client.state["item"]
        assert client.post("draft", draft={"formulas": {"X3": "X1", "X4": "not X3"}}) == 200
        assert "loop" not in client.state["item"]
        assert "<svg" in client.state["item"]["picture"]


def test_a_fault_of_the_program_is_answered(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an answer the page would send its move again and again."""
    client = Client(service, "p1")
    monkeypatch.setattr(type(service.server.routes), "get", lambda *arguments: 1 // 0)
    assert client.get() == 500
    assert "server failed" in client.state["problem"]


def test_feedback_is_given_where_the_terms_say_so(tmp_path: Path) -> None:
    from calibrant.bench.play.game import Game

    path = episode_pool(tmp_path, "hs_n6_easy_calibration")
    game = Game(PlayPool(path), first_item(path).id)
    gold = game.item.sealed.gold
    name = next(iter(gold.mechanisms))
    game.write({"formulas": {name: name, next(v for v in gold.mechanisms if v != name): "0 and"}})
    shown = item_state(game, with_cells=False)
    assert "cells" not in shown
    assert len(shown["problems"]) == 2
    root = gold.roots[0]
    game.write({"formulas": {name: root}})
    (judged,) = item_state(game, with_cells=True)["cells"].values()
    reading: Any = game.steps[0].reading
    rows, variables = reading["rows"], game.item.task.variables
    places = variables.index(name), variables.index(root)
    equal = sum(row[places[0]] == row[places[1]] for row in rows)
    assert (judged["right"], judged["total"]) == (equal, len(rows))
