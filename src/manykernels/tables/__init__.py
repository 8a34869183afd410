"""A table as people have it, made ready for kernels: read, understood column by column, and encoded."""
