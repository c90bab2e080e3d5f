"""Headrace beside plain Spark and a DuckDB batch, on the same rows in one run: `make bench`."""
