"""Tables of a report on ReplaySCM, the paper's first."""
