"""What a live page computes, as data."""
