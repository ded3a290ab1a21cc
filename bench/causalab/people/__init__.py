"""Words that people type about laboratories, and the mechanisms that their readings left open."""
