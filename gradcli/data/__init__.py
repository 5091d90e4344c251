"""Files of points and of results: read and written in blocks."""
