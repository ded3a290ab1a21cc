"""Figures of the CausaLab paper and the differences that one of them draws."""
