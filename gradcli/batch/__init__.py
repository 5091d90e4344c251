"""Many points: from a file of points through an engine to a file of results."""
