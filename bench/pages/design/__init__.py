"""Design system of all pages: tokens, one stylesheet, plots as SVG, and the same colours for matplotlib."""
