"""Costs: arithmetic and fitting, checked by hand-made cases."""
