"""Which site runs which operator, at first and while it runs (paper 002, D-CAPE)."""
