"""How derived streams travel from one job to another."""
