"""The reason why logic models are left open, as page and text."""
