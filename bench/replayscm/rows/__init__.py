"""Rows of ReplaySCM."""
