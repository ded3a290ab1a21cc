"""ReplaySCM in bench: the options that only its commands have."""
