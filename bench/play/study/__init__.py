"""Studies: who plays which items in which order, from one file."""
