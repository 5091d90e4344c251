"""Formats of data, a file each: its name is that of the format, its function `lines` yields an answer as text."""
