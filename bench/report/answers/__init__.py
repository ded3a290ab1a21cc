"""Answers item by item: by what their systems are called, out of several sources, and as whole episodes."""
