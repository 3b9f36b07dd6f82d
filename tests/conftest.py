"""What all tests share."""

from __future__ import annotations

import signal

from hypothesis import settings

# The same examples on every run, and no deadline: the first call of a JAX function compiles.
settings.register_profile("aloq", derandomize=True, deadline=None)
settings.load_profile("aloq")

# What a shell runs in the background ignores Ctrl-C, and so do the processes that it starts: tests that interrupt one would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
