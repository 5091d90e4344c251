"""`torch.version`: which PyTorch it is that the numbers are those of."""

__version__ = "2.13.0+cpu"
__all__ = ["__version__", "cuda", "debug", "hip", "xpu"]

cuda = hip = xpu = None
debug = False
