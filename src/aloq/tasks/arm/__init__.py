"""Tasks of a planar robot arm that reaches for a target: one module a task, over the geometry they share."""
