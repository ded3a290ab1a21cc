"""Pages that show why an item is open; what all benchmarks share."""
