"""The pages of the documentation: their code blocks, and how each is run."""
