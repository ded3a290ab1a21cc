"""Output about blicket runs: the paper's tables with its rows and those of runs, and episodes as text."""
