"""Speed of extended items: episodes, noise."""
