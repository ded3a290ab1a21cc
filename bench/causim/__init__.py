"""CauSim beside its paper: printed figures, and ours under their table numbers."""
