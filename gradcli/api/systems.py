"""The Python API: systems as graphs, their derivatives as graphs, numbers, and source code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from gradcli.api.compiled_call import CompiledCall, Evaluated
from gradcli.api.differentiate import Derivative, grad, jacobian
from gradcli.api.differentiate import hessian as _hessian
from gradcli.engine.compiled import Compiled
from gradcli.engine.evaluate import evaluate as _evaluate
from gradcli.engine.names import ENGINES, OLDER_NAMES
from gradcli.engine.numeric_jacobian import numeric_jacobian as _numeric_jacobian
from gradcli.engine.straight_line import StraightLine
from gradcli.errors import InputError, Source, nearest
from gradcli.graph.array import Array
from gradcli.graph.graph import Graph, appearance
from gradcli.graph.hessian import gradient, scalar_output
from gradcli.graph.jvp import jvp as _jvp
from gradcli.graph.node import Node, const
from gradcli.graph.rewrite import substituted
from gradcli.graph.vjp import vjp as _vjp
from gradcli.pyfunc.tracer import leaves

if TYPE_CHECKING:
    from gradcli.api.notebook import Explanation
    from gradcli.api.recordings import Page

Shape = tuple[int, ...]


def parse(text: str, **shapes: Shape) -> Graph:
    """Return the graph of a system of statements; `shapes` are those of its inputs.

    An input without a shape has that of its `input` line, or is a scalar.

    Errors: `InputError`, whose text shows the position.

    >>> parse("y = x @ M", x=(3,), M=(3, 2)).outputs["y"].shape
    (2,)
    >>> parse("input x = [1, 2, 3]; y = x**2").outputs["y"].shape
    (3,)
    """
    from gradcli.api.notebook import show_graphs
    from gradcli.data.arrays import default_point
    from gradcli.lang.claims import without_claims
    from gradcli.lang.system import read_system

    show_graphs()
    system = read_system([without_claims(Source(text))])
    return system.graph({name: value.shape for name, value in default_point(system).items()} | shapes)


def evaluate(graph: Graph, values: Mapping[str, Any]) -> dict[str, Array]:
    """Return the values of the outputs at all points.

    `values` holds for each input an array of its shape with the points as an added last axis, of length N or 1.
    Results have the same layout.  Nothing is raised for 1/0 or log(0): the result is inf or nan.

    Errors: `InputError` for an input that is missing or has another shape.

    >>> evaluate(parse("y = 3*x**2"), {"x": np.array([1.0, 2.0])})
    {'y': array([ 3., 12.])}
    >>> evaluate(parse("y = a*b"), {"a": np.array([1.0])})
    Traceback (most recent call last):
    gradcli.errors.InputError: the input `b` has no value
      it is an array of shape (N,), where N is the number of points
    """
    return _evaluate(graph, _points(graph, values))


def _points(graph: Graph, values: Mapping[str, Any]) -> dict[str, Array]:
    """Return the values of the inputs at all points.

    Errors: `InputError` for an input that is missing or has another shape, and for different numbers of points.
    """
    result: dict[str, Array] = {}
    counts: dict[int, str] = {}
    for name, node in graph.inputs.items():
        wanted = str((*node.shape, "N")).replace("'", "") if node.shape else "(N,)"
        hint = f"it is an array of shape {wanted}, where N is the number of points"
        if name not in values:
            raise InputError(f"the input `{name}` has no value", hint=hint)
        value = _numbers(name, values[name])
        if value.ndim != len(node.shape) + 1 or value.shape[:-1] != node.shape:
            raise InputError(f"the input `{name}` has shape {value.shape}", hint=hint)
        result[name] = value
        if value.shape[-1] != 1:
            counts.setdefault(value.shape[-1], name)
    if len(counts) > 1:
        (n, first), (m, other), *_ = counts.items()
        raise InputError(f"the input `{first}` has {n:,} points, and `{other}` has {m:,}")
    return result


def _numbers(name: str, value: Any) -> Array:
    """Return a value as an array of numbers; complex ones are kept, for a complex step.

    Errors: `InputError` for anything else.
    """
    try:
        array = np.asarray(value)
        return array if array.dtype.kind in "fc" else array.astype(float)
    except (TypeError, ValueError):
        raise InputError(f"the input `{name}` is not an array of numbers") from None


def numeric_jacobian(graph: Graph, wrt: Sequence[str], at: Mapping[str, Any]) -> Array:
    """Return J[i, j] = ∂y_i/∂x_j at a point, of shape (elements of all outputs, elements of the leaves `wrt`).

    The derivatives are those of automatic differentiation: no finite differences are taken.  `at` holds an array of its
    shape for each leaf.

    Errors: `InputError` for an input that is missing or has another shape, and for an unknown name in `wrt`.

    >>> numeric_jacobian(parse("y = 3*x**2", x=(2,)), ["x"], {"x": [1.0, 2.0]})
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    _check_wrt(graph, wrt)
    return _numeric_jacobian(graph, wrt, _point(graph, at))


def _point(graph: Graph, at: Mapping[str, Any]) -> dict[str, Array]:
    """Return the values of the inputs at one point.

    Errors: `InputError` for an input that is missing or has another shape.
    """
    point: dict[str, Array] = {}
    for name, node in graph.inputs.items():
        if name not in at:
            raise InputError(f"the input `{name}` has no value", hint=f"its shape is {node.shape}")
        point[name] = _numbers(name, at[name])
        if point[name].shape != node.shape:
            raise InputError(f"the input `{name}` has shape {point[name].shape}", hint=f"its shape is {node.shape}")
    return point


def _check_wrt(graph: Graph, wrt: Iterable[str]) -> None:
    for name in wrt:
        if name not in graph.inputs:
            raise InputError(f"`{name}` is not an input", hint=nearest(name, graph.inputs, "inputs"))


@overload
def vjp(graph: Graph, wrt: Iterable[str] | None = None) -> Graph: ...
@overload
def vjp(graph: Callable[..., Any], *args: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]: ...
def vjp(graph: Any, *args: Any, **wrt: Any) -> Any:
    """Return the graph of vᵀJ, or of a Python function its value at the arguments and the function from v to vᵀJ.

    The graph's inputs are those of `graph`, then a cotangent `y.v` of each output's shape; its outputs are `x.grad`, of
    the shape of each input in `wrt` (all by default).  A function's v has the form of its value; vᵀJ is a tuple, with
    the gradient by each argument.

    >>> list(vjp(parse("y = x**2")).outputs)
    ['x.grad']
    >>> value, pullback = vjp(lambda x, k: k * x**2, np.array([1.0, 2.0]), 3.0)
    >>> pullback(np.array([1.0, 10.0]))
    (array([  6., 120.]), np.float64(41.0))
    """
    if isinstance(graph, Graph):
        return _vjp(graph, *args, **wrt)

    def pullback(v: Any) -> tuple[Any, ...]:
        def weighted(*inner: Any) -> Any:
            return sum(np.sum(a * b) for (_, a), (_, b) in zip(leaves(v), leaves(graph(*inner)), strict=True))

        return grad(weighted, tuple(range(len(args))))(*args)  # type: ignore[no-any-return]

    return graph(*args), pullback


@overload
def jvp(graph: Graph, wrt: Iterable[str] | None = None) -> Graph: ...
@overload
def jvp(graph: Callable[..., Any], args: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]: ...
def jvp(graph: Any, *args: Any, **wrt: Any) -> Any:
    """Return the graph of J·u, or of a Python function its value at the arguments and J·u, given both as tuples.

    The graph's inputs are those of `graph`, then a tangent `x.u` of the shape of each input in `wrt` (all by default);
    its outputs are `y.jvp`, of each output's shape.

    >>> list(jvp(parse("y = x**2")).inputs)
    ['x', 'x.u']
    >>> jvp(lambda x, k: k * x**2, (np.array([1.0, 2.0]), 3.0), (np.array([1.0, 0.5]), 0.0))
    (array([ 3., 12.]), array([6., 6.]))
    """
    if isinstance(graph, Graph):
        return _jvp(graph, *args, **wrt)
    point, tangents = args
    along = jacobian(lambda t: graph(*(x + t * u for x, u in zip(point, tangents, strict=True))))
    return graph(*point), along(0.0)


@overload
def hessian(graph: Graph, wrt: Sequence[str] | None = None) -> Graph: ...
@overload
def hessian(graph: Callable[..., Any], wrt: int | str = 0) -> Derivative: ...
def hessian(graph: Any, wrt: Any = None) -> Graph | Derivative:
    """Return the graph of the second derivatives of the scalar output with respect to `wrt` (all inputs by default).

    Of a Python function it returns the function of the same arguments whose value is the Hessian by one of them, whose
    position or name is `wrt` (0 by default; see `grad`).

    The graph's outputs are `d2y/dx/dz`, of the shape of x followed by that of z, for each pair of inputs.

    Errors: `InputError` when there are several outputs, when it is not a scalar, and for names that are not inputs.

    >>> found = hessian(parse("f = x**2*y"))
    >>> values = evaluate(found, {"x": [3.0], "y": [5.0]})
    >>> {name: value.tolist() for name, value in values.items()}
    {'d2f/dx/dx': [10.0], 'd2f/dx/dy': [6.0], 'd2f/dy/dx': [6.0], 'd2f/dy/dy': [0.0]}
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([3.0, 5.0]))
    array([[10.,  6.],
           [ 6.,  0.]])
    """
    from gradcli.pages.hessian.question import hessian_columns

    if not isinstance(graph, Graph):
        return _hessian(graph, 0 if wrt is None else wrt)
    by = list(graph.inputs) if wrt is None else list(wrt)
    _check_wrt(graph, by)
    return hessian_columns(scalar_output(graph)[0], gradient(graph, by), by).graph


def export(
    graph: Graph,
    to: str,
    what: Sequence[str] = ("value", "vjp", "jacobian"),
    *,
    name: str = "model",
    wrt: Sequence[str] | None = None,
    sparse: bool = False,
) -> str:
    """Return source code of the system and its derivatives, as `gradcli export` writes it.

    `to` is `numpy`, `torch`, `jax`, `c` or `javascript`; `what` are some of `value`, `vjp`, `jacobian`, `jvp`,
    `hessian` and `hvp`.  The parameters have the order of the graph's inputs.

    Errors: `InputError` for an unknown language or function, and for what would be too large.

    >>> namespace = {}
    >>> exec(export(parse("y = a*b"), "numpy", ["vjp"]), namespace)
    >>> namespace["model_vjp"](2.0, 3.0, 1.0)
    (3.0, 2.0)
    """
    from gradcli.codegen.kinds import KINDS, check
    from gradcli.codegen.program import Request, source_code
    from gradcli.codegen.targets import ENDINGS

    if not isinstance(graph, Graph):
        raise TypeError("`export` takes a graph, which `parse(text)` or `trace(f)(…)` returns")
    texts = [target for target in ENDINGS if target != "onnx"]  # whose files are not text
    for names, known, kind in ((to, texts, "languages"), *((w, KINDS, "functions") for w in what)):
        if names not in known:
            raise InputError(f"unknown {kind.removesuffix('s')} `{names}`", hint=nearest(names, known, kind))
    if not name.isascii() or not name.isidentifier():
        raise InputError(f"`{name}` is not the name of a function", hint="letters, digits and `_`")
    by = list(graph.inputs) if wrt is None else list(wrt)
    _check_wrt(graph, by)
    check(graph, what)
    return source_code(graph, [], Request(name, what, by, sparse=sparse, target=to))


def explain(
    system: str | Graph | Any, at: Mapping[str, Any] | None = None, v: Any = None, *, wrt: Sequence[str] | None = None
) -> Explanation | Page:
    """Return the gradients at a point: as text the page of `gradcli backward`, in a notebook a live page.

    `at` holds a number or an array for each input, `v` the cotangent of each output; a single scalar output has 1
    without one.  The live page has fields for the inputs and for v; its method `html` returns it as a file.

    A tensor of PyTorch's is explained from its `grad_fn` alone, without a point; `v` is then its cotangent, and no
    `.grad` changes.

    Errors: `InputError` as for `parse`, and for an input or a v that is missing or has another shape.

    >>> print(explain("y = x**2", {"x": 3}))
    y = x**2 = 9   at x = 3
    <BLANKLINE>
    v = 1, the default for a scalar: the gradient of y itself
    <BLANKLINE>
    x.grad = v·∂y/∂x = 1·(2*x) = 1·6 = 6
    <BLANKLINE>
    in PyTorch: y.backward()
    """
    from gradcli.api.notebook import Explanation
    from gradcli.api.recordings import explained, is_tensor

    if is_tensor(system):
        return explained(system, v)
    if at is None:
        raise InputError("a system is explained at a point", hint='for example gradcli.explain("y = x**2", {"x": 3})')
    point = {name: np.asarray(_numbers(name, value), float) for name, value in at.items()}
    graph = parse(system, **{name: value.shape for name, value in point.items()}) if isinstance(system, str) else system
    by = appearance(graph) if wrt is None else list(wrt)
    _check_wrt(graph, by)
    point = _point(graph, point)
    weights = {name: _numbers(f"{name}.v", value) for name, value in cotangents_of(graph, v).items()}
    for name, value in weights.items():
        if value.shape != graph.outputs[name].shape:
            raise InputError(f"v: `{name}` has shape {value.shape}", hint=f"its shape is {graph.outputs[name].shape}")
    return Explanation(graph, by, point, weights, v is None)


class CompiledFunction:
    """A system that is ready to be called: with its inputs in order, or by their names.

    A call returns the values of the outputs and the gradients of the inputs.  `v` holds the cotangent of each output;
    without it, a single scalar output has 1.  Inputs have their shapes, for one point, or one axis more, the last, for
    many points; the results then have it, too.

    Errors: `InputError` for an input that is missing, unknown or has another shape, and for a missing `v`.
    """

    def __init__(self, graph: Graph, wrt: Sequence[str], engine: str) -> None:
        self.graph = graph
        _check_wrt(graph, wrt)
        swept = _vjp(graph, wrt)
        outputs = {**graph.outputs, **swept.outputs}
        self._gradients = {name: f"{name}.grad" for name in wrt}
        self._all = Graph.of(swept.inputs, outputs, names=graph.names, spans=graph.spans)
        self._shapes = {name: node.shape for name, node in graph.inputs.items()}
        self._run = Compiled(self._all, engine=engine)
        self._at_point: StraightLine | None = None  # without v: the gradients of a single scalar output
        if engine == "numpy" and len(graph.outputs) == 1 and all(y.size == 1 for y in graph.outputs.values()):
            ones = {node: const(1, node.shape) for name, node in swept.inputs.items() if name not in graph.inputs}
            found = substituted([*outputs.values()], ones)
            self._at_point = StraightLine(Graph.of(graph.inputs, dict(zip(outputs, found, strict=True))))

    def __call__(self, *inputs: Any, v: Mapping[str, Any] | None = None, **named: Any) -> Evaluated:
        """Return values and gradients at one point, or at many."""
        arrays = {name: _numbers(name, value) for name, value in self._bound(inputs, named).items()}
        if v is None and self._at_point is not None and {n: a.shape for n, a in arrays.items()} == self._shapes:
            numbers = self._at_point(*(np.asarray(arrays[name], float) for name in self._shapes))
            result = {name: np.array(a, float) for name, a in zip(self._all.outputs, numbers, strict=True)}
        else:
            arrays |= {f"{name}.v": _numbers(f"{name}.v", x) for name, x in cotangents_of(self.graph, v).items()}
            result = self._at_points(arrays)
        gradients = {name: result[output] for name, output in self._gradients.items()}
        return Evaluated({name: result[name] for name in self.graph.outputs}, gradients)

    def _at_points(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Return all outputs, with an axis of points where an input has one."""
        nodes = self._all.inputs
        many = any(arrays[name].ndim > len(nodes[name].shape) for name in arrays if name in nodes)
        points = _points(self._all, {n: a if a.ndim > len(nodes[n].shape) else a[..., None] for n, a in arrays.items()})
        count = max(a.shape[-1] for a in points.values())
        block = {n: np.ascontiguousarray(np.broadcast_to(a, (*a.shape[:-1], count)), float) for n, a in points.items()}
        results = self._run(block)
        return {n: np.broadcast_to(a, (*a.shape[:-1], count)) if many else a[..., 0] for n, a in results.items()}

    def _bound(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        names = list(self.graph.inputs)
        if len(inputs) > len(names):
            raise InputError(f"there are {len(names)} inputs ({', '.join(names[:6])}), and {len(inputs)} values")
        result = dict(zip(names, inputs, strict=False))
        for name, value in named.items():
            if name in result:
                raise InputError(f"the input `{name}` has two values")
            _check_wrt(self.graph, [name])
            result[name] = value
        return result


def cotangents_of(graph: Graph, v: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the cotangents of the outputs, by the outputs' names; 1 for a single scalar output.

    Errors: `InputError` for a name that is not an output, and where v is missing.
    """
    outputs: Mapping[str, Node] = graph.outputs
    if v is None:
        name, y = next(iter(outputs.items()))
        if len(outputs) > 1 or y.size != 1:
            hint = f"v has a weight for each element of an output: v={{'{name}': …}}"
            raise InputError("only a single scalar output has a gradient without v", hint=hint)
        return {name: np.ones(y.shape)}
    for name in v:
        if name not in outputs:
            raise InputError(f"v: `{name}` is not an output", hint=nearest(name, outputs, "outputs"))
    return {name: v.get(name, np.zeros(y.shape)) for name, y in outputs.items()}


@overload
def compile(
    system: str | Graph, *, wrt: Sequence[str] | None = None, engine: str = "numpy", **shapes: Shape
) -> CompiledFunction: ...
@overload
def compile(system: Callable[..., Any], *, wrt: Sequence[str] | None = None) -> CompiledCall: ...
def compile(  # as gradcli.compile
    system: Any, *, wrt: Sequence[str] | None = None, engine: str = "numpy", **shapes: Shape
) -> CompiledFunction | CompiledCall:
    """Return a function of the inputs of a system that computes values and gradients.

    `system` may be a Python function on NumPy arrays, or a derivative of one, such as `grad(f)`: the result is called
    with its arguments, and returns what the derivative does.  It is traced once for arguments of the same shapes; what
    it reads beside them is what it was then.

    Else `system` is a graph, or a text with the `shapes` of its inputs as for `parse`; `wrt` are the inputs of which
    there are gradients, all by default; `engine` is `numpy`, `llvm` or `jax`.

    Errors: `InputError` as for `parse`, and for an engine that is not installed.

    >>> f = compile("y = a*b**2")
    >>> values, gradients = f(2.0, 3.0)
    >>> values["y"].item(), gradients["a"].item(), gradients["b"].item()
    (18.0, 9.0, 12.0)
    >>> compile("y = sum(x**2)", x=(2,))(x=[1.0, 2.0]).gradients["x"]
    array([2., 4.])
    >>> f([1.0, 2.0], 3.0).gradients["b"]
    array([ 6., 12.])
    >>> from gradcli import grad
    >>> compile(grad(lambda x: np.sum(x**2)))(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    if not isinstance(system, str | Graph):
        if shapes or engine != "numpy":
            raise InputError("a Python function has its shapes from its arguments, and the engine numpy")
        return CompiledCall(system, wrt)
    graph = parse(system, **shapes) if isinstance(system, str) else system
    engine = OLDER_NAMES.get(engine, engine)
    if engine not in ENGINES:
        raise InputError(f"unknown engine `{engine}`", hint=nearest(engine, ENGINES, "engines"))
    return CompiledFunction(graph, list(graph.inputs) if wrt is None else wrt, engine)
