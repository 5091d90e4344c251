"""The one way of the commands that ask a question: at points of `--at`, without a point, or at those of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from gradcli.errors import Notes

if TYPE_CHECKING:
    from gradcli.cli.inputs.file_points import FilePoints
    from gradcli.cli.inputs.system import Situation
    from gradcli.cli.options import Files, Pages, SystemOptions
    from gradcli.pages.question import Question, Result
    from gradcli.pages.sections import Page

    Points = Situation | FilePoints


def answer(
    options: SystemOptions,
    files: Files,
    pages: Pages,
    ask: Callable[[Points], Question],
    paged: Callable[[Result, Notes], Iterable[Page]],
    stdin_has_v: bool = False,
) -> None:
    """Print the result of the question that `ask` returns, as data or as pages, or write it to a file.

    `stdin_has_v` is whether `--v` reads standard input.

    Errors: `InputError` for points that cannot be read, and for what cannot be computed.
    """
    from gradcli.cli.inputs.system import read_situation, read_system_of
    from gradcli.cli.options import page_of_file

    system = read_system_of(options, files.points, stdin_has_v)
    output = None
    if page := page_of_file(options.style, files):
        options, files, output = options._replace(style=page), files._replace(output=None), files.output
    if files.are_many:
        from gradcli.cli.answers_at_points import answer_file
        from gradcli.cli.inputs.file_points import open_many

        with open_many(system, options, files) as run:
            answer_file(run, ask(run))
        return
    from gradcli.cli.output import show_result
    from gradcli.process.streams import announced

    notes, look = Notes(), pages.look(options.style, output is not None)
    with announced():
        situation = read_situation(system, options, notes)
        result = ask(situation).result(situation.points, notes)
    head = None
    if look.standalone and not pages.only:
        from gradcli.pages.picture.head import head as head_of

        head = head_of(result)
    show_result(result, lambda: paged(result, notes), look, notes, output, head)
