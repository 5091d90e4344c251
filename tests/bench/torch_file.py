"""What a PyTorch user would run: points from a file, vᵀJ, gradients into a file."""

import sys

import numpy as np
import torch

formulas, source, target, outputs, wrt = sys.argv[1:]
with np.load(source) as file:
    values = {name: torch.from_numpy(file[name]) for name in file.files}
names = {"sqrt": torch.sqrt, "sin": torch.sin, "cos": torch.cos, **values}
leaves = {x: values[x].requires_grad_() for x in wrt.split(",")}
with open(formulas, encoding="utf-8") as text:
    exec(text.read(), names)
results = [names[y] for y in outputs.split(",")]
v = [values[f"{y}.v"] for y in outputs.split(",")]
grads = torch.autograd.grad(results, list(leaves.values()), v)
np.savez(target, **{f"{x}.grad": g.numpy() for x, g in zip(leaves, grads, strict=True)})
