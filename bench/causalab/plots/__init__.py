"""Figures of the CausaLab paper, the differences that one of them draws, and the graph of a run as a picture."""
