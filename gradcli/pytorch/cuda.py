"""`torch.cuda`, of which there is none."""


def is_available() -> bool:
    return False


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
