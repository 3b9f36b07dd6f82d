"""Tasks of a planar robot arm that reaches for a target: one module a task.

They share the arm's geometry.
"""
