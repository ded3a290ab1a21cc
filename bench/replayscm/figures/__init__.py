"""Plots of a report on ReplaySCM."""
