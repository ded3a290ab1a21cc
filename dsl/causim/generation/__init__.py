"""Programs grown node by node without a language model, and questions about them."""
