"""PyTorch's operations on tensors: what is more than a row of the vocabulary found by its name."""
