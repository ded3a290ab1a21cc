"""Measurements of episodes, noise and hidden variables: `python -m calibrant.bench.lab.extended NAME`."""
