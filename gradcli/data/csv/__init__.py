"""Files of points and of results in CSV: a column for each scalar or element, a row a point."""
