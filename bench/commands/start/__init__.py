"""Commands to begin with: what a pool has, and own data."""
