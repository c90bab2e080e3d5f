"""Runs plans and tells what happened. Never imports planners or cost."""
