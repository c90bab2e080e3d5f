"""The loop: the only folder that sees planners and runtime."""
