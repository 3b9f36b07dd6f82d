"""Ask and tell, executors and the journal. Only this layer changes state and does I/O."""
