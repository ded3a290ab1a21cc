"""The Alternative-SCM task: how an alternative is scored, and what separates it from the reference."""
