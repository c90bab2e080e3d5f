"""Seeded streams as Parquet files: the same rows, in the same order of arrival, on every machine.

    shape (blocks in event time) -> arrival (out of order, by at most `disorder`) -> files

Only PCG64 and a few basic draws of numpy are used, each block of rows has its own seed, and nothing
depends on the clock or on how many files are asked for.
"""

from headrace.runtime.generate.batches import batches
from headrace.runtime.generate.files import materialise

__all__ = ["batches", "materialise"]
