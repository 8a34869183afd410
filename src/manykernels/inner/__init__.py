"""Solvers for one fixed kernel, warm-started: one file for each loss, the box-constrained QP in smo.py."""
