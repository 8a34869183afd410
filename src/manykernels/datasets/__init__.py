"""Datasets: files in a folder of your choice, and well-known sets from OpenML."""

from manykernels.datasets.catalog import available, data_folder, load

__all__ = ["available", "data_folder", "load"]
