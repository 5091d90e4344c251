"""PyTorch scripts, run without PyTorch: its tensors and its autograd, recorded as graphs while they run."""
