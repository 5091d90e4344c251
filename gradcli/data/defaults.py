"""The values that a system declares for its inputs."""

from __future__ import annotations

from gradcli.data.arrays import array_of
from gradcli.errors import InputError
from gradcli.graph.array import Named
from gradcli.graph.kinds import KINDS, is_of_kind
from gradcli.lang.builder import build
from gradcli.lang.system import System


def default_point(system: System) -> Named:
    """Return the default values that the system declares."""
    defaults = ((name, p.default) for part in system.subsystems for name, p in part.parameters.items())
    point = {name: default for name, default in defaults if default is not None}
    for name, declared in system.defaults.items():
        try:
            point[name] = array_of(declared.file or build(declared.expression, {}))
        except InputError as error:
            raise error.at(declared.span) from None
        if declared.kind is not None and not is_of_kind(declared.kind, point[name]):
            expression = declared.expression
            raise InputError(
                f"`{name}` is declared as {declared.kind}, and its value is not",
                expression.span(expression.tree) if declared.file is None else declared.span,
                f"{declared.kind}: {KINDS[declared.kind].what}",
            )
    return point
