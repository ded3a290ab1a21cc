"""Calibration tables: rows from runs, scored predictions and stored results."""
