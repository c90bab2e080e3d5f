"""Window queries on five engines, same input, same answers: `make bench-windows`."""
