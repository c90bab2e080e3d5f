"""The command line: thin, over service."""
