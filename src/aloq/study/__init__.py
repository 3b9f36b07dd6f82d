"""The only layer that changes or does I/O: ask and tell, executors, the journal."""
