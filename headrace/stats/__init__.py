"""Observations, and smoothed beliefs with their age."""
