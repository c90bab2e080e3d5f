"""Streams, tables, sites, links and queries: what a project declares."""
