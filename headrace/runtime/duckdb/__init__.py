"""The only folder that imports duckdb."""
