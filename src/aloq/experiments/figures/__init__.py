"""Figures and tables that only the paper's experiments have: data first, drawing second."""
