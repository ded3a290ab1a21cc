"""Rates of CausaLab."""
