"""Branin: the paper's quartiles, learning curves and run times.

See the supplement, "Further experiments".
"""

from __future__ import annotations

from aloq.experiments.comparison import APPENDIX, MethodComparison, believers

TARGET = MethodComparison("branin", "Branin: smooth, no rare events", (believers("branin", 150, APPENDIX),))
