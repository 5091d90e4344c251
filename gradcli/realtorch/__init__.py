"""Scripts under the user's own PyTorch: their calls are recorded by a mode, gradients by hooks on `grad_fn`.

This room alone imports `torch`, and nothing imports it but `gradcli run --torch` and `gradcli.recording()`.
"""
