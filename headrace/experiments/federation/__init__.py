"""Paper 004: queries split between a stream engine and a database."""
