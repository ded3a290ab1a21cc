"""Review of what a participant ended: each item beside the ideal learner."""
