"""Models in prose, in two styles that are both read back."""
