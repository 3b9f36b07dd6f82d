"""Hartmann 6: the paper's quartiles, learning curves and run times.

See the supplement, "Further experiments".
"""

from __future__ import annotations

from aloq.experiments.comparison import APPENDIX, MethodComparison, believers

TARGET = MethodComparison("hartmann6", "Hartmann 6: smooth, no rare events", (believers("hartmann6", 150, APPENDIX),))
