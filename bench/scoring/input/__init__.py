"""Files of predictions of any form, read into objects."""
