"""The file that keeps a study: its lines, its header, its lock, and what is done when it is damaged or changed."""
