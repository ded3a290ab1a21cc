"""What can be proved about blicket items, episodes and the figures that are printed about them."""
