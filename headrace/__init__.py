"""Headrace: many continuous SQL queries on Apache Spark, planned together."""

__version__ = "0.1.0"
