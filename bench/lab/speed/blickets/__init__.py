"""Rates of the blicket environment, of its learners and agents, and of audits of traces."""
