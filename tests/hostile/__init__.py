"""Property tests: hostile data and settings, judged by a referee that shares no code with the library."""
