"""The reason why an item is open, as page and text."""
