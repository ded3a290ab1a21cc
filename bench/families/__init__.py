"""Families of models that fit a user's data, as `calibrant family` counts them."""
