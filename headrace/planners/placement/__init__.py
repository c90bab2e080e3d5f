"""Which operator runs at which site, and in which order streams are joined (paper 001)."""
