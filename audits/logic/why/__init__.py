"""Why the measurements leave more than one logic model."""
