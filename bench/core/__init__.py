"""What every benchmark shares in bench: imports no other folder of bench."""
