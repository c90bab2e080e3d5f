"""What a plan costs: arithmetic on rates, no search, no engine."""
