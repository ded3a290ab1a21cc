"""Responses of models to laboratories: JSON in replies, equations and formulas as texts."""
