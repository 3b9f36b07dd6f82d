"""Tables and figures of a study: data first, drawing second."""
