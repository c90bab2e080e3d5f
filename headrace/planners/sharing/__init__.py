"""Which window queries share a tree, and on which node (paper 000)."""
