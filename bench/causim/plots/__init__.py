"""Figures of the CauSim paper, the error profile, and a question as a picture."""
