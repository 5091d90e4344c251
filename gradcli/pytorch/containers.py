"""`torch.nn`'s containers: modules in a row, in a list, by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradcli.pytorch.dtypes import OF_NUMPY
from gradcli.pytorch.module import Module, Parameter, listed


class Sequential(Module):
    """Layers, one after the other."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = (
            args[0].items()
            if len(args) == 1 and isinstance(args[0], dict)
            else ((str(i), m) for i, m in enumerate(args))
        )
        for name, module in named:
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, key: Any) -> Any:
        items = list(self._modules.items())
        return type(self)(dict(items[key])) if isinstance(key, slice) else items[key][1]

    def __setitem__(self, key: int, module: Module) -> None:
        self._modules[list(self._modules)[key]] = module

    def append(self, module: Module) -> Any:
        self.add_module(str(len(self)), module)
        return self


class ModuleList(Module):
    """Modules in a list."""

    def __init__(self, modules: Any = ()) -> None:
        super().__init__()
        self.extend(modules)

    def extend(self, modules: Any) -> Any:
        for module in modules or ():
            self.append(module)
        return self

    def append(self, module: Module) -> Any:
        self.add_module(str(len(self)), module)
        return self

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, key: Any) -> Any:
        found = list(self._modules.values())[key]
        return type(self)(found) if isinstance(key, slice) else found


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        for name, module in (modules or {}).items():
            self.add_module(name, module)

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


class ParameterList(Module):
    """Parameters in a list."""

    def __init__(self, values: Any = ()) -> None:
        super().__init__()
        for value in values or ():
            self.append(value)

    def append(self, value: Any) -> Any:
        self.register_parameter(str(len(self._parameters)), value if isinstance(value, Parameter) else Parameter(value))
        return self

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parameters.values())

    def __getitem__(self, key: int) -> Any:
        return list(self._parameters.values())[key]

    def __repr__(self) -> str:
        return _shown(self, {name: x.dtype.name for name, x in self._parameters.items()})


class ParameterDict(Module):
    """Parameters by name."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self.update(parameters or {})

    def update(self, parameters: Any) -> None:
        """Take parameters in, by name or as pairs."""
        for name, value in dict(parameters).items():
            self[name] = value

    def __getitem__(self, key: str) -> Any:
        return self._parameters[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.register_parameter(key, value if isinstance(value, Parameter) else Parameter(value))

    def __contains__(self, key: str) -> bool:
        return key in self._parameters

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def keys(self) -> Any:
        return self._parameters.keys()

    def items(self) -> Any:
        return self._parameters.items()

    def values(self) -> Any:
        return self._parameters.values()

    def __repr__(self) -> str:
        return _shown(self, {name: OF_NUMPY[x._a.dtype].tensor for name, x in self.items()})


def _shown(module: Any, kinds: dict[str, str]) -> str:
    """Return the lines that tell a container's parameters, with what their kinds are called there."""
    own = module._parameters.items()
    lines = [
        f"    ({k}): Parameter containing: [torch.{kinds[k]} of size {'x'.join(map(str, x.shape))}]" for k, x in own
    ]
    return "\n".join([f"{type(module).__name__}(", *lines, ")"]) if lines else f"{type(module).__name__}()"


class DataParallel(Module):
    """A module that would run on several devices: on the CPU it runs as it is."""

    def __init__(self, module: Module, *_: Any, **__: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)


__all__ = listed(globals(), __name__)
