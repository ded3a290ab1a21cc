"""The notebook that a system keeps in the format of the paper: its replies, and what it copies into them."""
