"""What serves all computation and knows no statistics: precision, padding, compilation, threads, minimisation."""
