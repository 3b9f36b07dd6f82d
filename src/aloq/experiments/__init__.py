"""The paper's tables and figures: the runs for each, and how results become tables and figures."""
