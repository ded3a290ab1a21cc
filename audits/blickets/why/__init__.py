"""Why the readings of a detector leave more than one rule."""
