"""Tasks of lm-evaluation-harness, one of each benchmark: `lm_eval --include_path "$(python -m calibrant.lm_eval)"`."""
