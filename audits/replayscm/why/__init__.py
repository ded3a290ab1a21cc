"""Why the training worlds of a ReplaySCM item leave it open: a pair, a row never shown, what would settle it."""
