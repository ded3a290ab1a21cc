"""People as one group of a report: means over participants, learning curves, hypotheses still open at the answer."""
