"""`torch.nn`'s containers: modules in a row, in a list, by name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

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
        """Return what the last layer makes of what the others made."""
        for module in self._modules.values():
            input = module(input)
        return input

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, key: Any) -> Any:
        items = list(self._modules.items())
        if isinstance(key, int) and not -len(items) <= key < len(items):
            raise IndexError(f"index {key} is out of range")
        return type(self)(dict(items[key])) if isinstance(key, slice) else items[key][1]

    def _become(self, modules: Any) -> Any:
        self._modules.clear()
        for i, module in enumerate(modules):
            self.add_module(str(i), module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Put a layer in front of another."""
        own = list(self)
        own.insert(index, module)
        return self._become(own)

    def extend(self, sequential: Any) -> Any:
        """Add layers at the end."""
        return self._become([*self, *sequential])

    def pop(self, key: int) -> Module:
        """Take a layer away."""
        own = list(self)
        found = own.pop(key)
        self._become(own)
        return found  # type: ignore[no-any-return]

    def __add__(self, other: Any) -> Any:
        return type(self)(*self, *other)

    def __setitem__(self, key: int, module: Module) -> None:
        self._modules[list(self._modules)[key]] = module

    def append(self, module: Module) -> Any:
        """Add a layer at the end."""
        self.add_module(str(len(self)), module)
        return self


class ModuleList(Module):
    """Modules in a list."""

    def __init__(self, modules: Any = ()) -> None:
        super().__init__()
        self.extend(modules)

    def extend(self, modules: Any) -> Any:
        """Add modules at the end."""
        for module in modules or ():
            self.append(module)
        return self

    def append(self, module: Module) -> Any:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, key: Any) -> Any:
        found = list(self._modules.values())[key]
        return type(self)(found) if isinstance(key, slice) else found

    def _children_shown(self) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        for text, group in groupby(enumerate(self), lambda row: repr(row[1])):
            places = [i for i, _ in group]
            several = f"{len(places)} x " if len(places) > 1 else ""
            found.append(("-".join(dict.fromkeys((str(places[0]), str(places[-1])))), Shown(several + text)))
        return found


class Shown:
    """A text that is shown in the place of a module."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


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
        """Return the names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Return names and modules."""
        return self._modules.items()

    def values(self) -> Any:
        """Return the modules."""
        return self._modules.values()


class ParameterList(Module):
    """Parameters in a list."""

    def __init__(self, values: Any = ()) -> None:
        super().__init__()
        for value in values or ():
            self.append(value)

    def append(self, value: Any) -> Any:
        """Add a parameter at the end."""
        self.register_parameter(str(len(self._parameters)), value if isinstance(value, Parameter) else Parameter(value))
        return self

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parameters.values())

    def __getitem__(self, key: int) -> Any:
        return list(self._parameters.values())[key]

    def __repr__(self) -> str:
        rows = [
            f"  ({n}): Parameter containing: [{p.dtype} of size {'x'.join(map(str, p.shape))}]"
            for n, p in self._parameters.items()
        ]
        inner = "\n".join(rows)
        return (
            f"ParameterList({inner})" if len(rows) < 2 else "ParameterList(\n" + inner.replace("  (", "    (") + "\n)"
        )


class DataParallel(Module):
    """A module that would run on several devices: on the CPU it runs as it is."""

    def __init__(self, module: Module, *_: Any, **__: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the module gives."""
        return self.module(*args, **kwargs)


__all__ = listed(globals(), __name__)
