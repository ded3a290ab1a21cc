"""The tables of the CauSim paper: printed figures, the items that they are about, ours beside them."""
