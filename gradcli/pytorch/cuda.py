"""`torch.cuda` and other devices, of which there are none."""

from typing import NoReturn

deterministic = benchmark = False  # of cuDNN
enabled = True


def is_available() -> bool:
    return False


def is_built() -> bool:
    return False


def current_accelerator(check_available: bool = False) -> None:
    """Return nothing: there is no device but the CPU."""


def is_initialized() -> bool:
    return False


def _absent(*_: object, **__: object) -> NoReturn:
    raise AssertionError("Torch not compiled with CUDA enabled")


current_device = get_device_name = get_device_properties = get_device_capability = _absent


def memory_allocated(device: object = None) -> int:
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def device_count() -> int:
    return 0


def manual_seed(seed: int) -> None:
    """Do nothing."""


def manual_seed_all(seed: int) -> None:
    """Do nothing."""


def empty_cache() -> None:
    """Do nothing."""


def synchronize() -> None:
    """Do nothing."""
