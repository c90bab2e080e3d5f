"""Which engine does which operator of a query: Spark, or DuckDB beside it."""
