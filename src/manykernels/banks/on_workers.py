"""The way to Dask workers for those who do not care how they hold things: clients, rows, and what can be asked of rows.

Whoever fits finds a client, loads rows and binds kernels to them; the bank does the rest. Small data are gathered.
"""

from manykernels.banks.cluster.connection import find_client
from manykernels.banks.cluster.loading import by_parts, gathered, load_rows
from manykernels.banks.cluster.row_bank import RowBank

# What a bank of rows can do.
ROWS_CAN = RowBank.can

__all__ = ["ROWS_CAN", "by_parts", "find_client", "gathered", "load_rows"]
