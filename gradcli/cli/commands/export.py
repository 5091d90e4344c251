"""gradcli export: the system and its derivatives as source code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from gradcli.cli import options as shared
from gradcli.codegen.targets import ENDINGS, by_ending
from gradcli.errors import InputError, Notes, option_error, unknown_name
from gradcli.text.plain import print_utf8

if TYPE_CHECKING:
    from gradcli.cli.inputs.system import Situation
    from gradcli.codegen.onnx import OpenSize
    from gradcli.codegen.program import Request
    from gradcli.graph.graph import Graph
    from gradcli.lang.system import System

_LISTED = 4  # sizes in a note
TOLERANCES = {"float32": 1e-3, "float64": 1e-9}  # of what a model computes, at the point at which it is tested


@click.command(cls=shared.SystemCommand)
@shared.gathered("options", shared.SystemOptions, (click.argument("expr", nargs=-1), shared.file_option))
@click.option("--to", type=click.Choice([*ENDINGS]))
@shared.names_option("--what", "The functions: value, vjp, jacobian, jvp, hessian, hvp.", default="value,vjp,jacobian")
@click.option("--name", metavar="NAME", default="model", show_default=True)
@shared.at_option(help="The point at which the file tests itself.")
@shared.shapes_option(help="Shapes of the inputs: x=3,M=2x2.")
@shared.wrt_option
@shared.outputs_option
@shared.names_option(
    "--arguments", "The order of the inputs as parameters: of --wrt, else of the input lines, else of use."
)
@click.option("--sparse", is_flag=True)
@click.option("--dtype", type=click.Choice(("float32", "float64")))
@click.option("--output", metavar="FILE", type=click.Path(allow_dash=True))
def export(
    options: shared.SystemOptions, to: str | None, what: str, name: str, arguments: str | None, sparse: bool,
    dtype: str | None, output: str | None,
) -> None:  # fmt: skip
    """Write the system and its derivatives as source code.

    EXPR is a statement NAME = EXPRESSION, or several, separated by ; or newlines.  The file has the functions
    NAME(inputs), NAME_vjp(inputs, cotangents) and NAME_jacobian(inputs).  With --at it also has a test of itself:
    python FILE, node FILE, or cc -DNAME_TEST FILE -lm with NAME in capitals.

    Options:
        --to: The language, or the library.  [default: that of the extension of --output]
        --name: The name of the functions.
        --sparse: Write the entries of matrices that are not zero, with rows and columns.
        --dtype: The dtype of an ONNX model.  [default: float32]
        --output: Write to FILE; - is standard output.

    Examples:
        gradcli export "y=3*x**2" --to numpy
        gradcli export "y0=a*b" "y1=b**2" --to c --name model --at a=1,b=2
        gradcli export "p=F/A" --to c --arguments F,A
        gradcli export "y=x@M" --to javascript --shape x=2,M=2x3 --what value,vjp
        gradcli export "f=(1-x)**2+100*(y-x**2)**2" --to torch --what value,vjp,hessian
        gradcli export "y=x**3" --to numpy --shape x=5 --what jacobian --sparse

    """
    from gradcli.cli.inputs.system import read_graph, read_situation, read_system_of
    from gradcli.codegen.kinds import KINDS, check
    from gradcli.codegen.program import Request
    from gradcli.data.arrays import default_point

    to = shared.format_of(to, output, by_ending(to), "--to")
    if to is None:
        raise click.MissingParameter(
            param_hint="'--to'", param_type="option", message=f"Choose from: {', '.join(ENDINGS)}"
        )
    kinds = _kinds(what, tuple(KINDS))
    _check_name(name)
    notes = Notes()
    system = read_system_of(options)
    situation = read_situation(system, options, notes)
    graph = _ordered(situation.graph, _arguments(system, situation, options, arguments))
    check(graph, kinds)
    by = situation.wrt if options.wrt is not None else [*graph.inputs]
    point = situation.only("the file tests itself at one point, and there are {}")
    request = Request(name, kinds, by, point, sparse=sparse)
    if dtype is not None and to != "onnx":
        hint = "other targets compute in float64"
        raise InputError("--dtype is for --to onnx", hint=hint, options=("--dtype", "--to"))
    if to == "onnx":
        places = _open_sizes(system, options, graph)

        def graph_at(sizes: Mapping[str, int]) -> Graph:
            shapes = {n: [*x.shape] for n, x in graph.inputs.items()}
            for place in places:
                shapes[place.source][place.axis] = sizes[place.name]
            new = {n: tuple(shape) for n, shape in shapes.items()}
            return _ordered(read_graph(system, new, options, point or default_point(system))[0], [*graph.inputs])

        _write_model(graph, request, dtype or "float32", output, notes, places, graph_at)
    else:
        _write_source(graph, _statements(system, graph), request, to, output, notes)


def _check_name(name: str) -> None:
    """Check that a function can have this name in each language."""
    if not (name.isascii() and name.isidentifier()) or len(name) > 100:
        message = f"--name: `{name}` cannot be the name of a function"
        raise option_error("--name", message, "letters, digits and `_`", name)
    if name.startswith("_"):  # which compilers keep for themselves
        raise option_error("--name", f"--name: `{name}` does not begin with a letter", f"for example f{name}", name)


def _write_source(
    graph: Graph, statements: list[str], request: Request, to: str, output: str | None, notes: Notes
) -> None:
    """Write the source code of the wanted functions in a language."""
    from gradcli.cli.output import deliver
    from gradcli.codegen.kinds import KINDS, sparsity_note
    from gradcli.codegen.program import source_code

    matrices = [kind for kind in request.what if KINDS[kind].matrix]
    if request.sparse and not matrices:
        raise option_error("--sparse", "--sparse is for matrices", "add jacobian or hessian to --what")
    text = source_code(graph, statements, replace(request, target=to))
    for kind in () if request.sparse else matrices:
        if note := sparsity_note(kind, graph, request.wrt):
            notes.add("note", note)
    print_utf8()
    deliver(text, output, notes, f"{to} with {', '.join(request.what)}")


def _write_model(
    graph: Graph, request: Request, dtype: str, output: str | None, notes: Notes, places: Sequence[OpenSize],
    graph_at: Callable[[Mapping[str, int]], Graph],
) -> None:  # fmt: skip
    """Write an ONNX model, which `onnx.reference` has computed at the point, if there is one.

    Sizes stay open where the graph is the same at others.
    """
    from gradcli.cli.output import deliver

    if request.sparse:
        raise option_error("--sparse", "--sparse is not written as a model", "--what vjp or jvp takes a product with J")
    if output is None or output == "-":
        raise InputError("an ONNX model is not text", hint="name a file: --output model.onnx")
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise InputError("models are written by the package `onnx`", hint="pip install 'gradcli[onnx]'") from None
    from gradcli.codegen.onnx import compared, model, open_model

    proto = None
    if places:
        sizes = {p.name: graph.inputs[p.source].shape[p.axis] for p in places}
        proto = open_model(graph_at, sizes, places, request.what, request.wrt, request.name, dtype)
        if proto is None:
            listed = ", ".join(f"{p.name} = {sizes[p.name]} of `{p.source}`" for p in places[:_LISTED])
            fixed = f"the sizes that were open are fixed: {listed}{', …' * (len(places) > _LISTED)}"
            notes.add("note", f"{fixed}\n  the nodes of the model that is written depend on them")
    proto = proto or model(graph, request.what, request.wrt, request.name, dtype)
    at = request.at
    if at is not None and (gap := compared(proto, graph, request.what, request.wrt, at)) > TOLERANCES[dtype]:
        more = "; --dtype float64 keeps more digits" * (dtype == "float32")
        differ = f"in {dtype}, results at the point differ from gradcli's by {gap:.0e} of their size"
        notes.add("warning", differ + more)
    deliver(proto.SerializeToString(), output, notes, f"onnx with {', '.join(request.what)}")


def _open_sizes(system: System, options: shared.SystemOptions, graph: Graph) -> list[OpenSize]:
    """Return the sizes that models leave open, but for those that `--shape` gives, or that a fixed input has."""
    from gradcli.codegen.onnx import OpenSize
    from gradcli.lang.values import read_shapes

    given = {name for option in options.shapes for name in read_shapes(option)}
    places = [
        OpenSize(name or f"{source}_{axis}", source, axis)
        for part in system.subsystems
        for source, parameter in part.parameters.items()
        for axis, (size, name) in enumerate(zip(parameter.shape or (), parameter.names, strict=False))
        if size is None
    ]
    sizes: dict[str, set[int | None]] = {}  # None: it is given, or not that of an input
    for p in places:
        is_open = p.source in graph.inputs and p.source not in given
        sizes.setdefault(p.name, set()).add(graph.inputs[p.source].shape[p.axis] if is_open else None)
    return [p for p in places if None not in sizes[p.name] and len(sizes[p.name]) == 1]


def _arguments(system: System, situation: Situation, options: shared.SystemOptions, arguments: str | None) -> list[str]:
    """Return the inputs in the order of the parameters.

    That is the order of `--arguments`, else of `--wrt`, else of the lines that declare inputs.  Others follow in the
    order in which the system reads them.

    Errors: `InputError` for a name in `--arguments` that is no input.
    """
    from gradcli.graph.graph import appearance
    from gradcli.lang.values import read_names

    inputs = situation.graph.inputs
    first = read_names(arguments, "--arguments") if arguments is not None else []
    for name in first:
        if name not in inputs:
            raise unknown_name("--arguments", name, f"`{name}` is not an input", inputs, "inputs")
    if arguments is None and options.wrt is not None:
        first = situation.wrt
    order = dict.fromkeys([*first, *system.defaults, *appearance(situation.graph)])
    return [name for name in order if name in inputs]


def _ordered(graph: Graph, inputs: Sequence[str]) -> Graph:
    """Return a graph with its inputs in another order."""
    from gradcli.graph.graph import Graph

    return Graph.of({name: graph.inputs[name] for name in inputs}, graph.outputs, names=graph.names, spans=graph.spans)


def _kinds(what: str, known: tuple[str, ...]) -> list[str]:
    """Return the requested functions, without repetitions."""
    kinds = list(dict.fromkeys(kind.strip() for kind in what.split(",")))
    for kind in kinds:
        if kind not in known:
            raise unknown_name("--what", kind[:40], f"there is no `{kind[:40]}`", known, "functions")
    return kinds


def _statements(system: System, graph: Graph) -> list[str]:
    """Return the system as the user wrote it, for a comment."""
    from gradcli.graph.names import array_name

    names = {array_name(name) for name in graph.names}
    names |= {name for s in system.statements if s.loop and s.name in names for name in s.loop.integers}
    shapes = [f"{name}: {'×'.join(map(str, x.shape))}" for name, x in graph.inputs.items() if x.shape]
    lines = [s.written for s in system.statements if s.name in names and not s.declares]
    lines = ([f"# {', '.join(shapes)}"] if shapes else []) + lines
    # None ends a comment or a docstring, and none has escapes.
    return [line.replace("\\", "").replace('"""', "'''").replace('"', "'") for line in lines]
