"""Cost of the adapter to Inspect beside that of Inspect itself."""
