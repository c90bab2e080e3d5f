"""SQL text -> LogicalPlan; the only user of the SQL parser."""
