"""Faults of Spark that pass: another start from the checkpoint may go well, nothing is wrong with the job.

Known by Spark's own words, as they stand in the reason of a failed job:
- A Python worker that Spark starts must connect within ten seconds, and on a busy machine it is not always
  given the CPU for that. For a tree Spark starts one at the driver with every start of the query, and others
  with its tasks.
- The rows of a small table are to be at every worker within five minutes, and an answer of another part of
  Spark is awaited for two.
"""

from __future__ import annotations

_SAID = (
    "Python worker failed to connect back",
    "Could not execute broadcast in",
    "Futures timed out after",
)

HINT = "The machine is overloaded: run fewer jobs at once, with planner.parallel, and run again to go on."


def is_passing(reason: str) -> bool:
    """Whether a job that has failed for this reason may be started again as it is."""
    return any(said in reason for said in _SAID)


def hinted(reason: str) -> str:
    """The reason, with what to do where it is one that should have passed."""
    return f"{reason}\nhint: {HINT}" if is_passing(reason) else reason
