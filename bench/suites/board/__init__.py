"""Building of a board: submissions checked and scored again, their pages, and results in a common schema."""
