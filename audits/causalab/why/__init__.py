"""Why the readings of a laboratory leave its graph or frequency open, or decide both."""
