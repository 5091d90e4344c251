"""The points of a run: `--at`, the defaults that a file declares, and `--shape` where there is no point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gradcli.data.arrays import assemble, assigned_array, default_point
from gradcli.errors import Fix, InputError, Source, Span, did_you_mean, option_error, unknown_name
from gradcli.graph.array import Named
from gradcli.graph.names import element_names
from gradcli.graph.shapes import Shape
from gradcli.lang.system import System
from gradcli.lang.values import Assignment, read_shapes
from gradcli.process.platform import quote

if TYPE_CHECKING:
    from gradcli.cli.options import PointText  # `gradcli.parse` needs neither click nor the options of commands

_WORD = 3  # letters of a name that may be misspelled: x1 is hardly meant to be x2
_LISTED = 6  # names in a hint
_TYPED = 60  # characters of an option that a hint repeats


def read_shape_options(system: System, options: Sequence[str]) -> dict[str, Shape]:
    """Return the shapes that `--shape` gives, of inputs that the system has."""
    shapes: dict[str, Shape] = {}
    for option in options:
        for name, shape in read_shapes(option).items():
            if name in shapes:
                raise option_error("--shape", f"--shape: `{name}` is given two shapes", text=name)
            _known(name, system, "--shape")
            shapes[name] = shape
    return shapes


def _known(name: str, system: System, option: str) -> None:
    """Check that a name is an input of the system."""
    if name in system.uses or name in system.defaults:
        return
    if name in system.assigned:
        raise option_error(option, f"{option}: `{name}` is computed by the system", "only inputs have values", name)
    if not system.leaves():
        system.graph({})  # a system that has no input is wrong itself
    from gradcli.lang.claims import with_brackets  # for an error alone

    error = unknown_name(option, name, f"`{name}` is not in the system", system.leaves(), "inputs")
    fix = with_brackets(system, name)
    raise replace(error, hint=_brackets(fix), fix=fix) if fix else error


def _brackets(fix: Fix) -> str:
    return f"call a function with brackets: `{fix.text}`"


def read_points(system: System, options: Sequence[PointText], shapes: Mapping[str, Shape]) -> list[Named]:
    """Return the points, each with a value for every input; without `--at`, the defaults if they are complete.

    Errors: `InputError` for a point that misses a variable, repeats one or has an unknown one, and for points of
    different shapes.
    """
    declared = default_point(system)
    points = [{**declared, **_point(option.assignments, system)} for option in options]
    if not points:
        complete = bool(declared) and set(system.leaves(shapes)) <= set(declared)
        points = [declared] if complete else []
    names = system.leaves({*shapes, *(n for p in points for n in p)})
    for k, point in enumerate(points, 1):
        which = f"point {k}" if len(points) > 1 else "the point"
        missing = [n for n in names if n not in point]
        if missing:
            from gradcli.lang.claims import with_brackets

            error = _missing_values(which, {n: shapes.get(n, ()) for n in missing}, options[k - 1], system.assigned)
            fixes = (fix for name in (*point, *system.assigned) if (fix := with_brackets(system, name)))
            if fix := next(fixes, None):
                raise replace(error, hint=f"{_brackets(fix)}; or {error.hint}", fix=fix)
            raise error
        _check_shapes(which, point, {n: shapes.get(n, points[0][n].shape) for n in names}, options[k - 1 : k])
    return [{n: point[n] for n in names} for point in points]


def _check_shapes(which: str, point: Named, wanted: Mapping[str, Shape], options: Sequence[PointText]) -> None:
    """Check that the values of a point have the inputs' shapes; `options` holds the typed text, if any."""
    for name, shape in wanted.items():
        if point[name].shape != shape:
            at = [a.span for option in options for a in option.assignments if a.name == name]
            message = f"{which} has `{name}` of shape {point[name].shape}, but its shape is {shape}"
            raise InputError(message, at[0] if at else None, "all points have the same shapes")


def _missing_values(which: str, missing: Mapping[str, Shape], option: str, assigned: Iterable[str]) -> InputError:
    """Return the error of a point without values for some inputs, of those shapes; one may be a misspelled name."""
    listed = "`, `".join(list(missing)[:_LISTED]) + "`" + " and more" * (len(missing) > _LISTED)
    typed = option.strip() if len(option) <= _TYPED else "…"
    added = quote(",".join(filter(None, (typed, example_of(missing)))))
    end = Span(Source(option, "--at"), len(option), len(option))
    from gradcli.lang.claims import WITH_BRACKETS

    function = next((name for name in missing if name in WITH_BRACKETS), None)
    hint = f"add it: --at {added}"
    if function:
        hint = f"`{function}` is a function where it is called with brackets, `{function}(x)`; else {hint}"
    elif meant := next((m for n in missing if len(n) >= _WORD and (m := did_you_mean(n, assigned))), None):
        hint = f"{meant} else {hint}"
    return InputError(f"{which} has no value for `{listed}", end, hint)


def example_of(shapes: Mapping[str, Shape]) -> str:
    """Return a point of inputs of these shapes, as it is typed.

    >>> example_of({"a": (), "x": (2,)})
    'a=1,x[0]=1,x[1]=1'
    """
    elements = [e for name, shape in shapes.items() for e in element_names(name, shape)[: _LISTED + 1]]
    return ",".join([*(f"{e}=1" for e in elements[:_LISTED]), *["…"] * (len(elements) > _LISTED)])


def read_constants(system: System, options: Sequence[PointText]) -> Named:
    """Return the inputs that one `--at` gives beside a file of points."""
    return {name: value for option in options for name, value in _point(option.assignments, system).items()}


def _point(assignments: Sequence[Assignment], system: System) -> Named:
    """Return the values of one `--at`."""
    wanted = (a for a in assignments if not a.optional or a.name in system.uses or a.name in system.defaults)
    return assembled(wanted, lambda name: _known(name, system, "--at"))


def assembled(assignments: Iterable[Assignment], check: Callable[[str], object] = str) -> Named:
    """Return the arrays that assignments make, whole or element by element; `check` raises an error for a wrong name.

    Errors: `InputError`, with its position.
    """
    point: Named = {}
    elements: dict[str, dict[tuple[int, ...], Any]] = {}
    for a in assignments:
        value = assigned_array(a, check)
        if a.key is None:
            point[a.name] = value
        else:
            elements.setdefault(a.name, {})[a.key] = value
    return point | {name: assemble(name, parts.items()) for name, parts in elements.items()}
