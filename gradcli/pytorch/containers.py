"""`torch.nn`'s containers: modules in a row, in a list, by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradcli.pytorch.module import Module, Parameter, listed


class _Listed(Module):
    """What holds modules, or parameters, by their numbers."""

    kind = "_modules"

    def __init__(self, values: Any = ()) -> None:
        super().__init__()
        self.extend(values or ())

    def append(self, value: Any) -> Any:
        self.__dict__[self.kind][str(len(self))] = value
        return self

    def extend(self, values: Any) -> Any:
        for value in values:
            self.append(value)
        return self

    def __len__(self) -> int:
        return len(self.__dict__[self.kind])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__dict__[self.kind].values())

    def __getitem__(self, key: Any) -> Any:
        found = list(self)[key]
        return type(self)(found) if isinstance(key, slice) else found

    def __setitem__(self, key: int, value: Any) -> None:
        own = self.__dict__[self.kind]
        own[list(own)[key]] = value


class ModuleList(_Listed):
    """Modules in a list."""


class Sequential(_Listed):
    """Layers, one after the other."""

    def __init__(self, *args: Any) -> None:
        if len(args) == 1 and isinstance(args[0], dict):
            super().__init__()
            self._modules.update(args[0])
        else:
            super().__init__(args)

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input

    def __getitem__(self, key: Any) -> Any:
        items = list(self._modules.items())
        return type(self)(dict(items[key])) if isinstance(key, slice) else items[key][1]


class ParameterList(_Listed):
    """Parameters in a list."""

    kind = "_parameters"

    def append(self, value: Any) -> Any:
        return super().append(value if isinstance(value, Parameter) else Parameter(value))


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        self._modules.update(modules or {})

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def keys(self) -> Any:
        return self._modules.keys()

    def items(self) -> Any:
        return self._modules.items()

    def values(self) -> Any:
        return self._modules.values()


class DataParallel(Module):
    """A module that would run on several devices: on the CPU it runs as it is."""

    def __init__(self, module: Module, *_: Any, **__: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)


__all__ = listed(globals(), __name__)
