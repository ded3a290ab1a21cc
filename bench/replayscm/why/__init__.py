"""The reason why a ReplaySCM item is open, as page, drawing and text."""
