"""Run the scripts of `--only pytorch` in PyTorch and write down the gradients that they leave."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
from contextlib import redirect_stdout
from pathlib import Path

from torch_cases import CASES


def main() -> None:
    """Write each script's gradients, as nested lists."""
    found = {}
    for name, arguments in CASES.items():
        command = [*shlex.split(os.environ.get("GRADCLI", "gradcli")), "backward", *arguments, "--only", "pytorch"]
        script = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        scope: dict[str, object] = {}
        with redirect_stdout(io.StringIO()):
            exec(script, scope)
        grads = [line.split('"')[1].split(".grad")[0] for line in script.splitlines() if line.startswith("print(")]
        found[name] = {
            "script": script,
            "grad": {n: None if scope[n].grad is None else scope[n].grad.tolist() for n in grads},
        }
    path = Path(__file__).with_name("torch_scripts.json")
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
