"""Running a script: as Python runs it, with gradcli's `torch` instead of PyTorch's."""

from __future__ import annotations

import atexit
import builtins
import linecache
import os
import sys
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.machinery import BuiltinImporter, ModuleSpec, SourceFileLoader
from pathlib import Path
from typing import Any, NamedTuple

from gradcli.files import program_text
from gradcli.graph import shapes
from gradcli.process.script import Script
from gradcli.process.script_imports import ScriptImports
from gradcli.process.tracebacks import exit_status, traceback_text, without_ours
from gradcli.pytorch.functions import fact
from gradcli.pytorch.messages import MissingError, missing
from gradcli.pytorch.tables import paragraphs, pytorch_names

_MODULES = """
amp autograd autograd.forward_ad autograd.function autograd.functional autograd.gradcheck
autograd.graph cuda distributions func functional linalg nn nn.functional nn.init nn.utils nn.utils.rnn optim
optim.lbfgs optim.lr_scheduler special testing utils utils.checkpoint utils.data version
"""
# What is in a module of another name.
_OTHERS = {
    "autograd": "autograd.anomaly_mode autograd.variable",
    "modes": "autograd.grad_mode",
    "utils": "backends utils.model_zoo",
    "nn.containers": "nn.parallel nn.parallel.data_parallel",
    "cuda": "accelerator backends.cuda backends.cudnn backends.mps mps",
    "distributions": "distributions.bernoulli distributions.categorical distributions.distribution "
    "distributions.exponential distributions.kl distributions.laplace distributions.multivariate_normal "
    "distributions.normal distributions.uniform",
    "nn": " ".join(("nn.modules", *(f"nn.modules.{file.split()[0]}" for file in paragraphs("nn/modules.txt")[1:]))),
    "nn.module": "nn.modules.module nn.parameter",
    "optim": "optim.adadelta optim.adagrad optim.adam optim.adamw optim.optimizer optim.rmsprop optim.sgd",
    "cuda_amp": "cuda.amp cuda.amp.autocast_mode cuda.amp.grad_scaler",
    "amp": "amp.autocast_mode amp.grad_scaler",
    "operations.random": "random",
    "utils.data": "utils.data.dataloader utils.data.dataset utils.data.sampler",
}
# Where gradcli has what a script imports; `functorch` is what `torch.func` was called before.
MODULES = {"torch": "torch", "functorch": "func"} | {f"torch.{name}": name for name in _MODULES.split()}
MODULES |= {f"torch.{name}": home for home, names in _OTHERS.items() for name in names.split()}


# What runs with PyTorch's own binary alone, installed or not.
_NEEDS_PYTORCH = "{0} needs PyTorch itself: run the script with python, after python -m pip install torch {0}"

_MAX_ELEMENTS = 2**30  # of an array: more than a formula's, as the windows of a convolution are many


# Modules that PyTorch does not import itself, so that `dir` does not list them.
_UNLISTED = ("torch.onnx", "torch.optim.", "torch.nn.utils.", "torch.utils.")


def _is_unknown(name: str) -> bool:
    """Return whether PyTorch has no module or attribute of this name."""
    parent, _, inner = name.rpartition(".")
    known = pytorch_names().get(parent)
    if known is None or inner in known or inner.startswith("_"):
        return False
    return not (name.startswith(_UNLISTED) and inner.islower())


class _Finder:
    """The importer of `torch` and its modules; all others are Python's."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        top = name.partition(".")[0]
        if top in ("torchvision", "torchaudio", "torchtext"):
            raise MissingError(top, _NEEDS_PYTORCH.format(top))
        if top not in ("torch", "functorch"):
            return None
        if name not in MODULES:
            if _is_unknown(name):
                return None  # Python raises its own error
            if top == "functorch":
                raise MissingError(name)
            raise missing(name.removeprefix("torch."), [m.removeprefix("torch.") for m in MODULES], "torch.")
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]  # a base class would take a start's tenth

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        result = import_module(f"gradcli.pytorch.{MODULES[spec.name]}")
        view = types.ModuleType(spec.name, result.__doc__)
        view.__path__ = []  # which Python looks for
        view.__dict__.update({name: getattr(result, name) for name in _defined(result)})
        view.__getattr__ = partial(_attribute, result, view)  # type: ignore[method-assign]
        view.__dir__ = partial(_names, view)  # type: ignore[method-assign]
        return view

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: the module is there already."""


def public(module: types.ModuleType) -> list[str]:
    """Return the names of a module, also those that it looks up at their first use."""
    return module.__dir__() if "__dir__" in vars(module) else _defined(module)  # type: ignore[return-value]


def _defined(module: types.ModuleType) -> list[str]:
    """Return the names in a module's `__all__`, or else those that it defines itself."""
    if listed := getattr(module, "__all__", None):
        return list(listed)
    homes = {module.__name__, *(f for f, own in MODULES.items() if module.__name__.endswith(f".{own}"))}
    own = {n: v for n, v in vars(module).items() if not n.startswith("_")}
    return [n for n, v in own.items() if getattr(v, "__module__", None) in homes]


def _attribute(module: types.ModuleType, view: types.ModuleType, attribute: str) -> Any:
    """Return an attribute of a module, from the module that defines it, and set it there for the next time."""
    name, elsewhere = view.__name__, getattr(module, "ELSEWHERE", {})
    if attribute == "__all__":
        result: Any = [n for n in (*public(module), *elsewhere) if n[0] != "_"]
    elif attribute in elsewhere:
        result = getattr(import_module(f"gradcli.pytorch.{elsewhere[attribute]}"), attribute)
    elif f"{name}.{attribute}" in MODULES:
        result = import_module(f"{name}.{attribute}")
    else:
        try:
            result = module.__getattr__(attribute)
        except AttributeError:
            from gradcli.pytorch.names import absent_name_error

            inner = (m.rpartition(".")[2] for m in MODULES if m.rpartition(".")[0] == name)
            # Python asks each module for `__path__` and the like: what it has is listed for an error alone.
            raise absent_name_error(name, attribute, lambda: [*public(module), *elsewhere, *inner]) from None
    setattr(view, attribute, result)
    return result


def _names(view: types.ModuleType) -> list[str]:
    """Return PyTorch's names in a module, or, where they are not recorded, those that it defines."""
    return sorted(pytorch_names().get(view.__name__) or vars(view))


def _code(script: Script) -> types.CodeType:
    if script.data is not None:
        program_text(script.data, script.name)
    return compile(script.source if script.data is None else script.data, script.name, "exec", dont_inherit=True)


class Ending(NamedTuple):
    """The end of a script: its status, and the uncaught exception."""

    status: int
    error: BaseException | None = None
    hook: Any = None  # what the script has for showing errors, in the place of Python's own


def _main(script: Script) -> types.ModuleType:
    """Return the module of a script before it runs, with Python's attributes of `__main__`."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins)
    if sys.version_info < (3, 14):
        main.__dict__.update(__annotations__={})
    main.__loader__ = BuiltinImporter
    if script.folder is not None or script.name == "<stdin>":
        main.__dict__.update(__file__=script.name, __cached__=None)
    if script.folder is not None:
        main.__file__ = os.path.abspath(script.name)
        main.__loader__ = SourceFileLoader("__main__", main.__file__)
    return main


@contextmanager
def _as_main(script: Script, emulates: bool) -> Iterator[types.ModuleType]:
    """Run a block as a script's `__main__`, with its arguments and folder; with `emulates`, gradcli's `torch`."""
    main, finder = _main(script), _Finder()
    before = sys.modules["__main__"], sys.argv, shapes.MAX_ELEMENTS, sys.excepthook, threading.excepthook
    torch = _taken_out() if emulates else {}
    sys.modules["__main__"], sys.argv = main, [script.name.replace("<stdin>", "-"), *script.arguments]
    shapes.MAX_ELEMENTS, threading.excepthook = _MAX_ELEMENTS, _in_a_thread
    if not Path(script.name).is_file():
        lines = script.source.splitlines(keepends=True)
        linecache.cache[script.name] = (len(script.source), None, lines, script.name)
    try:
        with ScriptImports(main, script.folder).started():
            if emulates:
                sys.meta_path.insert(0, finder)
            yield main
    finally:
        with suppress(ValueError):  # the script may have removed it
            sys.meta_path.remove(finder)
        if emulates:
            _taken_out()
            sys.modules.update(torch)
        sys.modules["__main__"], sys.argv, shapes.MAX_ELEMENTS, sys.excepthook, threading.excepthook = before


def _taken_out() -> dict[str, types.ModuleType]:
    """Remove all modules of `torch` from `sys.modules`, and return them."""
    return {n: sys.modules.pop(n) for n in [*sys.modules] if n.partition(".")[0] in ("torch", "functorch")}


def fresh() -> None:
    """Reset the state to that after the import of PyTorch."""
    from gradcli.pytorch.cuts import CUTS
    from gradcli.pytorch.dtypes import float32, set_default_dtype
    from gradcli.pytorch.generator import DEFAULT
    from gradcli.pytorch.modes import Mode
    from gradcli.pytorch.printing import set_printoptions
    from gradcli.pytorch.record import Recorder

    set_default_dtype(float32)
    set_printoptions(profile="default")
    Mode.warned.clear()
    vars(Mode).clear()
    CUTS.clear()
    Recorder.swept = None
    DEFAULT.seed()


def run(script: Script, emulates: bool = True) -> Ending:
    """Run a script to its end, on gradcli's `torch` or on PyTorch; what it prints goes where Python's does.

    Errors: `MissingError` for what gradcli's `torch` lacks; `KeyboardInterrupt`, `BrokenPipeError`.
    """
    if emulates:
        fresh()
    hook = sys.excepthook
    with _as_main(script, emulates) as main, without_ours():
        try:
            exec(_code(script), main.__dict__)
            ending = Ending(0)
        except SystemExit as error:
            ending = Ending(exit_status(error))
        except (MissingError, KeyboardInterrupt, BrokenPipeError):
            raise
        except BaseException as error:
            if emulates:
                _reworded(error)
            ending = Ending(1, error, None if sys.excepthook is hook else sys.excepthook)
        _joined()
    return ending


def _in_a_thread(lost: Any) -> None:
    """Show an exception that ended a thread as Python does, with the script's lines alone."""
    if lost.exc_type is not SystemExit and lost.exc_value is not None and sys.stderr is not None:
        name = lost.thread.name if lost.thread is not None else threading.get_ident()
        sys.stderr.write(f"Exception in thread {name}:\n{traceback_text(lost.exc_value)}")


def _joined() -> None:
    """Wait for the script's threads, as Python does at its end; those of pools, which wait for work, end with ours."""
    pools: Any = sys.modules.get("concurrent.futures.thread")
    if pools is not None:
        atexit.register(pools._python_exit)
    others = {threading.main_thread(), *getattr(pools, "_threads_queues", ())}
    for thread in threading.enumerate():
        if thread not in others and not thread.daemon:
            thread.join()


def _reworded(error: BaseException) -> None:
    """Reword Python's errors about methods and shapes as they are for PyTorch's, which are written in C++."""
    owner = getattr(error, "obj", None)
    if type(error) is AttributeError and isinstance(owner, types.FunctionType):
        is_here = owner.__module__.startswith(tuple(f"gradcli.pytorch.{m}" for m in ("calls", "operations", "tensor")))
        if is_here and fact("python", owner.__name__) is None:
            error.args = (error.args[0].replace("'function'", "'builtin_function_or_method'"),)
