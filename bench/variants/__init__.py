"""Variants: isomorphic copies of items, each with a checked map to its original, and how answers hold up under them."""
