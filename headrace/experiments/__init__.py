"""The papers' own tables and figures, made again by one command each."""
