"""The file that keeps a study: its lines, its header, its lock, and its repair."""
