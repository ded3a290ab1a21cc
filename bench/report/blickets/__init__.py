"""The extended blickets in a report."""
