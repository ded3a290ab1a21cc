"""Print the folder for `lm_eval --include_path`."""

from pathlib import Path

print(Path(__file__).resolve().parent)
