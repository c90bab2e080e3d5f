"""How fast queries run that are split between Spark and DuckDB."""
