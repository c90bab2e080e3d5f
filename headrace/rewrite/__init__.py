"""LogicalPlan -> LogicalPlan: one file per rule, the order in one tuple (driver.RULES)."""
