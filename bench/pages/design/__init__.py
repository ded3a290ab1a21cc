"""Design system of all pages: tokens, one stylesheet, SVG files."""
