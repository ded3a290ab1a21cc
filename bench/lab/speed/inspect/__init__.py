"""What the adapter to Inspect costs beside Inspect itself."""
