"""SQL text of expressions, one meaning for both engines."""

from headrace.runtime.sqltext.duck import DuckWriter
from headrace.runtime.sqltext.spark import SparkWriter
from headrace.runtime.sqltext.writer import ExprWriter

__all__ = ["DuckWriter", "ExprWriter", "SparkWriter"]
