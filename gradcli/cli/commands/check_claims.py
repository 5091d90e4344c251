"""Claims checked: at points that are given, at those of a file, or at random ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gradcli.cli.inputs.claims import cases
from gradcli.cli.inputs.system import (
    Situation,
    first_known,
    is_function,
    read_function,
    read_situation,
    read_subsystems,
)
from gradcli.cli.options import Files, SystemOptions
from gradcli.data.arrays import default_point
from gradcli.errors import InputError, Notes, Source, option_error
from gradcli.graph.array import Named
from gradcli.graph.graph import Graph
from gradcli.lang.claims import Claim, read_claims, restore_span, unfinished_error
from gradcli.lang.system import System, read_system
from gradcli.pages.check.claim import Case, cost
from gradcli.pages.check.magnitudes import usual_powers
from gradcli.pages.check.trials import MAX_WORK
from gradcli.pages.check.verdicts import CheckResult, Settings, check
from gradcli.process.streams import announced

if TYPE_CHECKING:
    from gradcli.cli.inputs.file_points import FilePoints

_BLOCK = 2**12  # points that are tried at a time
_NUMBERS = 4_000_000  # that are worked out for them


def is_file(text: str) -> bool:
    """Return whether a statement is the name of a file that there is: it has a file extension, and no `=`."""
    return "=" not in text and "\n" not in text and bool(Path(text).suffix) and Path(text).is_file()


def checked(
    sources: Sequence[Source],
    options: SystemOptions,
    settings: Settings,
    files: Files | None = None,
    gradient: str | None = None,
) -> CheckResult:
    """Return the verdicts on the claims in some texts, at the points of a file if there is one.

    `gradient` is a function of a Python file that claims what the derivatives of the system are.

    Errors: `InputError`, with its position in the texts, for what cannot be read and claims that do not fit.
    """
    rest, claims = read_claims(sources)
    example = 'for example: gradcli check "f=x**2*y" "df/dx=2*x*y"'
    if not claims and gradient is None:
        error = InputError("there is no claim to check", hint=f"{example}; or x.grad=v*2*x")
        raise unfinished_error(rest) or error
    names, points = [q.name for claim in claims for q in claim.by], None if files is None else files.points
    subsystems = read_subsystems(options.files, names, options, points)
    if not subsystems and not any(source.text.strip() for source in rest):
        raise InputError("no system is given", hint=example)
    try:
        system = read_system(rest, subsystems)
        options = options._replace(style=None, outputs=",".join(system.assigned))
        if files is not None:
            return _at_file(system, claims, options, files, settings)
        situation = read_situation(system, options, Notes())
        result = _cases(claims, situation.graph, system)
        if gradient is not None:
            result += _of_function(gradient, system, options, situation)
        given, usual = situation.points if options.at else (), usual_powers(default_point(system))
        with announced():
            return check(situation.graph, result, replace(settings, points=given, usual=usual))
    except InputError as error:
        raise restore_span(error, sources, rest) from None


def _of_function(gradient: str, system: System, options: SystemOptions, situation: Situation) -> list[Case]:
    """Return the claims of a gradient function in a Python file."""
    from gradcli.cli.inputs.gradient_functions import gradient_cases, needs_point  # claims in formulas start sooner

    if not is_function(gradient):
        message = f"--gradient: `{gradient}` is not FILE.py:NAME"
        raise option_error("--gradient", message, "for example --gradient model.py:dloss", gradient)
    shapes = {name: node.shape for name, node in situation.graph.inputs.items()}
    part = read_function(gradient, {**shapes, **(first_known(options, None) if options.at else {})})
    cases = gradient_cases(system, part, situation.graph, situation.points)
    if not options.at:
        needs_point([*system.subsystems, part])
    return cases


def _cases(claims: Sequence[Claim], graph: Graph, system: System) -> list[Case]:
    """Return the claims as nodes.

    Errors: `InputError` for a claim that does not fit, and for one that takes too long at a single point.
    """
    result = [replace(case, kinds=system.kinds) for case in cases(claims, graph, system.outputs)]
    for case in result:
        if case.work > MAX_WORK:
            message = f"{case.text} takes about {case.work:,} multiplications at each point, which are too many"
            raise InputError(message, hint="check the claim for smaller arrays, with --shape or --at")
    return result


def settings_of(tolerance: float, trials: int, seed: int) -> Settings:
    """Return the settings of a check from Python.

    Errors: `InputError` for numbers that make no sense.
    """
    if not 0 < tolerance <= 1 or trials < 1 or seed < 0:
        raise InputError("the tolerance must be above 0 and at most 1, trials at least 1, and the seed at least 0")
    return Settings((), trials, seed, tolerance)


def checked_text(
    text: str, shapes: Mapping[str, Sequence[int]], tolerance: float, trials: int, seed: int
) -> CheckResult:
    """Return the verdicts on the claims in a text, whose inputs have these shapes.

    Errors: `InputError` as for `checked`, and for numbers that make no sense.
    """
    settings = settings_of(tolerance, trials, seed)
    texts = tuple(f"{name}={'x'.join(map(str, shape))}" for name, shape in shapes.items() if len(shape))
    options = SystemOptions((text,), (), (), texts, None, None, None)
    return checked([Source(text)], options, settings)


def _at_file(
    system: System, claims: Sequence[Claim], options: SystemOptions, files: Files, settings: Settings
) -> CheckResult:
    """Return the verdicts at the points of a file; a cotangent `y.v` without columns is drawn at random."""
    from gradcli.cli.inputs.file_points import open_many

    with open_many(system, options, files) as run:
        claimed = _cases(claims, run.graph, system)
        seeds = _cotangents(run, claimed, system.outputs)
        result = check(run.graph, claimed, settings, _blocks(run, claimed, seeds), run.label)
        run.note_skipped(run.points.skipped)
        return result


def _cotangents(run: FilePoints, claims: Sequence[Case], outputs: Sequence[str]) -> dict[str, str]:
    """Return the columns of cotangents in the points, by their names in the claims."""
    names = {name for case in claims for name in case.graph.inputs} - {*run.graph.inputs}
    columns = {name: f"{outputs[0]}.v" if name == "v" else name for name in names}
    return {name: column for name, column in columns.items() if column in run.points.shapes}


def _blocks(run: FilePoints, claims: Sequence[Case], seeds: Mapping[str, str]) -> Iterator[Named]:
    size = int(np.clip(_NUMBERS // max(cost(case) for case in claims), 16, _BLOCK))
    for block in run.points.blocks([*run.varying, *seeds.values()], size):
        count = next(iter(block.values())).shape[-1]
        same = {name: np.broadcast_to(value, (*value.shape[:-1], count)) for name, value in run.same.items()}
        yield same | {n: block[n] for n in run.varying} | {name: block[column] for name, column in seeds.items()}
