"""Commands on what evidence leaves open: other SCMs, worlds that separate them, harder items."""
