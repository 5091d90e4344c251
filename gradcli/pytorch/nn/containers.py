"""`torch.nn`'s containers: modules in a row, in a list, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

from gradcli.pytorch.dtypes import OF_NUMPY
from gradcli.pytorch.nn.module import Module, Parameter, listed


class _Listed(Module):
    """What holds modules, or parameters, by their numbers."""

    kind = "_modules"

    def __init__(self, values: Any = ()) -> None:
        super().__init__()
        self.extend(values or ())

    def append(self, value: Any) -> Any:
        self.add_module(str(len(self)), value)
        return self

    def _become(self, values: Any) -> Any:
        self.__dict__[self.kind].clear()
        return self.extend(values)

    def insert(self, index: int, value: Any) -> Any:
        own = list(self)
        own.insert(index, value)
        return self._become(own)

    def pop(self, key: int) -> Any:
        own = list(self)
        found = own.pop(key)
        self._become(own)
        return found

    def extend(self, values: Any) -> Any:
        for value in values:
            self.append(value)
        return self

    def __len__(self) -> int:
        return len(self.__dict__[self.kind])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__dict__[self.kind].values())

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int) and not -len(self) <= key < len(self):
            raise IndexError(f"index {key} is out of range")
        found = list(self)[key]
        return type(self)(found) if isinstance(key, slice) else found

    def __setitem__(self, key: int, value: Any) -> None:
        own = self.__dict__[self.kind]
        own[list(own)[key]] = value


class ModuleList(_Listed):
    """Modules in a list."""

    def _children_shown(self) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        for text, group in groupby(enumerate(self), lambda row: repr(row[1])):
            places = [str(i) for i, _ in group]
            several = f"{len(places)} x " if len(places) > 1 else ""
            found.append(("-".join(dict.fromkeys((places[0], places[-1]))), Shown(several + text)))
        return found


class Sequential(_Listed):
    """Layers, one after the other."""

    def __init__(self, *args: Any) -> None:
        if len(args) == 1 and isinstance(args[0], dict):
            super().__init__()
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            super().__init__(args)

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input

    def __getitem__(self, key: Any) -> Any:
        return (
            type(self)(dict(list(self._modules.items())[key])) if isinstance(key, slice) else super().__getitem__(key)
        )

    def __add__(self, other: Any) -> Any:
        return type(self)(*self, *other)


class ParameterList(_Listed):
    """Parameters in a list."""

    kind = "_parameters"

    def append(self, value: Any) -> Any:
        self._parameters[str(len(self))] = value if isinstance(value, Parameter) else Parameter(value)
        return self

    def __repr__(self) -> str:
        return _shown(self, lambda p: str(p.dtype))


class Shown:
    """A text that is shown in the place of a module."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


class ModuleDict(Module):
    """Modules by name."""

    kind = "_modules"

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        self._modules.update(modules or {})

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self.kind)[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __contains__(self, key: str) -> bool:
        return key in getattr(self, self.kind)

    def __len__(self) -> int:
        return len(getattr(self, self.kind))

    def __iter__(self) -> Iterator[str]:
        return iter(getattr(self, self.kind))

    def keys(self) -> Any:
        return getattr(self, self.kind).keys()

    def items(self) -> Any:
        return getattr(self, self.kind).items()

    def values(self) -> Any:
        return getattr(self, self.kind).values()


class ParameterDict(ModuleDict):
    """Parameters by name."""

    kind = "_parameters"

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self.update(parameters or {})

    def update(self, parameters: Any) -> None:
        """Take parameters in, by name or as pairs."""
        for name, value in dict(parameters).items():
            self[name] = value

    def __setitem__(self, key: str, value: Any) -> None:
        self._parameters[key] = value if isinstance(value, Parameter) else Parameter(value)

    def __repr__(self) -> str:
        return _shown(self, lambda p: f"torch.{OF_NUMPY[p._a.dtype].tensor}")


def _shown(module: Module, kind: Callable[[Any], str]) -> str:
    """Return what a container of parameters is shown as."""
    rows = [
        f"  ({n}): Parameter containing: [{kind(p)} of size {'x'.join(map(str, p.shape))}]"
        for n, p in module._parameters.items()
    ]
    name = type(module).__name__
    return "\n".join([f"{name}(", *(f"  {row}" for row in rows), ")"]) if len(rows) > 1 else f"{name}({''.join(rows)})"


class DataParallel(Module):
    """A module that would run on several devices: on the CPU it runs as it is."""

    def __init__(self, module: Module, *_: Any, **__: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)


__all__ = listed(globals(), __name__)
