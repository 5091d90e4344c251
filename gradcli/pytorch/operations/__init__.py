"""PyTorch's operations on tensors: what is more than a row of the vocabulary looked up by its name."""
