"""Optimizers of the kernel weights: one algorithm, one file."""
