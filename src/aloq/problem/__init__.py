"""Problems: variables, distributions, direction, objective. All are frozen and written as JSON."""
