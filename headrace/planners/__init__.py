"""Searches. One folder each: the problem as data, the algorithms, a brute force that checks them."""
