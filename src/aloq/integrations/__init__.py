"""Links to other libraries and programs.

A module that needs another library needs an extra, which is not installed by default.
"""
