"""`torch.cuda` and other devices, of which there are none."""

from typing import NoReturn

from gradcli.pytorch.messages import torch_error

deterministic = benchmark = False  # of cuDNN
enabled = True


def is_available(*_: object) -> bool:
    return False


is_built = is_initialized = is_available


def device_count(*_: object) -> int:
    return 0


memory_allocated = max_memory_allocated = memory_reserved = max_memory_reserved = device_count


def _absent(*_: object, **__: object) -> NoReturn:
    raise torch_error("no CUDA")


current_device = get_device_name = get_device_properties = get_device_capability = synchronize = _absent


def manual_seed(*_: object, **__: object) -> None:
    """Do nothing."""


current_accelerator = manual_seed_all = empty_cache = manual_seed

OutOfMemoryError = type("OutOfMemoryError", (RuntimeError,), {"__module__": "torch"})


ELSEWHERE = {"OutOfMemoryError": "cuda"}


class device:
    """A device to work on in a block."""

    def __init__(self, device: object) -> None:
        """Take any."""

    def __enter__(self) -> NoReturn:
        raise torch_error("device without CUDA")

    def __exit__(self, *_: object) -> None: ...


def _no_type(name: str) -> type:
    def no_cuda(*_: object) -> NoReturn:
        raise torch_error("type of CUDA", name)

    return type(name, (), {"__new__": no_cuda, "__module__": "torch.cuda"})


FloatTensor, LongTensor, DoubleTensor = map(_no_type, ("FloatTensor", "LongTensor", "DoubleTensor"))
device.__module__ = "torch.cuda"
