"""The tables of the CausaLab paper: printed figures, the items that they are about, ours beside them."""
