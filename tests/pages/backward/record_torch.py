"""Run the scripts of `--only pytorch` in PyTorch, and write their gradients beside the commands in the JSON file."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
from contextlib import redirect_stdout
from pathlib import Path

RECORDED = Path(__file__).with_name("torch_scripts.json")


def main() -> None:
    """Write each script's gradients, as nested lists."""
    cases = json.loads(RECORDED.read_text("utf-8"))
    for case in cases.values():
        command = [*shlex.split(os.environ.get("GRADCLI", "gradcli")), "backward", *case["arguments"]]
        script = subprocess.run([*command, "--only", "pytorch"], capture_output=True, text=True, check=True).stdout
        scope: dict[str, object] = {}
        with redirect_stdout(io.StringIO()):
            exec(script, scope)
        grads = [line.split('"')[1].split(".grad")[0] for line in script.splitlines() if line.startswith("print(")]
        case["script"] = script
        case["grad"] = {n: None if scope[n].grad is None else scope[n].grad.tolist() for n in grads}
    RECORDED.write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
