"""Array primitives: packed triangles, threads, memory budgets."""
