"""`torch.cuda` and other devices, of which there are none."""

deterministic = benchmark = False  # of cuDNN
enabled = True


def is_available() -> bool:
    return False


def is_built() -> bool:
    return False


def current_accelerator(check_available: bool = False) -> None:
    """Return nothing: there is no device but the CPU."""


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
