"""Prints the folder that `lm_eval --include_path` wants."""

from pathlib import Path

print(Path(__file__).resolve().parent)
