"""`torch.utils`: the modules in it."""
