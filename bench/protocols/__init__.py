"""Protocols: named ways to answer a task. `base` says what one is, `registry` which there are."""
