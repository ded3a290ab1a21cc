"""Building of a release: pools, certificates, rows, and the public folder about them."""
