"""How a study simulates: the loop, the workers and their processes, asking ahead of need, Ctrl-C."""
