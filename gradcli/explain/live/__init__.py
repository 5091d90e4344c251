"""The computation of a live page, as data."""
