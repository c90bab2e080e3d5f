"""Queries that are split between Spark and DuckDB: what is done with each micro-batch, whichever engine does
it.

    program.py   what a job has to do: feeds, steps on rows, relations to keep, parts over windows
    engine.py    one micro-batch: take rows in, give the windows that have ended, forget
    ledger.py    what is on disk, and in which order it is written
    memory.py    how much the database may hold
"""
