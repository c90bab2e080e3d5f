"""Whether the next query fits, and where its operators run (paper 003, SQPR)."""
