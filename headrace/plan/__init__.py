"""The algebra: frozen, typed, checked in constructors. Imports nothing but errors, ids and units."""
