"""The tables of the paper on extended blickets: printed figures, ours beside them, and agents under its conditions."""
