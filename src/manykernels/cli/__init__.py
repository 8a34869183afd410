"""The command ``manykernels``."""
