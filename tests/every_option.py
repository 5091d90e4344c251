"""Command lines that have each command with each of its options, and each option with each of its choices."""

from __future__ import annotations

from collections.abc import Iterator

import click

from gradcli.cli.main import gradcli

X = ("y=x**2*sin(z)", "--at", "x=3,z=1")
MANY = ("y=a*b", "--points", "p.csv")
TWO = ("y=x**2", "w=2*x", "--at", "x=3")
SQUARES = ("y=sum(x**2)", "--shape", "x=2")
OWN = ("run", "own.py")

# How an option is used, whatever the command.
USED: dict[str, tuple[str, ...]] = {
    "--all": (*X, "--all"),
    "--arguments": (*X, "--arguments", "z,x"),
    "--at": X,
    "--columns": ("y=a*c", "--points", "p.csv", "--columns", "c=b"),
    "--dtype": (*X, "--to", "onnx", "--dtype"),
    "--digits": (*X, "--digits", "3"),
    "--engine": (*MANY, "--engine"),
    "--file": ("-F", "s.grad"),
    "--format": (*X, "-f"),
    "--jacobian": (*X, "--jacobian"),
    "--junit": (*X, "--junit", "verdicts.xml"),
    "--keep": (*MANY, "--keep", "b"),
    "--missing": ("y=a*b", "--points", "holes.csv", "--missing"),
    "--name": (*X, "--name", "f"),
    "--open": ("y=mse_loss(x, z)", "--at", "x=3,z=1", "--open", "all"),
    "--outputs": (*TWO, "--outputs", "y"),
    "--points": MANY,
    "--require-proof": (*X, "--require-proof"),
    "--retain": ("t=x**2", "y=t*x", "--at", "x=3", "--retain", "t"),
    "--scheduler": (*MANY, "--scheduler", "tcp://nowhere"),
    "--seed": (*X, "--seed", "1"),
    "--shape": SQUARES,
    "--sparse": (*SQUARES, "--sparse"),
    "--standalone": (*X, "-f", "latex", "--standalone"),
    "--steps": (*X, "--steps"),
    "--strict": (*X, "--strict"),
    "--threads": (*MANY, "--engine", "llvm", "--threads", "2"),
    "--to": (*X, "--to"),
    "--tolerance": (*X, "--tolerance", "1e-3"),
    "--trials": (X[0], "--trials", "5"),
    "--u": (*X, "--u", "x=1"),
    "--unroll": (*X, "--unroll"),
    "--v": (*X, "--v", "2"),
    "--values": (*MANY, "--values"),
    "--wrt": (*X, "--wrt", "x"),
}
# Values of options that not every command takes, or that it takes in its own way.
VALUES: dict[tuple[str, str], tuple[tuple[str, ...], ...]] = {
    ("export", "--what"): (
        (*X, "--what", "value,vjp,jacobian,jvp"),
        ("y=x**2*sin(z)", "--what", "hessian,hvp", "--at", "x=3,z=1"),
    ),
    ("export", "--dtype"): ((*X, "--to", "onnx", "--output", "made.onnx", "--dtype"),),
    ("export", "--sparse"): ((*SQUARES, "--what", "jacobian", "--sparse"),),
    ("hessian", "--outputs"): ((*TWO, "--outputs", "y"),),
    ("jacobian", "--numeric"): ((*X, "--numeric"), (*SQUARES, "--at", "x=[1,2]", "--numeric", "--sparse")),
    ("jacobian", "--order"): ((*X, "--wrt", "x", "--order", "3"),),
    ("check", "--gradient"): (
        ("functions.py:energy", "--gradient", "functions.py:gradient", "--at", "theta=0.3,omega=1"),
    ),
    ("check", "--columns"): (("y=a*c", "dy/da=c", "--points", "p.csv", "--columns", "c=b"),),
    **{
        (command, "--only"): ((*X, "--only", sections),)
        for command, sections in {
            "backward": "v,grad",
            "check": "claims",
            "hessian": "hessian",
            "jacobian": "jacobian",
            "jvp": "jvp",
        }.items()
    },
    **{
        (command, "--output"): tuple(
            (*(MANY if ending in (".csv", ".npz") else X), "--output", f"{command}{ending}") for ending in endings
        )
        for command, endings in {
            "backward": (".csv", ".npz", ".html", ".md", ".tex", ".txt"),
            "check": (".html", ".md", ".tex", ".txt", ".json"),
            "export": (".py",),
            "graph": (".svg", ".dot", ".gv", ".mmd", ".tex", ".html", ".txt"),
            "hessian": (".csv", ".npz", ".html"),
            "jacobian": (".csv", ".npz", ".md"),
            "jvp": (".csv", ".npz", ".tex"),
        }.items()
    },
    ("jacobian", "--sparse"): ((*SQUARES, "--sparse"), ("y=x**3", "--at", "x=[1,2]", "--sparse", "--output", "J.npz")),
    ("graph", "--layout"): ((*X, "-f", "svg", "--layout"),),
    ("run", "-c"): (("-c", "import torch; x = torch.ones(2, requires_grad=True); x.sum().backward()"),),
    ("run", "--line"): (("script.py", "--line", "7"),),
    ("run", "--round"): (("script.py", "--round", "1"),),
    ("run", "--graph"): tuple(("script.py", "--graph", f"run{ending}") for ending in (".svg", ".html", ".txt")),
    ("run", "--format"): (("own.py", "-f"),),
    ("run", "--output"): tuple(("own.py", "--output", f"run{ending}") for ending in (".md", ".tex", ".json", ".txt")),
    ("run", "--open"): (("script.py", "--graph", "run.svg", "--open", "all"),),
    ("run", "--explore"): (("own.py", "--explore"),),
    ("run", "--torch"): (("own.py", "--torch", "--quiet"), ("own.py", "--no-torch", "--quiet")),
    ("explain", "--site"): (("--site", "guide"),),
    ("run", "--only"): (("own.py", "--only", "grad,script"),),
    **{("run", option): (("own.py", option),) for option in ("--quiet", "--all", "--check", "--steps", "--unroll")},
}
# Engines that are libraries of their own, and need of a system what they need.
ELSEWHERE = {"jax", "dask"}
CLAIMS = {X[0]: "dy/dx = 2*x*sin(z)", MANY[0]: "dy/da = b", TWO[0]: "dy/dx = 2*x", SQUARES[0]: "dy/dx = 2*x"}

TANGENTS = {MANY[0]: "a=1,b=0", SQUARES[0]: "x=[1,0]", "y=a*c": "a=1,c=0"}
# Rightly: a model is not text, nobody can explore without a terminal, one entry of the sample's gradient is wrong, and
# PyTorch may not be installed.
REFUSED = (
    {"--gradient"},
    {"--torch"},
    {"--missing", "error"},
    {"--scheduler"},
    {"--to", "onnx"},
    {"explore"},
    {"--explore"},
)


def every_option() -> Iterator[tuple[str, ...]]:
    """Yield the command lines."""
    for name, option in _options():
        yield from _with_option(name, option)
    yield from ((name, "--help") for name in gradcli.list_commands(click.Context(gradcli)))


def without_example() -> set[tuple[str, str]]:
    """Return the options, each behind its command, that have no example here yet."""
    return {(name, option.opts[-1]) for name, option in _options() if not [*_with_option(name, option)]}


def _options() -> Iterator[tuple[str, click.Option]]:
    context = click.Context(gradcli)
    for name in gradcli.list_commands(context):
        command = gradcli.get_command(context, name)
        assert command is not None
        yield from ((name, option) for option in command.params if isinstance(option, click.Option))


def _with_option(command: str, option: click.Option) -> Iterator[tuple[str, ...]]:
    long = option.opts[-1]
    examples = VALUES.get((command, long)) or ((USED[long],) if long in USED else ())
    for used in examples:
        choices = [c for c in getattr(option.type, "choices", [""]) if c not in ELSEWHERE]
        for choice in choices:
            yield (command, *_for(command, (*used, choice) if choice else used))


def _for(command: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arguments with what a command cannot do without."""
    if command == "check":
        claim = CLAIMS.get(arguments[0], "dy/dx = 2*x + cos(x)")
        has_claims = "--gradient" in arguments or any(a.startswith("dy/") for a in arguments)
        return arguments if has_claims else (claim, *arguments)
    if command == "export" and "onnx" in arguments:  # not for a terminal
        return (*arguments, "--output", "model.onnx")
    if command == "export" and "--to" not in arguments:
        return (*arguments, "--to", "numpy")
    if command == "jvp" and "--u" not in arguments:
        return (*arguments, "--u", TANGENTS.get(arguments[0], "x=1"))
    if command == "hessian" and arguments[:2] == TWO[:2] and "--outputs" not in arguments:
        return (*arguments, "--outputs", "y")
    return arguments
