"""`torch.nn`'s containers: modules in a row, in a list, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from gradcli.pytorch.messages import raise_if
from gradcli.pytorch.nn.module import Module, Parameter


class _Listed(Module):
    """A list of modules or parameters, which are named by their indices."""

    kind = "_modules"

    def __init__(self, values: Any = ()) -> None:
        super().__init__()
        self.extend(values or ())

    def append(self, value: Any) -> Any:
        self.add_module(str(len(self)), value)
        return self

    def extend(self, values: Any) -> Any:
        is_list = isinstance(values, Iterable)
        raise_if(not is_list, "no modules to extend by", type(self).__name__, type(values).__name__)
        for value in list(values):
            self.append(value)
        return self

    __iadd__ = extend

    def insert(self, index: int, value: Any) -> Any:
        modules = list(self)
        raise_if(isinstance(self, Sequential) and abs(index) > len(modules), "position to insert", index)
        modules.insert(index, value)
        return self._become(modules)

    def pop(self, key: int) -> Any:
        modules = list(self)
        result = modules.pop(key)
        self._become(modules)
        return result

    def _become(self, values: Any) -> Any:
        self.__dict__[self.kind].clear()
        return self.extend(values)

    def __len__(self) -> int:
        return len(self.__dict__[self.kind])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__dict__[self.kind].values())

    def __getitem__(self, key: Any) -> Any:
        raise_if(isinstance(key, int) and not -len(self) <= key < len(self), "index in a list", key)
        result = list(self)[key]
        return type(self)(result) if isinstance(key, slice) else result

    def __setitem__(self, key: int, value: Any) -> None:
        items = self.__dict__[self.kind]
        items[list(items)[key]] = value

    def __delitem__(self, key: Any) -> None:
        raise_if(isinstance(key, int) and not -len(self) <= key < len(self), "index in a list", key)
        items = list(self)
        del items[key]
        self._become(items)

    def __add__(self, other: Any) -> Any:
        return type(self)([*self, *other])


class ModuleList(_Listed):
    """Modules in a list."""

    def _children_shown(self) -> list[tuple[str, str]]:
        result = []
        for text, group in groupby(enumerate(self), lambda row: repr(row[1])):
            numbers = [str(i) for i, _ in group]
            several = f"{len(numbers)} x " if len(numbers) > 1 else ""
            result.append(("-".join(dict.fromkeys((numbers[0], numbers[-1]))), several + text))
        return result


class Sequential(_Listed):
    """Layers, one after the other."""

    def __init__(self, *args: Any) -> None:
        by_name = len(args) == 1 and isinstance(args[0], dict)
        super().__init__(() if by_name else args)
        for name, module in args[0].items() if by_name else ():
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input

    def __getitem__(self, key: Any) -> Any:
        is_slice = isinstance(key, slice)
        return type(self)(dict(list(self._modules.items())[key])) if is_slice else super().__getitem__(key)

    def __add__(self, other: Any) -> Any:
        return type(self)(*self, *other)


def _parameters_shown(self: Any) -> str:
    rows, word = self._parameters.items(), str if isinstance(self, ParameterList) else "torch.{0.tensor}".format
    kind = "  ({}): Parameter containing: [{} of size {}]"
    return "\n".join(kind.format(n, word(p.dtype), "x".join(map(str, p.shape))) for n, p in rows)


def _parameter(value: Any) -> Parameter:
    return value if isinstance(value, Parameter) else Parameter(value)


class ParameterList(_Listed):
    """Parameters in a list."""

    kind = "_parameters"
    extra_repr = _parameters_shown

    def append(self, value: Any) -> Any:
        self._parameters[str(len(self))] = _parameter(value)
        return self


def _delegated(name: str) -> Any:
    return lambda self, *args: getattr(self.__dict__[self.kind], name)(*args)


class ModuleDict(Module):
    """Modules by name."""

    kind = "_modules"

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        self.update(modules or {})

    def update(self, modules: Any) -> None:
        for name, value in dict(modules).items():
            self[name] = value

    def __setitem__(self, key: str, module: Any) -> None:
        self.add_module(key, module)

    __getitem__, __delitem__, __contains__ = map(_delegated, ("__getitem__", "__delitem__", "__contains__"))
    __len__, __iter__, pop, clear = map(_delegated, ("__len__", "__iter__", "pop", "clear"))
    keys, values, items = map(_delegated, ("keys", "values", "items"))


class ParameterDict(ModuleDict):
    """Parameters by name."""

    kind = "_parameters"
    extra_repr = _parameters_shown

    def __setitem__(self, key: str, value: Any) -> None:
        self._parameters[key] = _parameter(value)

    def items(self) -> Iterator[Any]:
        return ((k, self[k]) for k in self)  # PyTorch's, too, are no views of a dictionary

    def values(self) -> Iterator[Any]:
        return (self[k] for k in self)


class DataParallel(Module):
    """A module that would run on several devices: on the CPU it runs as it is."""

    def __init__(self, module: Module, *_: Any, **__: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)


DataParallel.__module__ = "torch.nn.parallel.data_parallel"
