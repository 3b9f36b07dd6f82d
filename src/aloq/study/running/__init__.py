"""How a study simulates: the loop, the workers and their processes, asking in advance, Ctrl-C."""
