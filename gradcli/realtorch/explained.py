"""The record of a tensor from its `grad_fn` alone: nothing is added to any `.grad`."""

from __future__ import annotations

import sys
from typing import Any

import torch

from gradcli.errors import InputError
from gradcli.realtorch.driver import node_of
from gradcli.realtorch.mode import Recording
from gradcli.realtorch.sites import frames, site_of, user_frames
from gradcli.realtorch.sweep import Sweep
from gradcli.realtorch.writing import Request, Writer
from gradcli.record.naming import names_in
from gradcli.record.record import Record


def record_of(y: torch.Tensor, v: Any = None) -> Record:
    """Return the record of a backward from a tensor, by what PyTorch's graph and a recording know of it.

    Hooks of the graph run, as in any backward.

    Errors: `InputError` for a tensor without a graph, and for several numbers without a `v` of their shape.
    """
    if not y.requires_grad:
        raise InputError("the tensor requires no gradient", hint="it has no grad_fn: nothing that requires one made it")
    if v is None and y.numel() != 1:
        raise InputError(f"the tensor has shape {tuple(y.shape)}", hint="give the cotangent: gradcli.explain(y, v=…)")
    with torch.no_grad():
        weight = torch.ones_like(y) if v is None else torch.as_tensor(v, dtype=y.dtype, device=y.device)
    if weight.shape != y.shape:
        raise InputError(f"v has shape {tuple(weight.shape)}", hint=f"its shape is {tuple(y.shape)}")
    frame, _ = frames(sys._getframe(1))
    names, recording = names_in(user_frames(frame)), Recording()
    sweep = Sweep([node_of(y)])
    leaves = [leaf.tensor for leaf in sweep.leaves.values()]
    request = Request([y], [weight], site_of(frame), "grad", leaves, v is None, False, False, names)
    writer = Writer(recording, sweep, request)
    writer.prepare()
    try:
        grads = torch.autograd.grad(y, leaves, weight, retain_graph=True, allow_unused=True)
    finally:
        sweep.finish()
    request.returned = grads
    with torch.no_grad():
        return writer.record()
