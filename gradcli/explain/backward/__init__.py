"""What `gradcli backward` shows: vᵀJ, its arithmetic, its steps, and what PyTorch calls it."""
