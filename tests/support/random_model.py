"""A language model of four words and random weights on disk, as transformers reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any


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
