"""The paper's tables and figures, one module each, with a smoke and a full setting."""
