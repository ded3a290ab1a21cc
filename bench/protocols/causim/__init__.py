"""Rows of CauSim."""
