"""Record what PyTorch computes in scripts with loops: `python -m tests.script.record_recurrences`, with PyTorch."""

import json
from pathlib import Path

from tests.script.recurrences import CASES

FILE = Path(__file__).with_name("recurrences.json")


def recorded(code):
    """Return the loss of a script, which its last line differentiates, and the gradients of its leaves."""
    scope = {}
    exec(code, scope)
    loss = scope[code.rstrip().splitlines()[-1].partition(".backward")[0]]
    leaves = {name: x for name, x in scope.items() if getattr(x, "is_leaf", False) and x.requires_grad}
    leaves |= {f"Ws[{k}]": x for k, x in enumerate(scope.get("Ws", ()))}
    return {
        "loss": loss.item(),
        "grad": {name: x.grad.tolist() for name, x in leaves.items() if name != "W" or "Ws" not in scope},
    }


if __name__ == "__main__":
    rows = {name: recorded(case.code) for name, case in CASES.items()}
    FILE.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
