"""The paper's tables and figures: what is run for each, and what is made of the results."""
