"""Record how PyTorch's functions are called: `python tests/pytorch/record_schemas.py > tests/pytorch/schemas.json`.

Of a function in C++ these are ATen's schemas, and the overloads that an error lists, of the function and of the method;
of one in Python its parameters with their defaults.
"""

from __future__ import annotations

import inspect
import json
import re

import torch

from gradcli.pytorch.functions import table

SCHEMAS: dict[str, list[str]] = {}
for schema in torch._C._jit_get_all_schemas():
    SCHEMAS.setdefault(schema.name.removeprefix("aten::"), []).append(str(schema))
SPACES = {"torch": torch, "Tensor": torch.ones(2, 2), "torch.nn.functional": torch.nn.functional}


def listed(function):
    """Return the overloads that PyTorch lists for a call that fits none."""
    try:
        function(*[object()] * 12)
    except (TypeError, RuntimeError) as error:
        message = str(error)
        if "but expected (" in message:
            return [message.partition("but expected (")[2][:-1]]
        return re.findall(r"^ \* \((.*)\)$", message, re.M)
    return []


def parameters(function):
    """Return the names of a Python function's parameters with their defaults; of one that dispatches, None."""
    found = inspect.signature(function).parameters.values()
    if [p.name for p in found] == ["args", "kwargs"]:
        return None
    return [[p.name, None if p.default is p.empty else repr(p.default), p.kind.name] for p in found]


def recorded(name, function):
    if inspect.isroutine(function) and not inspect.isfunction(function) and not inspect.ismethod(function):
        return {"listed": listed(function), "aten": SCHEMAS.get(name, [])}
    return {"parameters": parameters(function)}


found = {
    module: {n: recorded(n, getattr(space, n)) for n in sorted(known) if callable(getattr(space, n, None))}
    for module, space in SPACES.items()
    for known in [{*table().functions[module], *(table().functions["torch"] if module == "Tensor" else ())}]
}
print(json.dumps(found, indent=0))
