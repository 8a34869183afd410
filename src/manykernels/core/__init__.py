"""What every layer shares: protocols, results, checks, errors, progress."""
