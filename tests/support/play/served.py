"""A server of play in a thread, and requests to it."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calibrant.bench.play.folder import PlayFolder
from calibrant.bench.play.game import ItemStop, PlayPool, Stop, Terms
from calibrant.bench.play.service.run import Service, open_service


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
        with open_service(folder, terms, lambda name: stops) as service:
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
