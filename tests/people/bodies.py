"""Every item of every pool is played by programs that try what a page can send; no answer has anything sealed.

    python -m tests.people.bodies --count 100000

Bundled pools, the shared development pools if they are there, and extended ReplaySCM items of all small strata, as
episodes and given. Searched for: ids of pools, keys that a sealed part alone has, its texts, long numbers, and lists.
What the public record or the prompt says too is no secret, and neither is what the program typed itself.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from calibrant.audits.replayscm.extended.generate import extended_strata, sample_extended
from calibrant.bench.core.benchmark import public_record
from calibrant.bench.core.capabilities import WORDS
from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.core.typed_moves import WordsError
from calibrant.bench.play.folder import PlayFolder
from calibrant.bench.play.game import ItemStop, PlayPool, Stop, Terms
from calibrant.bench.play.service.routes import open_service, play_page
from calibrant.dsl.replayscm.item import Pool
from calibrant.dsl.replayscm.pools.files import write_pool
from tests.support.shared import shared_folder

DATA = Path(__file__).resolve().parents[2] / "bench"
MOVES = 24  # of one participant, before the next one comes
SMALL = "hs_n6"  # strata whose items are extended
ENDING = ("check", "submit", "reactor", "give", "quit")  # verbs that may end an item


@dataclass
class Target:
    """An item, and what no answer about it may have. names: that lines mention; lines: that may be typed."""

    stop: Stop
    secrets: tuple[str, ...]
    names: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass
class Tally:
    """Counts of what was sent and searched.

    num_failures: answers of status 500; leaks: a secret and the answer that has it
    """

    num_bodies: int = 0
    num_bytes: int = 0
    num_failures: int = 0
    leaks: list[tuple[str, str]] = field(default_factory=list)
    items: set[Stop] = field(default_factory=set)


def all_pools(folder: Path) -> list[Path]:
    """Return the files of all pools; those of extended items are written into the folder."""
    pools = sorted(DATA.glob("*/data/sample_*.jsonl"))
    shared = shared_folder()
    if shared is not None:
        pools += sorted((shared / "replayscm").glob("*.runtime.yaml"))
    for is_episode in (True, False):
        strata = [stratum for stratum in extended_strata() if stratum.name.startswith(SMALL)]
        items = tuple(sample_extended(stratum, 5, is_episode=is_episode) for stratum in strata)
        path = folder / f"extended-{is_episode}.jsonl"
        write_pool(Pool(path.stem, items), path)
        pools.append(path)
    return [path for path in pools if benchmark_of(path).has(WORDS) and _is_played(path)]


def _is_played(path: Path) -> bool:
    """Return whether people play the items of a pool: those about trajectories are refused."""
    pool = PlayPool(path)
    try:
        pool.words.view(pool.public.shown(pool.item(None)))
    except WordsError:
        return False
    return True


def targets_of(pool: PlayPool) -> Iterator[Target]:
    """Yield the items of a pool."""
    bench, page = pool.benchmark, play_page("search", "")
    for instance in pool.indices:
        item = pool.item(instance)
        shown = pool.public.shown(item)
        view, forms = pool.words.view(shown), [verb.form for verb in pool.words.verbs(shown)]
        public = json.dumps(public_record(bench, shown)) + bench.items.prompt(shown) + pool.words.opening(shown)
        public += json.dumps(view) + page
        record = bench.items.record(item)
        secrets = {f'"{instance}"', '"sealed"', '"verdict"', *_secrets(record["sealed"], bench.is_interactive(item))}
        mentioned = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", " ".join(forms)))
        names = tuple(view.get("objects") or view.get("variables") or view.get("settable") or mentioned)
        lines = tuple(form for form in forms if form.split()[0].strip("{") not in ENDING)
        hidden = tuple(sorted(secret for secret in secrets if not _is_public(secret, public)))
        yield Target(ItemStop(pool.key(instance)), hidden, names, lines)


def _without_draft(text: str) -> str:
    """Return an answer without the draft, which is what was typed."""
    if not text.startswith("{"):
        return text
    state = json.loads(text)
    item = state.get("item")
    return json.dumps({**state, "item": {**item, "draft": None}}) if isinstance(item, dict) else text


def _is_public(secret: str, public: str) -> bool:
    """Return whether a public text has a secret; of a key, its name: drafts are by names of variables."""
    return secret in public or _spaced(secret) in public or (secret.endswith('":') and secret[1:-2] in public)


def _spaced(text: str) -> str:
    return text.replace(", ", ",").replace(": ", ":")


def _secrets(value: Any, is_episode: bool, key: str = "") -> Iterator[str]:
    """Yield texts that would give away a part of what is sealed."""
    if isinstance(value, dict):
        yield from (f'"{name}":' for name in value if not re.fullmatch(r"[A-Z]\w?\d*", name))
        for name, part in value.items():
            yield from _secrets(part, is_episode, name)
    elif isinstance(value, list):
        for part in value:
            yield from _secrets(part, is_episode, key)
    elif isinstance(value, str) and len(value) >= 8 and not set(value) <= {"0", "1"}:
        yield value
    elif isinstance(value, int) and abs(value) >= 10**6:
        yield str(value)
    if (
        isinstance(value, dict | list)
        and len(json.dumps(value)) >= 24
        and not (is_episode and key in ("rows", "heldout"))
    ):
        yield json.dumps(value)


class Player:
    """A program at a page of one participant."""

    def __init__(self, port: int, root: str, name: str, rng: Random, tally: Tally, target: Target) -> None:
        self._port, self._rng, self._tally, self._target = port, rng, tally, target
        self._sent = ""
        self._tab = name
        self._path = self._call("POST", f"/{root}/enter", {"participant": name})["address"]

    def play(self) -> None:
        """Try what a page can send."""
        self._tally.items.add(self._target.stop)
        if self._rng.random() < 0.05:
            self._call("GET", self._path)
        state = self._call("GET", f"{self._path}state?tab={self._tab}")
        state = self._call("POST", f"{self._path}begin", {"agreed": True})
        state = self._call("GET", f"{self._path}state?tab={self._tab}")
        for _ in range(MOVES):
            item = state.get("item") or {}
            verb, body = self._move(item)
            answer = self._call("POST", self._path + verb, {"item": item.get("id"), "moves": item.get("moves"), **body})
            state = answer if "phase" in answer else state

    def _move(self, item: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        chance = self._rng.random()
        if chance < 0.05:
            return "undo", {}
        if chance < 0.08:
            return self._rng.choice(
                [("review", {}), ("expire", {}), ("answers", {"name": "0-a", "answers": {}, "tries": 0})]
            )
        if chance < 0.12:
            return "act", {"action": {self._rng.choice(["place", "set", "do", "submit", "x"]): self._name()}}
        if chance < 0.2:
            return "draft", {"draft": {}}
        line = self._rng.choice(self._target.lines) if self._target.lines else "help"
        words = [self._name() if word in self._target.names else word for word in line.split()]
        return "say", {"line": re.sub(r"\b[01]\b", lambda _: self._rng.choice("01"), " ".join(words))}

    def _name(self) -> str:
        return self._rng.choice(self._target.names) if self._target.names else "X1"

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
        sent = None if body is None else json.dumps({"tab": self._tab, **body})
        self._sent += sent or ""
        connection.request(method, path, sent, {} if sent is None else {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        self._tally.num_failures += answer.status == 500
        self._search(text)
        return json.loads(text) if text.startswith("{") else {}

    def _search(self, text: str) -> None:
        self._tally.num_bodies += 1
        self._tally.num_bytes += len(text)
        plain = _without_draft(text).replace('\\"', '"')
        for secret in self._target.secrets:
            if (secret in plain or _spaced(secret) in plain) and secret not in self._sent.replace('\\"', '"'):
                self._tally.leaks.append((secret, text[:2_000]))


def search_bodies(pools: Sequence[Path], count: int, seconds: float, seed: int = 1) -> Tally:
    """Play until so many answers were searched, or the time is over. No verdict is revealed."""
    sources = [PlayPool(path) for path in pools]
    targets = [target for source in sources for target in targets_of(source)]
    Random(seed).shuffle(targets)
    tally, rng = Tally(), Random(seed)

    def plan(name: str, group: object) -> list[Stop]:
        return [targets[int(name.split("-")[1]) % len(targets)].stop]

    # in memory: a disk would be waited for at each move
    with (
        PlayFolder(None, sources, {"feedback": "cells"}) as opened,
        open_service(opened, Terms("search", feedback="cells", reveal=False), plan) as service,
    ):
        thread = threading.Thread(target=service.server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        end, number = time.monotonic() + seconds, 0
        try:
            while tally.num_bodies < count and time.monotonic() < end:
                target = targets[number % len(targets)]
                Player(service.address.port, service.address.token, f"p-{number}", rng, tally, target).play()
                number += 1
        finally:
            service.server.shutdown()
            thread.join()
    return tally


def main() -> None:
    """Search, and print what was searched; exit code 1 for a leak."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pools = all_pools(Path(folder))
        start = time.monotonic()
        tally = search_bodies(pools, chosen.count, 60 * chosen.minutes, chosen.seed)
    for secret, body in tally.leaks[:5]:
        print(json.dumps({"secret": secret[:200], "body": body[:400]}))
    figures = {
        "pools": len(pools),
        "items": len(tally.items),
        "bodies": tally.num_bodies,
        "megabytes": round(tally.num_bytes / 1e6, 1),
        "leaks": len(tally.leaks),
        "failures": tally.num_failures,
        "seconds": round(time.monotonic() - start, 1),
    }
    print(json.dumps(figures))
    raise SystemExit(bool(tally.leaks or tally.num_failures))


if __name__ == "__main__":
    main()
