"""A part of a system that is not a text: a model, or a Python function, which maps its inputs to named nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from gradcli.errors import Span
from gradcli.graph.array import Array, Named
from gradcli.graph.node import Node


class Parameter(NamedTuple):
    """An input of a subsystem.

    `shape` has None for a size that is open, and is None itself where even the number of axes is; `names` has what the
    model calls the sizes that are open.  A `fixed` input has
    no derivative: its value, such as integers that are indices, decides what the graph is, and must be known.
    """

    shape: tuple[int | None, ...] | None = None
    default: Array | None = None
    fixed: bool = False
    names: tuple[str, ...] = ()


class Subsystem(Protocol):
    """The part of a system that is read from a file of another kind than text.

    `label` is the file as the user named it, `parameters` its inputs, `weights` its constants that may be inputs,
    `names` what it computes, and `outputs` those of them that are its results.  `notes` are for the user.  `spans` has
    where the nodes were written that `build` returned last, as far as that is known, and `parts` the part of a model
    that they belong to, as a path: a picture has one box for a part.  `variables` has what each is
    a value of, where a loop computes several.
    """

    spans: Mapping[Node, Span]
    parts: Mapping[Node, str]
    variables: Mapping[Node, str]

    @property
    def label(self) -> str:
        """The file as the user named it."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The inputs."""

    @property
    def weights(self) -> Sequence[str]:
        """The names of constants that are inputs where they are differentiated by."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the computed nodes, in order, outputs included."""

    @property
    def outputs(self) -> Sequence[str]:
        """The results."""

    @property
    def notes(self) -> Sequence[str]:
        """Notes to the user on how the file was read."""

    def build(self, inputs: Mapping[str, Node], fixed: Named) -> Mapping[str, Node]:
        """Return the nodes that it computes from those of its inputs, by name and in order; `fixed` has the others.

        Errors: `InputError` where shapes do not fit, and for what is not supported.
        """
