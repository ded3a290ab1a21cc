"""Overview of a report: who was right, who earned it, what a guess is worth; and every answer to look up."""
