"""Write down the gradients that PyTorch has of the sample `gaussian_mixture.grad`, whose numbers stand here too."""

from __future__ import annotations

import json
from functools import partial
from math import lgamma, log, pi
from pathlib import Path

import torch

from tests.bench.mixture import WRT, loss

POINT = {
    "alphas": [0.2, -0.3],
    "means": [[0.5, -1, 0.2], [1, 0, -0.5]],
    "q": [[0.1, -0.2, 0.3], [0, 0.2, -0.1]],
    "l": [[0.3, -0.1, 0.2], [0.4, 0, -0.2]],
}
X = [[0.1, -0.8, 0.3], [1.2, 0.3, -0.9], [0.7, -1.5, 0.4], [0.9, 0.1, 0]]


def main() -> None:
    """Write the value and the gradients, and the constant that the formula of the peers leaves out."""
    of = {"exp": torch.exp, "einsum": torch.einsum, "sum": torch.sum, "logsumexp": torch.logsumexp}
    of["concatenate"] = partial(torch.cat, dim=1)
    leaves = [torch.tensor(POINT[name], dtype=torch.float64, requires_grad=True) for name in WRT]
    value = loss(of, torch.tensor(X, dtype=torch.float64), *leaves)
    value.backward()
    norm = 4 * 3 * (log(1) - log(2) / 2) - 3 * log(pi) / 2 - lgamma(2) - lgamma(1.5) - lgamma(1)
    found = {
        "value": value.item(),
        "constant": -4 * 3 * log(2 * pi) / 2 - 2 * norm,
        "grad": {name: leaf.grad.tolist() for name, leaf in zip(WRT, leaves, strict=True)},
    }
    path = Path(__file__).with_name("mixture.json")
    path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
