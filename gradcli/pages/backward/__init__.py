"""The result of `gradcli backward`: vᵀJ, its arithmetic, its steps, and its names in PyTorch."""
