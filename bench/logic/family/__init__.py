"""The family of a prior network and data of one's own: `calibrant family`."""
