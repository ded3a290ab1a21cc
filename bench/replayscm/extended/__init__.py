"""Episodes, noise and hidden variables of ReplaySCM: answered, scored, attributed, played, audited."""
