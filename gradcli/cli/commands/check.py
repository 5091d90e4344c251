"""gradcli check: whether derivatives are correct, and the mistake in wrong ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from gradcli.cli import options as shared
from gradcli.errors import InputError, Notes, option_error
from gradcli.process.ending import DONE, MISTAKE, NO
from gradcli.report.render import FORMATS, PAGE_ENDINGS, PAGES, Look

if TYPE_CHECKING:
    from gradcli.pages.check.verdicts import CheckResult

    Results = dict[str, CheckResult | InputError]

SECTIONS = {"claims": "the verdicts", "steps": "the right derivation, step by step"}
_ENDINGS = {**PAGE_ENDINGS, ".json": "json", ".jsonl": "json"}


_POINTS = shared.points_option(
    "Check at the points of a .csv, .tsv, .jsonl, .npz or .parquet file; - is standard input."
)


@click.command(cls=shared.SystemCommand)
@click.argument("statement", nargs=-1)
@shared.file_option
@shared.at_option(help="A point to check at; repeat it for more.")
@shared.gathered("many", shared.Files, (_POINTS, *shared.reading_options))
@shared.shapes_option(help="Shapes of the inputs: x=3,M=2x2.")
@click.option("--tolerance", type=click.FloatRange(0, 1, min_open=True), metavar="E", default=1e-6, show_default=True)
@click.option("--trials", type=click.IntRange(1, 10_000), metavar="N", default=20, show_default=True)
@click.option("--seed", type=click.IntRange(0), metavar="N", default=0, show_default=True)
@click.option("--gradient", metavar="FILE.py:NAME")
@click.option("--require-proof", is_flag=True)
@click.option("--steps", is_flag=True)
@click.option("--junit", metavar="FILE", type=click.Path(dir_okay=False))
@click.option("--output", metavar="FILE", type=click.Path())
@shared.style_option([style for style in FORMATS if style != "csv"], "The output format.  [default: table]")
@shared.page_options(SECTIONS)
def check(
    statement: tuple[str, ...],
    files: tuple[str, ...],
    at: tuple[shared.PointText, ...],
    shapes: tuple[str, ...],
    tolerance: float,
    trials: int,
    seed: int,
    gradient: str | None,
    require_proof: bool,
    steps: bool,
    junit: str | None,
    style: str | None,
    pages: shared.Pages,
    many: shared.Files,
) -> int:
    """Check claims about the derivatives of a system.

    STATEMENTs define the system and claims about it: dy/dx = EXPR, d2y/dx2 = EXPR, d2y/dx/dz = EXPR, or the pullback
    x.grad = EXPR, in which v is the cotangent (y.v with several outputs); also of elements: dy[0]/dM[0,:] = EXPR,
    dy[i]/dx[i] = EXPR for i in 0..9.  The claim may also be a Python function: FILE.py:NAME --gradient FILE.py:NAME.
    A STATEMENT may be the name of a file.  Several files are checked separately, each together with the other
    statements.

    gradcli proves a claim, or tests it at points, and compares it with finite differences.  For a wrong claim it names
    the mistake.  The exit status is 0 if all claims are right, and 1 if one is wrong or undecided.

    Options:
        --tolerance: The relative error allowed. Increase it for claims with rounded constants.
        --trials: The number of random points to try.
        --seed: The seed of the random points.
        --gradient: A Python function that returns the derivatives with respect to the inputs, in their order, as the
            claim.
        --require-proof: Require a proof: a claim that is right at points, but not proved, is undecided (status 1).
        --steps: Show the right derivation step by step, and the step at which a wrong claim leaves it.
        --junit: Also write the verdicts to FILE, as JUnit XML.
        --output: Write the page to a .html, .md, .tex or .txt file, or JSON.

    Examples:
        gradcli check "f=x**2*y" "df/dx=2*x*y" "df/dy=x**2"
        gradcli check "y=x@M" "x.grad=v@M.T" "M.grad=outer(x,v)" --shape x=2,M=2x3
        gradcli check "f=sin(3*x)" "d2f/dx2=-9*sin(3*x)" --at x=0.5
        gradcli check "r=x**2" "dr[i]/dx[i]=2*x[i] for i in 0..2" --shape x=3
        gradcli check "p=softmax(z)" "L=-log(p[0])" "dL/dz=p-[1,0,0]" --shape z=3 -f json
        gradcli check "h=tanh(w*x)" "dh/dw=x*(1-h**2)" --steps
        gradcli check "f=a*b**2" "df/db=2*a*b" --points samples/points.csv
        gradcli check samples/logistic_regression.grad samples/gaussian.grad

    """
    from gradcli.cli.commands.check_claims import checked, is_file
    from gradcli.cli.inputs.system import has_claims, is_function, read_sources
    from gradcli.pages.check.verdicts import Settings

    many, output = many._replace(output=None), many.output
    if math.isnan(tolerance):  # which is below and above no bound
        raise option_error("--tolerance", "--tolerance: nan is not a number", text="nan")
    style = shared.format_of(style, output, _ENDINGS) or PAGES[0]
    look = pages.look(style)
    functions = tuple(text for text in statement if is_function(text))
    several = tuple(text for text in statement if text not in functions and is_file(text))
    if several:  # `-F a.grad b.grad`: a file with claims of its own is one of them
        several = (*filter(has_claims, files), *several)
        files = tuple(name for name in files if name not in several)
    texts = tuple(text for text in statement if text not in functions + several)
    _check_trials(at, many)
    wanted = steps or "steps" in pages.only
    settings = Settings((), trials, seed, tolerance, require_proof=require_proof, steps=wanted)

    def verdicts(*names: str) -> CheckResult:
        options = shared.SystemOptions(texts, (*files, *names, *functions), at, shapes, None, None, style)
        sources = read_sources(options, points=many.points)
        return checked(sources, options, settings, many if many.are_many else None, gradient)

    results: Results = _of_each(several, verdicts) if several else {"gradcli check": verdicts()}
    if junit is not None:
        from gradcli.cli.output import save
        from gradcli.report.junit import junit as junit_xml

        save(junit, junit_xml(results), f"JUnit XML, {len(results)} suite{'s' * (len(results) != 1)}")
    return _show(results, look, pages.only, output)


def _check_trials(at: Sequence[str], many: shared.Files) -> None:
    """Check that --trials, which counts random points, is not typed beside points."""
    source = "--points" if many.are_many else "--at" if at else ""
    if source and click.get_current_context().get_parameter_source("trials") is ParameterSource.COMMANDLINE:
        message = f"--trials is the number of random points, and {source} gives the points"
        hint = f"leave out --trials, or leave out {source} to check at random points"
        raise InputError(message, hint=hint, options=("--trials", source))


def _of_each(files: Sequence[str], verdicts: Callable[[str], CheckResult]) -> Results:
    """Return the verdicts on each of several files, or its error; that of a single file is raised."""
    if len(files) == 1:
        return {files[0]: verdicts(files[0])}
    results: Results = {}
    for name in files:
        try:
            result = verdicts(name)
            results[name] = replace(result, verdicts=tuple(replace(v, file=name) for v in result.verdicts))
        except InputError as error:
            results[name] = error
    return results


def _show(results: Results, look: Look, only: Sequence[str], output: str | None) -> int:
    """Show verdicts and errors, or write the verdicts to a file; return the exit status."""
    from gradcli.cli.output import print_mistake, show_result
    from gradcli.pages.check.page import check_page
    from gradcli.pages.check.verdicts import CheckResult
    from gradcli.pages.picture.head import Head

    checks = [result for result in results.values() if isinstance(result, CheckResult)]
    if checks:
        verdicts = replace(checks[0], verdicts=tuple(v for result in checks for v in result.verdicts))
        head = Head(("Checked derivatives",), None)
        paged = lambda: (check_page(result, only, look.standalone) for result in checks)  # noqa: E731
        show_result(verdicts, paged, look, Notes(), output, head)
    for name, result in results.items():
        if isinstance(result, InputError):
            print_mistake(result, name)
    if len(checks) < len(results):
        return MISTAKE
    return DONE if all(result.right for result in checks) else NO
