"""Naive reference oracles, independent of the library."""
