"""Datasets: files in a folder of your choice, well-known sets from OpenML, and sets that the papers generate."""

from manykernels.datasets.catalog import available, data_folder, load
from manykernels.datasets.parquet import ParquetRows
from manykernels.datasets.synthetic import make_three_classes

__all__ = ["ParquetRows", "available", "data_folder", "load", "make_three_classes"]
