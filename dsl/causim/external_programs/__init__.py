"""Programs of other tools or of language models: their first fault, and their graph beside a reference graph."""
