"""Scripts under the user's own PyTorch: their pages, read from the record alone."""
