"""Models for tests of adapters: one behind an endpoint on the loopback, one of random weights on disk."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

# --- A model behind an OpenAI-compatible endpoint on the loopback: what it says is a function of the messages ---------
Model = Callable[[list[dict[str, Any]]], str]


@contextmanager
def served(model: Model, calls: list[list[dict[str, Any]]] | None = None) -> Iterator[str]:
    """Serve a model; yield the base URL. It answers whole or as a stream.

    calls: collects the messages of each request
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:  # the name that http.server calls
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if calls is not None:
                calls.append(asked["messages"])
            said = model(asked["messages"])
            made = {"id": "1", "created": 0, "model": asked["model"]}
            if asked.get("stream"):
                self._send("text/event-stream", _stream(made, said))
            else:
                message = {"role": "assistant", "content": said}
                choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
                whole = made | {"object": "chat.completion", "choices": choices, "usage": _USAGE}
                self._send("application/json", json.dumps(whole).encode())

        def do_GET(self) -> None:
            self._send("application/json", json.dumps({"object": "list", "data": []}).encode())

        def _send(self, kind: str, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def _stream(made: dict[str, Any], said: str) -> bytes:
    parts: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": said}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": _USAGE},
    ]
    lines = [json.dumps(made | {"object": "chat.completion.chunk"} | part) for part in parts]
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()


# --- A language model of four words and random weights on disk, as transformers reads it ------------------------------
def write_random_model(folder: Path) -> Any:
    """Write the model and its tokenizer to a folder; return the tokenizer."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"[UNK]": 0, "[PAD]": 1, "[EOS]": 2, "word": 3}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]", eos_token="[EOS]")
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    size = GPT2Config(vocab_size=4, n_positions=4096, n_embd=8, n_layer=1, n_head=1, eos_token_id=2, pad_token_id=1)
    GPT2LMHeadModel(size).save_pretrained(folder)
    return tokenizer
