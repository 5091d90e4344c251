"""A limit of memory (`ulimit -v`), which ends a run with an error where Python or a library reports it."""

from __future__ import annotations

import errno

from gradcli.process.platform import memory_limit


def shortage() -> str:
    """Return the message of a run that has not enough memory."""
    limit = memory_limit()
    return "error: not enough memory" + (f"\n  `ulimit` allows {limit // 2**20:,} MiB" if limit is not None else "")


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error is for want of memory: under a limit, libraries have many words for it.

    >>> errors = MemoryError(), OSError(12, "Cannot allocate memory"), ValueError()
    >>> [is_out_of_memory(error) for error in errors]
    [True, True, False]
    """
    from gradcli.errors import InputError

    limited = memory_limit() is not None
    if isinstance(error, InputError):  # one may say that a library is missing, which could not be loaded
        return limited and _is_of_loading(error.__context__)
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM or (limited and error.errno is None)
    return isinstance(error, MemoryError) or (limited and (_is_of_loading(error) or isinstance(error, RuntimeError)))


def _is_of_loading(error: BaseException | None) -> bool:
    return isinstance(error, ImportError | SystemError) and not isinstance(error, ModuleNotFoundError)
