"""Code of bench that every benchmark shares: imports no other folder of bench."""
